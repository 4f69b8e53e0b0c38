"""Whose site factor is the daemon's, and what each job had before."""

from __future__ import annotations

from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.queue.site_factors import given_back, of_started


def job(name: str, state: QueueState = QueueState.PENDING) -> QueuedJob:
    array = name.partition("_")[0] if "_" in name or name == "50" else None
    return QueuedJob(JobRequest(name, "ann", None, 1, 60, 0, array_id=array), state)


RUNNING = QueueState.RUNNING


def test_what_shows_another_factor_is_somebody_elses() -> None:
    jobs = [job("1"), job("2"), job("3"), job("4"), job("5")]
    ours = {"1": {900: 0}, "2": {900: 0}, "3": {900: -7}, "4": {900: 0}, "9": {900: 0}}
    # 4 is held, so nothing shows; 2 may be fixed to next to nothing, under which 0 shows.
    factors = {"1": 900, "2": 0, "3": 0, "5": 900}
    assert given_back(ours, factors, jobs) == {"1": 0, "2": 0, "4": 0}
    assert given_back(ours, {**factors, "1": 5, "3": 900}, jobs) == {"2": 0, "3": -7, "4": 0}


def test_what_runs_is_named_by_its_tasks() -> None:
    """Slurm says no to a change of an array of which a task has ended."""
    ours = {"7": {900: -7}, "50": {800: 0}, "60_1": {700: 0}}
    jobs = [job("7", RUNNING), job("50_2", RUNNING), job("50_3", RUNNING), job("60_1", RUNNING)]
    started = {"7": -7, "50_2": 0, "50_3": 0, "60_1": 0}
    assert of_started(ours, jobs) == started
    assert given_back(ours, {}, jobs) == started


def test_while_a_task_waits_its_arrays_factor_is_that_of_all() -> None:
    ours = {"50": {800: 0}}
    jobs = [job("50_2", RUNNING), job("50")]
    assert of_started(ours, jobs) == {}
    assert given_back(ours, {"50": 800}, jobs) == {"50": 0}
