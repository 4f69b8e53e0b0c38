"""A live PBS asked for all that its site's file needs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.pbs.pbs_conf import pbs_conf
from foretime_sidecar.clients.pbs.qmgr_text import scheduler_attributes
from foretime_sidecar.clients.pbs.server import NO_HOOK
from foretime_sidecar.clients.pbs.usage_file import as_pbsfs, read_usage_file
from foretime_sidecar.site_import.site_output import PBS, PBS_FILES, SiteOutput

_HOME = "/var/spool/pbs"


def ask_pbs(run: Callable[[Sequence[str]], str]) -> SiteOutput:
    """Ask a live PBS, and read the files of its scheduler.

    Parameters
    ----------
    run
        Runs a command and gives what it prints, with times in UTC.

    Raises
    ------
    SchedulerError
        If a command fails, or a file can't be read.
    """
    output = SiteOutput()
    for kind in ("server", "sched", "hosts", "rstat"):
        output.add(kind, run(shlex.split(PBS[kind])), PBS[kind])
    output.add("hooks", _hooks(run), PBS["hooks"])
    folder = _sched_priv(output)
    for name in PBS_FILES:
        path = folder / name
        try:
            output.add(name, path.read_text(encoding="utf-8", errors="replace"), str(path))
        except FileNotFoundError:
            if name == "sched_config":
                raise SchedulerError(
                    f"{path}: there is no such file; do this on the host of pbs_sched"
                ) from None
        except OSError as error:
            raise SchedulerError(
                f"{path}: can't be read: {error.strerror}; do this as root on the host of"
                " pbs_sched, or let the daemon read it (docs/administration.md)"
            ) from error
    # pbsfs -p reads the same file, and is root's alone.
    usage = folder / "usage"
    output.add("usage", as_pbsfs(read_usage_file(usage)), str(usage))
    return output


def _hooks(run: Callable[[Sequence[str]], str]) -> str:
    """List the hooks; where there are none, qmgr fails."""
    try:
        return run(shlex.split(PBS["hooks"]))
    except SchedulerError as error:
        if NO_HOOK in str(error).lower():
            return ""
        raise


def _sched_priv(output: SiteOutput) -> Path:
    """Say where the files of the default scheduler are."""
    told = scheduler_attributes(output.text("sched")).get("sched_priv")
    return Path(told or f"{pbs_conf('PBS_HOME') or _HOME}/sched_priv")
