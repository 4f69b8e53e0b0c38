"""Slurm's commands for what can wait: each once, within bounds, and seldom enough."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from foretime_sidecar.clients.bounded_output import bounded_output

MOST_BYTES = 256 << 20
"""Of one answer: associations of a hundred thousand users are some 30 MiB."""


class BoundedCommands:
    """Runs one command of Slurm's at a time, without another try.

    Parameters
    ----------
    commands_dir
        Folder of the commands; "" finds them on the PATH.
    timeout_s
        Bound of one command.
    cluster
        The cluster to ask, of those that slurmdbd knows; "": the one of slurm.conf.
    most_bytes
        Bound of what one prints.

    Attributes
    ----------
    took_s
        How long all of them have taken so far, seconds.
    """

    def __init__(
        self,
        commands_dir: str = "",
        timeout_s: float = 30,
        cluster: str = "",
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.took_s = 0.0
        self._commands_dir = commands_dir
        self._timeout_s = timeout_s
        self._cluster = ["-M", cluster] if cluster else []
        self._most_bytes = most_bytes

    def __call__(self, argv: Sequence[str]) -> str:
        """Run a command and give what it prints, times in epoch seconds.

        Raises
        ------
        SchedulerError
            If it can't be run, fails, takes too long or prints too much.
        """
        # sacctmgr is slurmdbd's, and that one serves them all.
        cluster = self._cluster if argv[0] != "sacctmgr" else []
        command = [str(Path(self._commands_dir) / argv[0]), *cluster, *argv[1:]]
        environment = {**os.environ, "SLURM_BITSTR_LEN": "0", "SLURM_TIME_FORMAT": "%s"}
        began = time.monotonic()
        try:
            return bounded_output(command, environment, self._timeout_s, self._most_bytes)
        finally:
            self.took_s += time.monotonic() - began
