"""A mount and a process namespace of a test cluster's own, so that nothing of it can be left.

Its first process is a shell that waits for the end of a pipe from this process. When the pipe
closes, be it at a test's end, at Ctrl-C or because pytest was killed, that shell ends, and the
kernel ends every other process of the namespace and undoes its mounts.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_SCRIPT = Path(__file__).with_name("slurm_namespace.sh")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_END_S = 20


class SlurmNamespace:
    """Processes of one cluster.

    Parameters
    ----------
    folder
        The cluster's folder, removed at the end; holds ``passwd``, ``group`` and ``etc``.
    root
        Of the release's programs.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._first = subprocess.Popen(
            [
                *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
                *("bash", str(_SCRIPT), str(folder), str(root)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self._first.stdout is not None
        said = self._first.stdout.readline()
        if said != "ready\n":
            said += self._first.stdout.read()
            self.end()
            raise RuntimeError(f"no namespace for a Slurm cluster: {said}")
        children = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children")
        self.pid = int(children.read_text().split()[0])

    def command(
        self, argv: Sequence[str], user: str = "root", *, in_root: bool = False
    ) -> list[str]:
        """Give the command that runs another inside, as a user; ``in_root``: of the release."""
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--"]
        if in_root:
            enter += ["chroot", str(self.root)]
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
        in_root: bool = False,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end."""
        return subprocess.run(
            self.command(argv, user, in_root=in_root),
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={"PATH": _PATH, "LC_ALL": "C", "USER": user, **(environment or {})},
            timeout=timeout_s,
        )

    def start(
        self,
        argv: Sequence[str],
        user: str = "root",
        *,
        log: Path,
        in_root: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a daemon inside, which stays in the foreground; its output goes to a file."""
        with log.open("ab") as output:
            daemon = subprocess.Popen(
                self.command(argv, user, in_root=in_root),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={"PATH": _PATH, "LC_ALL": "C", **(environment or {})},
                start_new_session=True,
            )
        self._daemons.append(daemon)
        return daemon

    def end(self) -> None:
        """End every process inside, undo the mounts and remove the folder."""
        for stream in (self._first.stdin, self._first.stdout):
            _close(stream)
        try:
            self._first.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._first.kill()  # takes its child with it, and that one all the others
            self._first.wait(_END_S)
        for daemon in self._daemons:
            daemon.wait(_END_S)
        shutil.rmtree(self.folder, ignore_errors=True)


def _close(stream: IO[str] | None) -> None:
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.close()
