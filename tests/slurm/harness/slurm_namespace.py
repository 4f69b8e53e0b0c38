"""A mount and a process namespace of a test cluster's own, with the daemons of a release."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.support.processes.own_namespaces import OwnNamespaces

_SCRIPT = Path(__file__).with_name("slurm_namespace.sh")
_END_S = 20


class SlurmNamespace:
    """Processes of one cluster.

    Parameters
    ----------
    folder
        The cluster's folder, removed at the end; holds ``passwd``, ``group`` and ``etc``.
    release
        Whose programs run in it.

    Attributes
    ----------
    inside
        The namespaces.
    """

    def __init__(self, folder: Path, release: SlurmRelease) -> None:
        self.folder, self.release, self.root = folder, release, release.root
        self._daemons: list[subprocess.Popen[bytes]] = []
        kinds = ("--mount", "--pid")
        self._environment = {"PATH": release.search_path, "LC_ALL": "C"}
        self.inside = OwnNamespaces(folder, kinds, _SCRIPT, self._environment, [str(self.root)])
        self.pid = self.inside.pid

    def command(
        self, argv: Sequence[str], user: str = "root", *, in_root: bool = False
    ) -> list[str]:
        """Give the command that runs another inside, as a user; ``in_root``: of the release."""
        return self.inside.command(argv, user, root=self.root if in_root else None)

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
        return self.inside.run(
            argv,
            user,
            stdin=stdin,
            root=self.root if in_root else None,
            environment=environment,
            timeout_s=timeout_s,
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
                env={**self._environment, **(environment or {})},
                start_new_session=True,
            )
        self._daemons.append(daemon)
        return daemon

    def end(self) -> None:
        """End every process inside, undo the mounts and remove the folder."""
        self.inside.end()
        for daemon in self._daemons:
            daemon.wait(_END_S)
