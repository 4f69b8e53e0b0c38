"""The host that Foretime is installed on: its users, groups and units, through its own commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from foretime_estimators.jobs.errors import InputError, StateError

from foretime_sidecar.clients.child_process import said_by, spawn

USER = "foretime"
"""Whom the daemon runs as; the group has the same name."""

_PATIENCE_S = 300


class Host:
    """The host that the commands run on.

    Parameters
    ----------
    root
        The folder that all paths are below.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def path(self, name: str | Path) -> Path:
        """Give the path of a file of the host."""
        return self._root / str(name).lstrip("/")

    def run(self, *argv: str) -> str:
        """Run a command and give what it printed.

        Raises
        ------
        StateError
            If it can't be run, fails, or does not end in time.
        """
        done = self._spawn(argv)
        if done.returncode != 0:
            raise StateError(f"{' '.join(argv)}: {said_by(done)}")
        return done.stdout

    def succeeds(self, *argv: str) -> bool:
        """Whether a command ends with exit code 0."""
        return self._spawn(argv).returncode == 0

    def _spawn(self, argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        try:
            return spawn(argv, _PATIENCE_S)
        except OSError as error:
            raise StateError(
                f"can't run {argv[0]}: {error.strerror}; install the package that has it"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise StateError(f"{' '.join(argv)} did not end within {_PATIENCE_S} s") from error

    @property
    def is_root(self) -> bool:
        """Whether its commands run as root."""
        return os.geteuid() == 0

    @property
    def runs_systemd(self) -> bool:
        """Whether systemd is the first process (as sd_booted(3) tells)."""
        return self.path("run/systemd/system").is_dir()

    def has_user(self, name: str) -> bool:
        """Whether there is such a user, in passwd, LDAP or wherever."""
        return self.succeeds("getent", "passwd", name)

    def is_member(self, name: str, group: str) -> bool:
        """Whether a user is in a group, by its own or another."""
        return group in self.run("id", "--groups", "--name", name).split()

    def unit_folder(self, unit: str) -> Path | None:
        """Give where a package has put a unit; ``None`` if none has."""
        for folder in ("usr/lib/systemd/system", "lib/systemd/system"):
            if self.path(f"{folder}/{unit}").exists():
                return self.path(folder)
        return None


def own_program() -> Path:
    """Give the `foretime` that runs.

    Raises
    ------
    InputError
        If it is nowhere.
    """
    beside = Path(sys.executable).with_name("foretime")
    found = str(beside) if beside.exists() else shutil.which("foretime")
    if found is None:
        raise InputError("there is no command foretime on the PATH: install foretime again")
    return Path(found)
