"""Which schedulers this machine has commands of."""

from __future__ import annotations

import shutil

_COMMANDS = {"slurm": "scontrol", "pbs": "qmgr"}


def schedulers_here(commands_dir: str) -> list[str]:
    """Give the schedulers whose commands are in a folder, or on the PATH if it is ""."""
    return [
        name
        for name, command in _COMMANDS.items()
        if shutil.which(command, path=commands_dir or None) is not None
    ]
