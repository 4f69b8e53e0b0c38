"""Jobs of an earlier log as an estimator learns them: those that had ended when a run begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending, FinishedJob

from foretime_sim.workloads.workload import Workload


def logged_start_time(workload: Workload) -> Int64Array:
    """Give when jobs started as logged, seconds, shape (jobs,); a wait not logged counts as none.

    Of a job that the log gives no wait for it is the submission.
    """
    waits = workload.logged_wait
    return workload.submit_time if waits is None else workload.submit_time + waits.filled(0)


def finished_before(history: Workload, workload: Workload) -> list[FinishedJob]:
    """Give a history's jobs as the accounting would have recorded them, in the order of their ends.

    Jobs that ended after the workload's first submission are left out: nothing is learned from the
    future.

    Parameters
    ----------
    history
        Jobs with their logged waits.
    workload
        The run to come, with at least one job; times are given on its clock. The history's times
        are taken to be on that clock, too, unless both say when they began.

    Raises
    ------
    InputError
        If no job had ended by then.
    """
    offset = 0
    if history.unix_start_time is not None and workload.unix_start_time is not None:
        offset = history.unix_start_time - workload.unix_start_time
    start_time = logged_start_time(history) + offset
    end_time = start_time + history.actual_runtime
    past = np.flatnonzero(end_time <= int(workload.submit_time[0]))
    if not len(past):
        raise InputError(
            f"history {history.name}: none of its jobs had ended when the replayed log begins; "
            "give a log from before"
        )
    finished = []
    for job in past[np.argsort(end_time[past], kind="stable")].tolist():
        request = history.job_request(job)
        finished.append(
            FinishedJob(
                replace(
                    request,
                    job_id=f"history-{job}",
                    submit_time=request.submit_time + offset,
                ),
                int(start_time[job]),
                int(end_time[job]),
                int(history.actual_runtime[job]),
                history.ending(job) or Ending.COMPLETED,
            )
        )
    return finished


def placed_before(history: Workload, workload: Workload) -> Workload:
    """Let a history end where the workload begins, if one of them does not say when it was."""
    if history.unix_start_time is not None and workload.unix_start_time is not None:
        return history
    end_time = int((logged_start_time(history) + history.actual_runtime).max())
    return replace(
        history,
        unix_start_time=workload.unix_start_time,
        submit_time=history.submit_time + int(workload.submit_time[0]) - end_time,
    )
