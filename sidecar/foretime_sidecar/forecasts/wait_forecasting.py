"""Keeps a forecast for every pending job, look by look, and answers what ifs.

Whoever looks at the queue only leaves the look here; the work is done by `refresh`, in a thread of
the daemon's or between two submissions of a replay.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.queue_places import places
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.turns import Turns

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.forecasts.alike_waits import MOST, AlikeWaits
from foretime_sidecar.forecasts.first_forecasts import FirstForecasts
from foretime_sidecar.forecasts.forecast_board import (
    Board,
    JobForecast,
    NewJobForecast,
    Waits,
    in_seconds,
)
from foretime_sidecar.forecasts.forecast_log import Served, ServedForecasts
from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.forecasts.job_ends import RUNTIME_LEVELS, ends
from foretime_sidecar.forecasts.latest_starts import KeptBounds, NotedBounds
from foretime_sidecar.forecasts.pbs_moment import check_room
from foretime_sidecar.forecasts.production_forecaster import Basis, CalibratedBest
from foretime_sidecar.forecasts.question_turns import QuestionTurns
from foretime_sidecar.forecasts.site_runs import SiteKnowledge
from foretime_sidecar.forecasts.slurm_moment import check_qos
from foretime_sidecar.forecasts.told_waits import keeps_the_head_first, told
from foretime_sidecar.forecasts.wait_map import MapDrawing, WaitMap, mapped
from foretime_sidecar.queue.forecast_question import Look, NewJob, QueueMoment, running_jobs
from foretime_sidecar.queue.prepared_jobs import as_submitted
from foretime_sidecar.queue.queue_events import Event, PastEvents, QueueEvents
from foretime_sidecar.queue.queue_snapshot import LeftOut
from foretime_sidecar.settings.settings import ForecastSettings, Settings
from foretime_sidecar.site_import.kept_site import schedules_as
from foretime_sidecar.store.model_states import ModelStates
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

RELIABILITY_DAYS = 30
_RELIABILITY_EVERY_S = 60
_MAP_EVERY_S = 300
_MAP_AT_A_TIME_S = 5.0
_SAVED_EVERY_S = 3600
_MODEL = "calibration"
_BY_ALIKE = (
    f"as the queue is long, this is what the {MOST} waiting jobs most like it are forecast, or a"
    " start at once where there is room"
)
# Answers that are kept of one look at the queue.
_MOST_ASKED = 100
# Jobs that ended longer ago are not learned from at a start.
_REMEMBERED_S = 180 * 86_400


class ServedForecaster(WaitForecaster, Protocol):
    """What the daemon asks of a forecaster besides.

    Attributes
    ----------
    hurried
        Whether less work must do, as the machine has other.
    turns
        Of those who wait while the whole queue is forecast: then others may `consider`.
    """

    hurried: bool
    turns: Turns

    @property
    def knows_limits(self) -> bool:
        """Whether it can say when limits let jobs start."""
        ...

    def basis(self, jobs: int) -> Basis:
        """Say what the last forecasts stand on, which were of a queue of so many jobs."""
        ...

    def consider(self, moment: Moment) -> WaitForecasts:
        """Forecast jobs that are not in the queue as the moment has it; nothing is kept of it."""
        ...

    @property
    def is_quick_for_one(self) -> bool:
        """Whether a question about one job is answered while somebody waits."""
        ...

    def starts_at_once(self, moment: Moment) -> bool:
        """Say whether the job asked about starts at once by the scheduler's plan."""
        ...

    def runtimes(
        self, jobs: Sequence[JobRequest], age: Int64Array, levels: Sequence[float]
    ) -> Float64Array:
        """Give quantiles of how long jobs run in all, those of an age from there on; seconds.

        Shape (jobs, levels).
        """
        ...

    def forget(self) -> None:
        """Begin anew, as at a start."""
        ...

    def state(self) -> dict[str, Any]:
        """Give what is not learned again from the jobs of a store, as JSON can hold it."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; `StateError` if it can't be used."""
        ...


def _is_over(made_at: int, now: int) -> bool:
    """Whether what is made anew every few minutes is due."""
    return not 0 <= now - made_at < _MAP_EVERY_S


def _as_if(left: LeftOut, waits: Waits | None, said: str) -> JobForecast:
    """Give the forecast of a job that is kept back."""
    return JobForecast(
        left.job,
        as_submitted(left.job),
        waits,
        kept_back=left.reason,
        assumed=(f"{left.reason}: {said}",),
    )


@contextlib.contextmanager
def _all_the_same() -> Iterator[None]:
    """Let forecasts be given even if they can't be kept."""
    try:
        yield
    except StateError as error:
        logger.warning("forecasts are not kept: %s", error)


