"""Which endings of a job tell how accurate its request was, and how.

==============  ===========  ====================================================================
ending          evidence     why
==============  ===========  ====================================================================
completed       exact        the program was done
failed          exact        the program ended by itself; the next one may end as soon
out-of-memory   exact        likewise
timed-out       exact, R=1   cut at its limit: R is at least 1, and t_sched never exceeds t_req
cancelled       lower bound  it would have run longer; never started: no evidence
node-failed     none         the machine ended it, not the program
preempted       none         likewise
requeued        none         it runs again, and is counted then
never-started   none         it has no runtime
==============  ===========  ====================================================================

Suspended time never counts: `FinishedJob.actual_runtime` leaves it out.
"""

from __future__ import annotations

import enum

from foretime_estimators.jobs.jobs import Ending, FinishedJob

MICRO = 1_000_000
"""Accuracies and adjustments are held as whole millionths, rounded up."""


class Evidence(enum.Enum):
    """What a finished job's R is to the history."""

    EXACT = "exact"
    LOWER_BOUND = "lower-bound"
    NONE = "none"


EVIDENCE = {
    Ending.COMPLETED: Evidence.EXACT,
    Ending.FAILED: Evidence.EXACT,
    Ending.OUT_OF_MEMORY: Evidence.EXACT,
    Ending.TIMED_OUT: Evidence.EXACT,
    Ending.CANCELLED: Evidence.LOWER_BOUND,
    Ending.NODE_FAILED: Evidence.NONE,
    Ending.PREEMPTED: Evidence.NONE,
    Ending.REQUEUED: Evidence.NONE,
    Ending.NEVER_STARTED: Evidence.NONE,
}
"""What each ending tells of a job that has run."""


def evidence_of(job: FinishedJob) -> Evidence:
    """How the job's runtime counts; a job that never started counts as nothing however it ended.

    Examples
    --------
    >>> from foretime_estimators import Ending, FinishedJob, JobRequest
    >>> from foretime_estimators.jobs.endings import evidence_of
    >>> job = JobRequest("17", "ann", "physics", processors=8, requested_time=3600, submit_time=0)
    >>> evidence_of(FinishedJob(job, 60, 960, actual_runtime=900, ending=Ending.CANCELLED))
    <Evidence.LOWER_BOUND: 'lower-bound'>
    """
    return Evidence.NONE if job.start_time is None else EVIDENCE[job.ending]


def accuracy_micro(job: FinishedJob) -> int:
    """R in millionths, rounded up, at most `MICRO`; `MICRO` for a job cut at its limit.

    Rounding up and cutting at 1 keep the order of the R values, so that a percentile of these is
    the percentile of R, rounded up and cut at 1.
    """
    if job.ending is Ending.TIMED_OUT:
        return MICRO
    return min(MICRO, -(-job.actual_runtime * MICRO // job.request.requested_time))
