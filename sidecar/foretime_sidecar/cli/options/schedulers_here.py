"""Which schedulers this machine has commands of."""

from __future__ import annotations

import shutil

from foretime_estimators.jobs.errors import InputError

_COMMANDS = {"slurm": "scontrol", "pbs": "qmgr"}


def schedulers_here(commands_dir: str) -> list[str]:
    """Give the schedulers whose commands are in a folder, or on the PATH if it is ""."""
    return [
        name
        for name, command in _COMMANDS.items()
        if shutil.which(command, path=commands_dir or None) is not None
    ]


def require_commands(scheduler: str, commands_dir: str) -> None:
    """Refuse to go on where a scheduler's commands are not.

    Raises
    ------
    InputError
        Naming the option that gives their folder.
    """
    if scheduler not in schedulers_here(commands_dir):
        command = _COMMANDS[scheduler]
        missing = f"{commands_dir}/{command}" if commands_dir else f"{command} on the PATH"
        raise InputError(
            f"there is no {missing}: run this on the scheduler's host, or name the folder of its"
            " commands with --commands-dir"
        )
