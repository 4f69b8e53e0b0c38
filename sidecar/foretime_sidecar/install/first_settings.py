"""The settings file of a site that has none: what differs from the defaults, and the mode."""

from __future__ import annotations

import shutil
from pathlib import Path

from foretime_sidecar.settings.settings import Settings

_SERVICE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where a service finds its commands (systemd.exec(5))."""
_HEAD = "# Every other setting is at its default: foretime config show tells them all.\n"
_PBS_HOME = "/var/spool/pbs"


def slurm_settings(commands_dir: str) -> str:
    """Give them for Slurm.

    Parameters
    ----------
    commands_dir
        Folder of Slurm's commands; "" for the one on the PATH.
    """
    return _text({"kind": "slurm"}, {}, commands_dir or _folder_of("scontrol"))


def pbs_settings(commands_dir: str, home: Path | None) -> str:
    """Give them for PBS.

    Parameters
    ----------
    commands_dir
        Folder of PBS' commands; "" for the one on the PATH.
    home
        PBS_HOME; ``None`` if it is not known.
    """
    scheduler = {"kind": "pbs"}
    defaults = Settings().scheduler
    for name in ("pbs_accounting_dir", "pbs_server_logs_dir", "pbs_dedicated_time_file"):
        default: str = getattr(defaults, name)
        place = default.replace(_PBS_HOME, str(home or _PBS_HOME))
        if place != default:
            scheduler[name] = place
    hook = {"mechanism": "pbs-soft-walltime"}
    return _text(scheduler, hook, commands_dir or _folder_of("qmgr"))


def _folder_of(command: str) -> str:
    """Give the folder of a command, of which a service would find none or another; else ""."""
    found, of_service = shutil.which(command), shutil.which(command, path=_SERVICE_PATH)
    if found is None or (of_service and Path(found).resolve() == Path(of_service).resolve()):
        return ""
    return str(Path(found).parent)


def _text(scheduler: dict[str, str], hook: dict[str, str], commands_dir: str) -> str:
    if commands_dir:
        scheduler = scheduler | {"commands_dir": commands_dir}
    sections = {"scheduler": scheduler, "hook": {"mode": "observe"} | hook}
    lines = []
    for section, values in sections.items():
        lines += ["", f"[{section}]", *(f'{key} = "{value}"' for key, value in values.items())]
    return _HEAD + "\n".join([*lines, ""])
