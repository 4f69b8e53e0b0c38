"""How long it takes to work off what stands before a job: all that can be said before anything."""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.queue_places import places
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment


class Backlog:
    """A `foretime_sim.waits.forecaster.WaitForecaster` that knows nothing and always answers.

    If jobs took all the time that they asked for, the work that runs and that stands before the job
    would last for this work / processors. The share of it that is really used is taken to be
    uniform, as that of single jobs nearly is (Mu'alem and Feitelson 2001, figure 6).
    """

    name = "backlog"
    oracle = False

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        snapshot = moment.snapshot
        running, pending = snapshot.running, snapshot.pending
        left = np.maximum(running.start_time + running.requested_time - moment.now, 0)
        place = places(snapshot, moment.policy)
        in_order = np.argsort(place)
        work = (pending.processors * pending.requested_time)[in_order]
        before = np.empty(len(pending), dtype=np.float64)
        before[in_order] = np.cumsum(work) - work + int((left * running.processors).sum())
        asked = before[moment.asked - len(running)] / snapshot.machine_processors
        to_come_s = moment.to_come_s()
        # Until a job can start, what stands before it is worked off, too.
        wait_s: Float64Array = np.maximum(np.outer(asked, LEVELS), to_come_s[:, np.newaxis])
        return WaitForecasts(wait_s, ((asked == 0) & (to_come_s == 0)).astype(np.float64))

    def submitted(self, job: JobRequest) -> None:
        """Learn nothing from a submission."""

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn nothing from a start."""

    def finished(self, job: FinishedJob) -> None:
        """Learn nothing from an end."""
