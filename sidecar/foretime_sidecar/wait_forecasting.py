"""Keeps a forecast for every pending job, look by look, and answers what ifs.

Whoever looks at the queue only leaves the look here; the work is done by `refresh`, in a thread of
the daemon's or between two submissions of a replay.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from foretime_estimators.errors import InputError
from foretime_sim.waits.forecaster import WaitForecaster

from foretime_sidecar.clients.client import QueueState
from foretime_sidecar.forecast_board import Board, JobForecast, NewJobForecast, Waits
from foretime_sidecar.queue_moment import Look, NewJob, QueueMoment, running_jobs
from foretime_sidecar.queue_snapshot import as_submitted
from foretime_sidecar.settings import ForecastSettings


class WaitForecasting:
    """Forecasts for a queue.

    Parameters
    ----------
    settings
        How the queue is run forward.
    forecaster
        What forecasts the waits.

    Attributes
    ----------
    board
        What is forecast of the last look that was worked on; ``None`` before the first.
    """

    def __init__(self, settings: ForecastSettings, forecaster: WaitForecaster) -> None:
        self.board: Board | None = None
        self._settings = settings
        self._forecaster = forecaster
        self._lock = threading.Lock()  # of what the looking thread leaves
        self._look: Look | None = None
        self._has_looked = False
        self._has_board = threading.Event()
        # One forward run at a time, as a service node has other work.
        self._one_at_a_time = threading.Lock()

    def looked(self, look: Look) -> None:
        """Leave a look at the queue; takes no time."""
        with self._lock:
            self._look = look
        self._has_looked = True

    def refresh(self, *, few_samples: bool = False) -> bool:
        """Forecast all pending jobs of the latest look; say whether there was a new one."""
        with self._lock:
            look, self._look = self._look, None
        if look is None:
            return False
        self.board = self._forecast(look)
        self._has_board.set()
        return True

    def latest_board(self, patience_s: float) -> Board | None:
        """Give the board; if the queue has been looked at and there is none yet, wait for it."""
        if self._has_looked:
            self._has_board.wait(patience_s)
        return self.board

    def _forecast(self, look: Look) -> Board:
        moment = QueueMoment.of(look, self._settings)
        with self._one_at_a_time:
            waits = Waits.rows(self._forecaster.forecast(moment.everybody()))
        rows: dict[str, JobForecast] = {}
        tasks: dict[str, JobForecast] = {}
        places = moment.ahead().tolist()
        for place, row in enumerate(waits):
            column = moment.first_pending + place
            job, request = moment.taken.jobs[column], moment.requests[column]
            forecast = JobForecast(job, request, row, places[place])
            rows.setdefault(job.request.job_id, forecast)
            tasks.setdefault(request.job_id, forecast)
        rows |= self._kept_back(moment)
        assumptions = (
            f"the queue's order is {self._settings.order}, backfilling {self._settings.backfill}",
            "jobs run for their scheduled time",
            *moment.taken.not_modelled,
        )
        return Board(
            moment, tuple(rows.values()), {**rows, **tasks}, running_jobs(look), assumptions
        )

    def _kept_back(self, moment: QueueMoment) -> Mapping[str, JobForecast]:
        """Forecast the jobs that can't start now whatever is free, as if they were let go."""
        back = [left for left in moment.taken.left_out if left.job.state is QueueState.PENDING]
        if not back:
            return {}
        released = moment.released(self._settings)
        columns = {job.job_id: column for column, job in enumerate(released.requests)}
        ids = [left.job.request.job_id for left in back]
        asked = [columns[job_id] for job_id in ids if job_id in columns]
        among = replace(released.everybody(), asked=np.array(asked, dtype=np.int64))
        with self._one_at_a_time:
            waits = Waits.rows(self._forecaster.forecast(among))
        found = dict(zip((job_id for job_id in ids if job_id in columns), waits, strict=True))
        return {
            job_id: JobForecast(
                left.job,
                as_submitted(left.job),
                found.get(job_id),
                kept_back=left.reason,
                assumed=(f"it is {left.reason}: the wait is as if it were let go now",),
            )
            for job_id, left in zip(ids, back, strict=True)
        }

    def what_if(self, board: Board, job: NewJob) -> NewJobForecast:
        """Forecast a job as if it had been submitted when the board's queue was looked at.

        Raises
        ------
        InputError
            If the machine is too small for the job.
        """
        moment = board.moment
        processors = moment.taken.snapshot.machine_processors
        if job.request.processors > processors:
            raise InputError(
                f"processors = {job.request.processors}: only {processors} processors are up now; "
                "ask for less"
            )
        asked = moment.with_job(job)
        with self._one_at_a_time:
            (waits,) = Waits.rows(self._forecaster.forecast(asked))
        return NewJobForecast(job, waits, int(moment.places(asked.snapshot)[-1]), board)