def forecasting_of(
    settings: Settings,
    store: Store,
    lock: threading.RLock,
    bounds: NotedBounds | None,
    known: SiteKnowledge | None = None,
    *,
    unhurried: bool = False,
) -> WaitForecasting:
    """Give what forecasts waits as the settings say, learns from a store and keeps them there.

    ``known`` knows the site that the queue is run forward as; ``unhurried``, as in a replay: that
    may take as long as it takes.
    """
    return WaitForecasting(
        settings.forecast,
        CalibratedBest(settings.forecast.most_jobs, known, unhurried=unhurried),
        PastEvents(store, lock),
        ServedForecasts(store, lock, settings.api.smallest_group),
        ModelStates(store, lock),
        bounds,
    )


class WaitForecasting:
    """Forecasts for a queue.

    Parameters
    ----------
    settings
        How the queue is run forward.
    forecaster
        What forecasts the waits, and learns.
    past
        What happened before, and what is stored of it since; ``None``: nothing is learned.
    served
        Where forecasts are kept and scored; ``None``: nowhere.
    states
        Where is saved what the forecaster has learned; ``None``: nowhere.
    bounds
        Notes when jobs start no later than; ``None``: nobody does.

    Attributes
    ----------
    board
        What is forecast of the last look that was worked on; ``None`` before the first.
    reliability, kept_bounds
        How forecasts have done in the last 30 days, and how many bounds have been kept, as of a few
        minutes ago; ``None`` before.
    first
        The first board, while it is being made.
    failures, last_failure
        How often a refresh has failed, and why the last did; "" if it went through.
    """

    def __init__(
        self,
        settings: ForecastSettings,
        forecaster: ServedForecaster,
        past: PastEvents | None = None,
        served: ServedForecasts | None = None,
        states: ModelStates | None = None,
        bounds: NotedBounds | None = None,
    ) -> None:
        self.bounds = bounds
        self.failures = 0
        self.last_failure = ""
        self.board: Board | None = None
        self.first: FirstForecasts | None = None
        self._maps: dict[str | None, WaitMap] = {}
        self._drawing: MapDrawing | None = None
        self._scored_at: int | None = None
        self.reliability: Reliability | None = None
        self.kept_bounds: KeptBounds | None = None
        self._alike: AlikeWaits | None = None
        self._reliabilities: dict[int, tuple[int, Reliability]] = {}
        self._settings = settings
        self._forecaster = forecaster
        self._past = past
        self._served = served
        self._states = states
        self._saved_at = 0
        # What was asked for since the last refresh, and of the board that there was.
        self._asked: dict[tuple[str, JobRequest], Served] = {}
        self._events = QueueEvents()
        self._learned_past = False
        self._must_relearn = False  # as somebody was forgotten
        self._lock = threading.Lock()  # of what the looking thread leaves
        self._look: Look | None = None
        self._has_looked = False
        self._has_board = threading.Event()
        # One forward run at a time, as a service node has other work; questions overtake the queue.
        self._one_at_a_time = QuestionTurns()
        forecaster.turns = self._one_at_a_time

    def looked(self, look: Look) -> None:
        """Leave a look at the queue; takes no time."""
        with self._lock:
            self._look = look
        self._has_looked = True

    def forget(self, user: str) -> None:
        """Drop what a user asked; the next refresh learns anew what is stored of the others."""
        with self._lock:
            self._asked = {
                key: served for key, served in self._asked.items() if served.request.user != user
            }
            self._must_relearn = True

    def _relearn(self) -> None:
        """Begin as at a start, with what was learned of forecasts, in which there are no names."""
        with self._lock:
            due, self._must_relearn = self._must_relearn, False
        if not due or self._past is None:
            return
        self.save()
        with self._one_at_a_time:
            self._forecaster.forget()
        self._events, self._learned_past, self._past.last_seq = QueueEvents(), False, 0
        if self._served is not None:
            with _all_the_same():
                self._served.reread()
        if self.bounds is not None:
            with _all_the_same():
                self.bounds.reread()

    def refresh(self, *, hurried: bool = False, maps: bool = True) -> bool:
        """Forecast all pending jobs of the latest look; say whether there was a new one.

        There may be another by then. ``hurried``: with fewer samples; without ``maps`` none is
        drawn.
        """
        with self._lock:
            look, self._look = self._look, None
        if look is None:
            return False
        self._keep_asked()
        self._relearn()
        self._forecaster.hurried = hurried
        if self.board is None:
            self.first = FirstForecasts(len(look.queue.jobs))
        try:
            self._learn(look)
            self.board = self._forecast(look)
        finally:
            self.first = None
        # At once: whoever waits for it must not wait for what is noted of it, too.
        self._has_board.set()
        self._note_bounds(self.board.moment)
        self._keep(self.board)
        if maps:
            self._draw_maps(self.board)
        if self._scored_at is None or _is_over(self._scored_at, look.taken_at):
            self._scored_at = look.taken_at
            with _all_the_same():
                self.reliability = self.reliability_of(look.taken_at, RELIABILITY_DAYS)
                if self.bounds is not None:
                    self.kept_bounds = self.bounds.kept(look.taken_at, RELIABILITY_DAYS)
        if look.taken_at - self._saved_at >= _SAVED_EVERY_S:
            self.save()
        return True

    def latest_board(self, patience_s: float) -> Board | None:
        """Give the board; if the queue has been looked at and there is none yet, wait for it."""
        if self._has_looked:
            self._has_board.wait(patience_s)
        return self.board

    def reliability_of(self, now: int, days: int) -> Reliability | None:
        """Say how forecasts have done, as of a minute ago at most.

        Raises
        ------
        StateError
            If the store can't be read.
        """
        if self._served is None:
            return None
        known = self._reliabilities.get(days)
        if known is None or not 0 <= now - known[0] < _RELIABILITY_EVERY_S:
            known = self._reliabilities[days] = now, self._served.reliability(now, days)
        return known[1]

    def asked(self, kind: str, made_at: int, request: JobRequest, waits: Waits | None) -> None:
        """Note that somebody was told a forecast; takes no time.

        The same question counts once between two looks, and only so many questions do, so that
        nobody can fill the store by asking.
        """
        question = kind, replace(request, submit_time=0) if kind == "what-if" else request
        with self._lock:
            if waits is not None and len(self._asked) < _MOST_ASKED:
                self._asked.setdefault(question, Served(kind, made_at, request, waits))

    def _keep_asked(self) -> None:
        with self._lock:
            asked, self._asked = list(self._asked.values()), {}
        if self._served is not None:
            with _all_the_same():
                self._served.add(asked)

    def _keep(self, board: Board) -> None:
        # What is as if a job were let go says nothing of when it will be.
        pending = [
            (row.request, row.waits)
            for row in board.rows
            if row.waits is not None and row.kept_back is None
        ]
        if self._served is not None:
            with _all_the_same():
                self._served.keep(board.made_at, pending)

    def _note_bounds(self, moment: QueueMoment) -> None:
        if self.bounds is not None:
            with _all_the_same():
                self.bounds.note(moment)

    def _score(self, events: Sequence[Event]) -> None:
        if self._served is not None:
            with _all_the_same():
                self._served.learn(events)
        if self.bounds is not None:
            with _all_the_same():
                self.bounds.learn(events)

    def _learn(self, look: Look) -> None:
        """Learn what happened since the last look; at first all that is stored."""
        if self._past is None:
            return
        if not self._learned_past:
            self._learn_past(self._past, look.taken_at)
            self._learned_past = True
        if self.first is not None:
            self.first.learn(1.0)
        events = self._events.since_last(look, self._past.new())
        with self._one_at_a_time:  # nobody may be asking what if
            for event in events:
                event.tell_waits(self._forecaster)
        self._score(events)

    def _learn_past(self, past: PastEvents, now: int) -> None:
        """Take over what was saved, and learn the rest from what is stored."""
        self._saved_at = now
        self._restore()
        waited_for = []
        began: int | None = None
        for event in past.all(now - _REMEMBERED_S):
            if began is None:
                began = event.time
            elif self.first is not None and event.time > began:
                self.first.learn((event.time - began) / max(now - began, 1))
            event.tell_waits(self._forecaster)
            if self._waits_for(event):
                waited_for.append(event)
        self._score(waited_for)

    def _waits_for(self, event: Event) -> bool:
        """Say whether an event of before the start is what came of something that was told."""
        if self._served is not None and self._served.waits_for(event):
            return True
        return self.bounds is not None and self.bounds.bound_of(*event.key) is not None

    def _restore(self) -> None:
        if self._states is None:
            return
        try:
            saved = self._states.saved(_MODEL)
            if saved is not None:
                self._forecaster.restore(saved)
        except (StateError, LookupError, TypeError, ValueError) as error:
            logger.warning("what was learned of forecasts begins anew: %s", error)

    def save(self) -> None:
        """Save what the forecaster has learned, as of its last look; what fails is logged."""
        if self._states is None or self.board is None:
            return
        with self._one_at_a_time:
            state = self._forecaster.state()
        with _all_the_same():
            self._states.save(_MODEL, self.board.made_at, state)
        self._saved_at = self.board.made_at

    def _forecast(self, look: Look) -> Board:
        moment = QueueMoment.of(look, self._settings, knows_limits=self._forecaster.knows_limits)
        rows: dict[str, JobForecast] = {}
        tasks: dict[str, JobForecast] = {}
        ahead = places(moment.taken.snapshot, moment.policy)
        asked = moment.everybody()
        with self._one_at_a_time:
            made = self._forecaster.forecast(asked)
            basis = self._forecaster.basis(len(moment.taken.snapshot))
            waits = self._told(asked, made, ahead == 0, basis.site)
            running = running_jobs(look)
            ends_s = self._ends(list(running.values()), look.taken_at)
        for place, row in enumerate(waits):
            column = moment.first_pending + place
            job, request = moment.taken.jobs[column], moment.requests[column]
            forecast = JobForecast(job, request, row, int(ahead[place]))
            rows.setdefault(job.request.job_id, forecast)
            tasks.setdefault(request.job_id, forecast)
        rows |= self._kept_back(moment)
        assumptions = basis.texts
        if basis.runs_queue or basis.site is not None:
            not_modelled = moment.taken.not_modelled
            if basis.site is not None:
                how = f"the queue is simulated as {schedules_as(basis.site)}"
                if isinstance(basis.site, PbsSite):  # the moment's is a flat pool
                    not_modelled = ()
                not_modelled = (*not_modelled, *basis.leaves_out)
            else:
                how = (
                    f"the queue is simulated in the order {self._settings.order}, with "
                    f"{self._settings.backfill} backfilling"
                )
            assumptions = (how, *assumptions, *not_modelled)
        return Board(
            moment,
            tuple(rows.values()),
            {**rows, **tasks},
            running,
            assumptions,
            basis.site,
            dict(zip(running, ends_s, strict=True)),
        )

    def _told(
        self,
        asked: Moment,
        made: WaitForecasts,
        is_first: BoolArray,
        site: SlurmSite | PbsSite | None,
        new: NewJob | None = None,
    ) -> list[Waits | None]:
        """Give what is told of jobs: with their ends, and within the plan where that is a bound.

        ``is_first`` says who is the queue's first; ``new`` is the job if it is only asked about.
        """
        if not len(asked.asked):
            return []
        held = keeps_the_head_first(asked.snapshot, asked.policy, site)
        made = told(made, is_first & held)
        jobs = [asked.requests[column] for column in asked.asked.tolist()]
        factor = 1.0
        if new is not None and new.runs_as is not None:
            jobs, factor = [new.runs_as], new.runtime_factor
        runtime_s = self._forecaster.runtimes(jobs, np.zeros(len(jobs), np.int64), RUNTIME_LEVELS)
        limits = np.array([asked.requests[column].requested_time for column in asked.asked])
        runtime_s = np.minimum(runtime_s * factor, limits[:, np.newaxis])
        return Waits.rows(made, ends(made.wait_s, runtime_s))

    def _ends(self, running: Sequence[QueuedJob], now: int) -> list[tuple[int, ...]]:
        """Give how much longer jobs run, seconds at each of ``LEVELS``."""
        if not running:
            return []
        age = np.array([max(now - (job.start_time or now), 0) for job in running], dtype=np.int64)
        jobs = [as_submitted(job) for job in running]
        runtime_s = self._forecaster.runtimes(jobs, age, LEVELS)
        return in_seconds(np.maximum(runtime_s - age[:, np.newaxis], 0))

    def maps(self) -> list[WaitMap]:
        """Give the map of each slurm_partition of the latest board that has one yet, in order."""
        names = () if self.board is None else mapped(self.board)
        return [self._maps[name] for name in names if name in self._maps]

    @property
    def drawing(self) -> MapDrawing | None:
        """The map that is being drawn, a few seconds of it at each look; ``None``: none is."""
        return self._drawing

    def _draw_maps(self, board: Board) -> None:
        """Go on with the map that is drawn, or the oldest that is due: a few seconds of it."""
        names = mapped(board)
        if self._drawing is None or self._drawing.slurm_partition not in names:
            made_at = {name: self._maps[name].made_at for name in names if name in self._maps}
            oldest = min(names, key=lambda name: made_at.get(name, -math.inf))
            if oldest in made_at and not _is_over(made_at[oldest], board.made_at):
                return
            self._drawing = MapDrawing(board, oldest)
        drawing = self._drawing
        drawing.looks += 1
        until = time.thread_time() + _MAP_AT_A_TIME_S
        hurried = self._forecaster.hurried
        # It has many cells, and needs less care in each.
        self._forecaster.hurried = True
        try:
            while (cell := drawing.next_cell) is not None and time.thread_time() < until:
                try:
                    drawing.add(self.what_if(board, cell).waits)
                except InputError:  # longer or larger than may be
                    drawing.add(None)
        finally:
            self._forecaster.hurried = hurried
        if drawing.next_cell is None:
            self._maps[drawing.slurm_partition] = drawing.done()
            self._drawing = None

    def _kept_back(self, moment: QueueMoment) -> Mapping[str, JobForecast]:
        """Forecast the jobs that can't start now whatever is free, as if they were let go.

        Those that fit nowhere then, as if all nodes and slurm_partitions were up besides.
        """
        back = [left for left in moment.taken.left_out if left.job.state is QueueState.PENDING]
        found: dict[str, JobForecast] = {}
        for all_up in (False, True):
            missing = [left for left in back if left.job.request.job_id not in found]
            if not missing:
                break
            released = moment.released(self._settings, all_up=all_up)
            columns = {job.job_id: column for column, job in enumerate(released.requests)}
            let_go = [left for left in missing if left.job.request.job_id in columns]
            asked = [columns[left.job.request.job_id] for left in let_go]
            among = released.asking(asked)
            with self._one_at_a_time:
                made = self._forecaster.consider(among)
                nobody = np.zeros(len(asked), dtype=np.bool_)
                waits = self._told(among, made, nobody, None)
            as_if = "everything were up and it were let go now" if all_up else "it were let go now"
            for left, row in zip(let_go, waits, strict=True):
                found[left.job.request.job_id] = _as_if(left, row, f"the wait is as if {as_if}")
        nothing = "it can't start on this machine as it was submitted"
        return {
            left.job.request.job_id: found.get(left.job.request.job_id)
            or _as_if(left, None, nothing)
            for left in back
        }

    def what_if(self, board: Board, job: NewJob) -> NewJobForecast:
        """Forecast a job as if it had been submitted when the board's queue was looked at.

        Raises
        ------
        InputError
            If the machine or its hosts are too small for the job, no node takes jobs, or its QOS
            is none that it may have.
        """
        moment = board.moment
        if moment.taken.closed:
            raise InputError(f"{moment.taken.closed}; ask again when one does")
        processors = moment.taken.snapshot.machine_processors
        if job.request.processors > processors:
            raise InputError(
                f"processors = {job.request.processors}: only {processors} processors are up now; "
                "ask for less"
            )
        if isinstance(board.site, PbsSite) and job.chunks is not None:
            check_room(board.site, job.chunks, job.request.queue, moment.taken.snapshot.away)
        if isinstance(board.site, SlurmSite) and job.qos is not None:
            request = job.request
            check_qos(board.site, job.qos, request.user, request.project, request.queue)
        if job.let_go_s:
            likely = moment.look.taken_at + job.let_go_s[LEVELS.index(0.5)]
            job = replace(job, eligible_time=max(job.eligible_time or likely, likely))
        asked = moment.with_job(job)
        ahead = int(places(asked.snapshot, moment.policy)[-1])
        assumed: tuple[str, ...] = ()
        with self._one_at_a_time:
            made = None
            if not self._forecaster.is_quick_for_one:
                made = self._by_alike(asked, ahead, board)
                assumed = (_BY_ALIKE,)
            if made is None:
                made, assumed = self._forecaster.consider(asked), ()
            (waits,) = self._told(asked, made, np.array([ahead == 0]), board.site, job)
        if job.let_go_s and waits is not None:
            waits = waits.let_go(job.let_go_s)
        return NewJobForecast(job, waits, ahead, board, assumed)

    def _by_alike(self, asked: Moment, ahead: int, board: Board) -> WaitForecasts | None:
        """Give the forecast of the waiting jobs most like one; ``None``: none is."""
        if self._alike is None or self._alike.board is not board:
            self._alike = AlikeWaits(board)
        wait_s = self._alike.wait_s(asked.requests[int(asked.asked[0])], ahead)
        if wait_s is None:
            return None
        at_once = self._forecaster.starts_at_once(asked)
        if at_once:  # those like it that waited did not
            wait_s = np.zeros(len(LEVELS))
        planned_s = np.array([0.0 if at_once else np.nan])
        wait_s = np.maximum(wait_s, asked.to_come_s()[0])
        return WaitForecasts(wait_s[np.newaxis], np.array([float(at_once)]), planned_s)
