"""Processes in namespaces of a test's own, so that nothing of them can be left.

Their first process is a shell that waits for the end of a pipe from this process. When the pipe
closes, be it at a test's end, at Ctrl-C or because pytest was killed, that shell ends, and the
kernel ends every other process of the namespaces and undoes their mounts.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_END_S = 60


class OwnNamespaces:
    """A running shell script that is the first process of its namespaces.

    Parameters
    ----------
    folder
        Removed at the end, by the script too.
    kinds
        Options of unshare, and of nsenter: ``--mount``, ``--pid``, ``--net``, ...
    script
        Run by bash with the folder as ``$1``, then ``arguments``: says ``ready``, waits until its
        standard input ends, then ends all processes and removes the folder.
    environment
        All variables of what runs inside.

    Attributes
    ----------
    folder, environment
        As given.
    pid
        The first process's, as it is called outside.
    """

    def __init__(
        self,
        folder: Path,
        kinds: Sequence[str],
        script: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str] = (),
    ) -> None:
        self.folder, self._kinds, self.environment = folder, list(kinds), dict(environment)
        self._first = subprocess.Popen(
            [
                *("unshare", *kinds, "--fork", "--kill-child", "--mount-proc"),
                *("bash", str(script), str(folder), *arguments),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            start_new_session=True,
        )
        assert self._first.stdout is not None
        said = self._first.stdout.readline()
        if said != "ready\n":
            said += self._first.stdout.read()
            self.end()
            raise RuntimeError(f"no namespaces for {folder}: {said}")
        children = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children")
        self.pid = int(children.read_text().split()[0])

    def command(
        self, argv: Sequence[str], user: str = "root", *, root: Path | None = None
    ) -> list[str]:
        """Give the command that runs another inside, as a user; below a root if one is given."""
        enter = ["nsenter", f"--target={self.pid}", *self._kinds, "--"]
        if root is not None:
            enter += ["chroot", str(root)]
        if user != "root":
            enter += ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
            enter += ["--inh-caps=-all", "--"]
        return [*enter, *argv]

    def run(
        self,
        argv: Sequence[str],
        user: str = "root",
        *,
        stdin: str | None = None,
        root: Path | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end."""
        return subprocess.run(
            self.command(argv, user, root=root),
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**self.environment, "USER": user, "LOGNAME": user, **(environment or {})},
            timeout=timeout_s,
        )

    def start(self, argv: Sequence[str], user: str = "root") -> subprocess.Popen[str]:
        """Start a command inside, which ends with the namespaces at the latest."""
        return subprocess.Popen(
            self.command(argv, user),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env={**self.environment, "USER": user, "LOGNAME": user},
        )

    def end(self) -> None:
        """End every process inside, undo the mounts and remove the folder."""
        for stream in (self._first.stdin, self._first.stdout):
            _close(stream)
        try:
            self._first.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._first.kill()  # takes its child with it, and that one all the others
            self._first.wait(_END_S)
        shutil.rmtree(self.folder, ignore_errors=True)


def _close(stream: IO[str] | None) -> None:
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.close()
