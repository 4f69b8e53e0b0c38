"""slurmctld as its administrator reaches it, through scontrol."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import JobChange, QueuedJob
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.clients.slurm.control_texts import configuration_values

_SETTLE_S = 10
_PAUSE_S = 0.1


class SlurmController:
    """Asks slurmctld, and has it read its configuration anew.

    Parameters
    ----------
    commands_dir
        Folder of Slurm's commands; "" finds them on the PATH.
    timeout_s
        Bound of one command.
    """

    def __init__(self, commands_dir: str = "", timeout_s: int = 60) -> None:
        self._run = SubprocessRunner(commands_dir, timeout_s, attempts=2)
        self.client = SlurmCommands(self._run)

    def configuration(self) -> Mapping[str, str]:
        """Give what ``scontrol show config`` says, by name."""
        return configuration_values(str(self._run(["scontrol", "show", "config"])))

    def clock(self) -> int:
        """Give slurmctld's time, epoch seconds; ValueError if it is not told."""
        text = str(self._run(["scontrol", "show", "config"]))
        found = re.match(r"Configuration data as of (\d+)", text)
        if found is None:
            raise ValueError("scontrol show config tells no time")
        return int(found[1])

    def reread(self) -> None:
        """Have slurmctld read its configuration anew."""
        self._run(["scontrol", "reconfigure"])

    def reconfigure(self, key: str, word: str, *, there: bool) -> None:
        """Have slurmctld read its configuration anew, and see that it took it over.

        Parameters
        ----------
        key, word
            A word that the key's value must have.
        there
            Whether it must be there, or must not.

        Raises
        ------
        SchedulerError
            If slurmctld refuses, does not answer, or holds to what it had.
        """
        self.reread()
        until = time.monotonic() + _SETTLE_S
        while True:
            words = [part.strip().lower() for part in self._value(key).split(",")]
            if (word.lower() in words) is there:
                return
            if time.monotonic() > until:
                has = "still has" if not there else "does not have"
                raise SchedulerError(
                    f"slurmctld {has} {word} in {key} after scontrol reconfigure; look at its log"
                )
            time.sleep(_PAUSE_S)

    def _value(self, key: str) -> str:
        try:
            return self.configuration().get(key, "")
        except SchedulerError:  # newer ones start anew to read it
            return ""

    def accounted_clusters(self) -> Sequence[str]:
        """Name the clusters that slurmdbd knows; SchedulerError if it does not answer."""
        listed = self._run(
            ["sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster"]
        )
        return str(listed).split()

    def admin_level(self, user: str) -> str | None:
        """Give a user's AdminLevel in slurmdbd; ``None`` if it knows no such user.

        Raises
        ------
        SchedulerError
            If slurmdbd does not answer.
        """
        names = "format=user,adminlevel"
        listed = self._run(["sacctmgr", "--noheader", "--parsable2", "show", "user", user, names])
        levels = (line.partition("|") for line in str(listed).splitlines())
        return next((level for name, _, level in levels if name == user), None)

    def jobs(self) -> Sequence[QueuedJob]:
        """Give what runs and what waits."""
        return self.client.queue().jobs

    def update(self, changes: Sequence[JobChange]) -> None:
        """Change jobs."""
        self.client.update(changes)


def slurm_conf_path(configuration: Mapping[str, str]) -> Path:
    """Give where slurmctld says that its slurm.conf is."""
    return Path(configuration.get("SLURM_CONF") or "/etc/slurm/slurm.conf")
