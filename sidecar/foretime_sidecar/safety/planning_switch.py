"""Switches planning off and on at once, by a file that the hook and the daemon look for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import InputError, SchedulerError

from foretime_sidecar.clients.client import JobChange
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.queue.site_factors import put_back
from foretime_sidecar.safety.limit_repairs import Repair, changes_of, undone
from foretime_sidecar.store.site_factors import site_factors_in

_ROUNDS = 5
_PAUSE_S = 0.2
_MOST_NAMED = 5
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
            f"{path}: can't make it: {error.strerror}; be root on the scheduler's host"
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
            f"{path}: can't remove it: {error.strerror}; be root on the scheduler's host"
        ) from error
    return True


def give_back(
    due: Callable[[], Sequence[Repair]], update: Callable[[Sequence[JobChange]], None], who: str
) -> list[str]:
    """Plan all waiting jobs with what their users asked for again; give the jobs changed.

    The file must be there already, so that no new one is planned; one that is being submitted
    meanwhile, or that the daemon plans in the middle of its look, is caught by another round.

    Parameters
    ----------
    due
        Looks at the queue, and gives the changes of waiting jobs that are planned short.
    update
        Makes changes.
    who
        Who may make them.

    Raises
    ------
    SchedulerError
        If jobs are left that are planned short; the others have been changed.
    """
    asked: dict[str, None] = {}
    problem: SchedulerError | None = None
    for _ in range(_ROUNDS):
        repairs = due()
        if not repairs:
            return list(asked)
        asked |= dict.fromkeys(_job_ids(repairs))
        try:
            update(changes_of(repairs))
        except SchedulerError as error:
            problem = error  # a job may have started or ended meanwhile: look again
        time.sleep(_PAUSE_S)
    left = list(_job_ids(due()))
    if not left:
        return list(asked)
    why = f" ({problem})" if problem is not None else ""
    raise SchedulerError(
        f"{len(left)} waiting jobs are still planned short: {', '.join(left[:_MOST_NAMED])}{why}; "
        f"{len(asked.keys() - set(left))} others got back what was asked for; run this again, as "
        f"{who}"
    )


def give_back_on_slurm(controller: SlurmController, store: Path) -> list[str]:
    """Do it on Slurm, with what a daemon that is dead has raised; see `give_back`.

    Parameters
    ----------
    controller
        Slurm's.
    store
        The daemon's, which tells of the site factors that it has set.

    Raises
    ------
    SchedulerError
        As of `give_back`; or if a site factor could not be put back.
    StateError
        If the store can't be read. All else has been done.
    """
    try:
        planned = give_back(
            lambda: undone(controller.jobs(), "planning is switched off"),
            controller.update,
            "root or a Slurm operator",
        )
    finally:
        raised = put_back(controller.client, site_factors_in(store))
    return list(dict.fromkeys([*planned, *raised]))


def _job_ids(repairs: Iterable[Repair]) -> Iterable[str]:
    return (repair.change.job_id for repair in repairs)
