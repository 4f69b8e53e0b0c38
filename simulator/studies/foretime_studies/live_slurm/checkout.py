"""The checkout whose test harness brings up clusters, and what this machine lacks for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_studies.live_slurm.runs import RunName

_HARNESS = "tests/slurm/runs/live_arm.py"
_MODULE = "tests.slurm.runs.live_arm"


class Checkout:
    """A checkout of Foretime.

    Parameters
    ----------
    folder
        Its root.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._begun: list[subprocess.Popen[bytes]] = []  # which may outlive us

    def ready_releases(self) -> list[str]:
        """Give the releases of Slurm that clusters can be brought up with, newest first.

        Raises
        ------
        InputError
            If there is none; it says what is missing.
        """
        if os.geteuid() != 0:
            raise InputError(
                "live-slurm brings up Slurm clusters, which root alone can: run it as root"
            )
        command = [sys.executable, "-m", _MODULE, "--releases"]
        reply = subprocess.run(  # noqa: S603  # our own module
            command, cwd=self.folder, capture_output=True, text=True, check=False
        )
        if reply.returncode:
            raise InputError(f"live-slurm: {' '.join(reply.stderr.split()[-40:])}")
        told: dict[str, str] = json.loads(reply.stdout)
        ready = [name for name, missing in told.items() if not missing]
        if not ready:
            raise InputError(
                "live-slurm finds no Slurm to bring up: " + "; or ".join(told.values())
            )
        return sorted(ready, reverse=True)

    def begin(self, run: RunName, result: Path, log: Path) -> int:
        """Begin a run in a process of its own, which may outlive this one; give its id."""
        command = [
            sys.executable,
            "-m",
            _MODULE,
            run.workload,
            run.release,
            run.arm,
            str(result.resolve()),
        ]
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603  # our own module
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._begun.append(process)
        return process.pid


def find_checkout() -> Checkout:
    """Find the checkout: where this is installed from, else the present folder.

    Raises
    ------
    InputError
        If it is in neither.
    """
    for folder in (Path(__file__).resolve().parents[4], Path.cwd()):
        if (folder / _HARNESS).exists():
            return Checkout(folder)
    raise InputError(
        f"live-slurm works from a checkout of Foretime alone, whose {_HARNESS} brings up the "
        "clusters: run it in the root of one"
    )
