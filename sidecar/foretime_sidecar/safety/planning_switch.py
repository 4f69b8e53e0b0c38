"""Switches planning off and on at once, by a file that the hook and the daemon look for."""

from __future__ import annotations

import time
from pathlib import Path

from foretime_estimators.jobs.errors import InputError, SchedulerError

from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.safety.limit_repairs import changes_of, undone

_ROUNDS = 5
_PAUSE_S = 0.2
_TEXT = "Made by foretime disable: no job is planned while this file exists.\n"


def switch_off(path: Path) -> bool:
    """Make the file; whether it was not there yet.

    Raises
    ------
    InputError
        If it can't be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_TEXT)
    except FileExistsError:
        return False
    except OSError as error:
        raise InputError(
            f"{path}: can't make it: {error.strerror}; be root on slurmctld's host"
        ) from error
    return True


def switch_on(path: Path) -> bool:
    """Remove the file; whether it was there.

    Raises
    ------
    InputError
        If it can't be removed.
    """
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"{path}: can't remove it: {error.strerror}; be root on slurmctld's host"
        ) from error
    return True


def give_back(controller: SlurmController) -> list[str]:
    """Plan all waiting jobs with what their users asked for again; give the jobs changed.

    The file must be there already, so that no new one is planned; one that is being submitted
    meanwhile, or that the daemon plans in the middle of its look, is caught by another round.

    Raises
    ------
    SchedulerError
        If jobs are left that are planned short.
    """
    done: dict[str, None] = {}
    problem: SchedulerError | None = None
    for _ in range(_ROUNDS):
        repairs = undone(controller.jobs(), "planning is switched off")
        if not repairs:
            return list(done)
        try:
            controller.update(changes_of(repairs))
        except SchedulerError as error:
            problem = error  # a job may have started or ended meanwhile: look again
        else:
            done |= dict.fromkeys(repair.change.job_id for repair in repairs)
        time.sleep(_PAUSE_S)
    left = undone(controller.jobs(), "")
    if not left:
        return list(done)
    named = ", ".join(repair.change.job_id for repair in left[:5])
    why = f" ({problem})" if problem is not None else ""
    raise SchedulerError(
        f"{len(left)} waiting jobs are still planned short: {named}{why}; run this again, as root "
        "or a Slurm operator"
    )
