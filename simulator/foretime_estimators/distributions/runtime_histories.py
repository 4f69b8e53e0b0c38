"""Runtimes as distributions learned from finished jobs, from those most like one to all.

What is expected of a job is the mixture over its kinds of
`foretime_estimators.estimators.job_kinds`, in which a finished job stands for the share R of its
request that it took. What all kinds leave open is uniform in log runtime up to the request (Downey
1997, section 3.1), its last part at the request.

- Of a job with an age, kinds know only as much as they know of jobs that lived so long: what lies
  below the age is no evidence. A kind of which nobody did leaves all to the coarser ones.
- A cancelled job would have run longer: its R is a lower bound. So is that of a job that still
  runs, in the kinds of its user: the first of a campaign to end are its shortest, and the others
  show it by their ages. A bound's weight goes to what lies above it in its kind (Kaplan and Meier);
  only what lies above all else there is left to other kinds.
- Jobs of one campaign are drawn together (`foretime_estimators.distributions.shared_effects`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.distributions.runtime_quantiles import (
    NORMAL_SCORES,
    RuntimeQuantiles,
    settled_within,
)
from foretime_estimators.distributions.shared_effects import CampaignCorrelation, SharedEffects
from foretime_estimators.estimators.job_kinds import Ageing, BackOff, Kind, KindHistories, kinds_of
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S

_OF_ONE_USER = frozenset(
    ["executable", "user-request-size", "user-request", "user-class", "user"],
)
"""Kinds in which jobs that still run are evidence, too."""
_OPEN_VALUES = 8
"""Values that stand for what is left open."""
_LEAST_SAY = 1e-3
"""A kind of a smaller share is left out."""
_ROWS_AT_ONCE = 1_000
"""Of as many jobs the values are laid out together: some 150 of each."""
_PER_KIND = 64.0
"""Distance between kinds where they share one sorted axis; log R lies within half of it."""
_AGEING = Ageing(8.0, 4.0)


@dataclass(frozen=True, slots=True)
class RuntimeHistoriesSettings:
    """Settings of `RuntimeHistories`; the defaults were found on Mira, COARE and Theta.

    Attributes
    ----------
    ageing
        How the jobs of a kind weigh.
    remembered_jobs
        Jobs of each kind that are kept.
    window_s
        A kind of which no job has ended for so long is forgotten, seconds.
    campaign_correlation
        How far jobs of one campaign are off together, before it is learned; 0 to 1.
    user_share
        The correlation of a user's jobs in different campaigns, as a share of that; 0 to 1.
    """

    ageing: Ageing = _AGEING
    remembered_jobs: int = 40
    window_s: int = 180 * DAY_S
    campaign_correlation: float = 0.4
    user_share: float = 0.3

    def __post_init__(self) -> None:
        if self.remembered_jobs < 1:
            raise InputError(
                f"runtime histories: remembered_jobs {self.remembered_jobs}: give 1 or more"
            )
        if self.window_s < 1:
            raise InputError(f"runtime histories: window_s {self.window_s}: give 1 or more seconds")
        for name in ("campaign_correlation", "user_share"):
            if not 0 <= getattr(self, name) <= 1:
                value = getattr(self, name)
                raise InputError(f"runtime histories: {name} {value} must be from 0 to 1")


class RuntimeHistories:
    """A `foretime_estimators.distributions.runtime_distribution.RuntimeDistribution`.

    Parameters
    ----------
    settings
        The defaults if ``None``.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_estimators import Ending, FinishedJob, JobRequest
    >>> from foretime_estimators.distributions.runtime_histories import RuntimeHistories
    >>> histories = RuntimeHistories()
    >>> job = JobRequest("17", "ann", "physics", processors=8, requested_time=3600, submit_time=0)
    >>> for runtime in range(600, 900, 30):
    ...     histories.learn_one(FinishedJob(job, 0, runtime, runtime, Ending.COMPLETED))
    >>> rng = np.random.default_rng(1)
    >>> drawn = histories.sample([job], np.array([0]), now=900, samples=1000, rng=rng)
    >>> bool(600 < np.median(drawn) < 900)
    True
    """

    def __init__(self, settings: RuntimeHistoriesSettings | None = None) -> None:
        self.settings = settings if settings is not None else RuntimeHistoriesSettings()
        remembered = self.settings.remembered_jobs
        # (runtime, requested time, whether the runtime is a lower bound)
        self._jobs: KindHistories[tuple[int, int, bool]] = KindHistories(
            remembered, self.settings.window_s
        )
        self._back_off = BackOff(self.settings.ageing, remembered)
        self._campaigns = CampaignCorrelation(self.settings.campaign_correlation)
        self._running_weights = np.ones(remembered)
        # As `_values_of`, of kinds that have not changed since.
        self._values: dict[Kind, Float64Array] = {}

    def learn_one(self, job: FinishedJob) -> None:
        """Learn from a job that has come to its end; call in order of end times."""
        evidence = evidence_of(job)
        if evidence is Evidence.NONE:
            return
        requested = job.request.requested_time
        runtime = requested if job.ending is Ending.TIMED_OUT else job.actual_runtime
        runtime = max(1, min(runtime, requested))
        bound = evidence is Evidence.LOWER_BOUND and runtime < requested
        if not bound:
            self._campaigns.judge(
                job, math.log(runtime), lambda: self._table([(job.request, 0)], [1])[0]
            )
        what = (runtime, requested, bound)
        for kind in self._jobs.remember(job.request, what, job.end_time):
            self._values.pop(kind, None)

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes of all the jobs together, as one sample a row; see the protocol."""
        if not jobs:
            return np.empty((samples, 0), dtype=np.int64)
        table = np.exp(self._log_quantiles(jobs, age))
        scores = self.shared.scores(jobs, samples, rng)
        step = 1 / (NORMAL_SCORES[1] - NORMAL_SCORES[0])
        place = np.clip((scores - NORMAL_SCORES[0]) * step, 0, len(NORMAL_SCORES) - 1.001)
        before = place.astype(np.int64)
        part = place - before
        before += np.arange(len(jobs)) * len(NORMAL_SCORES)
        flat = table.ravel()
        low = flat[before]
        runtime = np.rint(low + part * (flat[before + 1] - low)).astype(np.int64)
        requested = np.array([job.requested_time for job in jobs], dtype=np.int64)
        least = np.minimum(np.asarray(age, dtype=np.int64) + 1, requested)
        clipped: Int64Array = np.clip(runtime, least, requested)
        return clipped

    def quantiles(
        self, jobs: Sequence[JobRequest], age: Int64Array, levels: Sequence[float]
    ) -> Float64Array:
        """Give quantiles of each job's runtime by itself.

        Parameters
        ----------
        jobs
            Running or not.
        age
            How long each has run, seconds, 0 for one that has not started; shape (jobs,).
        levels
            Probabilities, above 0 and below 1.

        Returns
        -------
        Float64Array
            Seconds from the job's start, above its age and up to its request, never falling along
            a row; shape (jobs, levels).
        """
        if not jobs:
            return np.empty((0, len(levels)))
        table = self._log_quantiles(jobs, age)
        scores = np.array([NormalDist().inv_cdf(level) for level in levels])
        step = NORMAL_SCORES[1] - NORMAL_SCORES[0]
        place = np.clip((scores - NORMAL_SCORES[0]) / step, 0, len(NORMAL_SCORES) - 1.001)
        before = place.astype(np.int64)
        log_runtime = table[:, before] + (place - before) * (
            table[:, before + 1] - table[:, before]
        )
        requested = np.array([job.requested_time for job in jobs], dtype=np.float64)
        least = np.minimum(np.asarray(age) + 1.0, requested)
        runtime: Float64Array = np.exp(log_runtime)
        return runtime.clip(least[:, np.newaxis], requested[:, np.newaxis])

    @property
    def shared(self) -> SharedEffects:
        """How far jobs of one user and campaign are off together, as learned so far."""
        campaign = self._campaigns.correlation
        return SharedEffects(campaign * self.settings.user_share, campaign)

    def _log_quantiles(self, jobs: Sequence[JobRequest], age: Int64Array) -> Float64Array:
        """Give log runtimes at the levels of `NORMAL_SCORES`, shape (jobs, levels)."""
        numbers: dict[tuple[object, ...], int] = {}
        rows: list[tuple[JobRequest, int]] = []
        alike_jobs: list[int] = []
        row = np.empty(len(jobs), dtype=np.int64)
        for place, (job, old) in enumerate(zip(jobs, np.asarray(age).tolist(), strict=True)):
            alike = (
                job.user,
                job.project,
                job.processors,
                job.requested_time,
                job.queue,
                job.executable,
                old,
            )
            number = numbers.setdefault(alike, len(numbers))
            if number == len(rows):
                rows.append((job, old))
                alike_jobs.append(0)
            alike_jobs[number] += 1
            row[place] = number
        return self._table(rows, alike_jobs)[row]

    def _table(
        self, rows: Sequence[tuple[JobRequest, int]], alike_jobs: Sequence[int]
    ) -> Float64Array:
        """Give log runtimes of jobs with their ages, and of how many jobs each is.

        Returns
        -------
        Float64Array
            At the levels of `NORMAL_SCORES`; shape (rows, levels).
        """
        running: dict[Kind, list[tuple[int, int, bool]]] = {}
        kinds: dict[Kind, int] = {}
        row_of: list[int] = []
        kind_of: list[int] = []
        place_of: list[int] = []  # of the kind, from fine to coarse
        for row, (job, age) in enumerate(rows):
            what = (min(age, job.requested_time), job.requested_time, True)
            for place, kind in enumerate(kinds_of(job)):
                if age and kind[0] in _OF_ONE_USER:
                    running.setdefault(kind, []).extend([what] * alike_jobs[row])
                row_of.append(row)
                kind_of.append(kinds.setdefault(kind, len(kinds)))
                place_of.append(place)
        log_request = np.log([job.requested_time for job, _ in rows])
        log_age = np.log([max(age, 1) for _, age in rows])
        begun = np.array([age > 0 for _, age in rows])

        log_share, known_weight, known_bound, first = self._known(kinds, running)
        # In each kind of a row, the values beyond its age: from `begin` to the kind's end.
        rows_of, whose = np.array(row_of), np.array(kind_of)
        axis = np.repeat(np.arange(len(kinds)), np.diff(first)) * _PER_KIND + log_share
        beyond = np.where(begun, log_age - log_request, -_PER_KIND / 2)
        begin = np.searchsorted(axis, whose * _PER_KIND + beyond[rows_of], side="right")
        # A kind's evidence is what it knows of jobs that lived so long.
        above = np.append(np.cumsum(known_weight[::-1])[::-1], 0.0)
        each = np.maximum(above[begin] - above[first[whose + 1]], 0.0)
        most = max(place_of) + 1
        at = rows_of * most + np.array(place_of)
        evidence = np.zeros(len(rows) * most)
        evidence[at] = each
        shares, left_open = self._back_off.share_out(evidence.reshape(len(rows), most))
        share = shares.ravel()[at]
        # Of each kind of a row, as many values as it has beyond the age, if it has a say.
        length = np.where(share * each > _LEAST_SAY, first[whose + 1] - begin, 0)
        # What is left open lies between the age and the request.
        part = np.append((np.arange(_OPEN_VALUES - 1) + 0.5) / (_OPEN_VALUES - 1), 1.0)
        low = np.minimum(np.where(begun, log_age, 0.0), log_request)[:, np.newaxis]
        open_values = low + part * (log_request[:, np.newaxis] - low)
        tables = []
        for row in range(0, len(rows), _ROWS_AT_ONCE):
            some = slice(*np.searchsorted(rows_of, [row, row + _ROWS_AT_ONCE]))
            # One entry for each such value.
            entry = np.repeat(np.arange(len(whose))[some], length[some])
            before = length[some].cumsum() - length[some]
            value = np.arange(len(entry)) + np.repeat(begin[some] - before, length[some])
            weight = known_weight[value] * share[entry]
            seen = weight > 0
            of, weight, value = rows_of[entry[seen]], weight[seen], value[seen]
            log_runtime = np.maximum(log_share[value] + log_request[of], 0.0)
            open_of = np.repeat(np.arange(row, min(row + _ROWS_AT_ONCE, len(rows))), _OPEN_VALUES)
            quantiles = RuntimeQuantiles(
                np.concatenate([of, open_of]) - row,
                np.concatenate([log_runtime, open_values[row : row + _ROWS_AT_ONCE].ravel()]),
                np.concatenate([weight, left_open[open_of] / _OPEN_VALUES]),
                np.concatenate([known_bound[value], np.zeros(len(open_of), dtype=np.bool_)]),
            )
            tables.append(quantiles.table())
        return np.concatenate(tables)

    def _known(
        self, kinds: Mapping[Kind, int], running: Mapping[Kind, Sequence[tuple[int, int, bool]]]
    ) -> tuple[Float64Array, Float64Array, BoolArray, Int64Array]:
        """Give what is known of kinds, one after the other, each in the order of R.

        A job that still runs weighs as much as the share of what is remembered of its kind that
        lies below its age: what it has shown to be too short.

        Returns
        -------
        tuple
            log R, weight and whether it is a bound, shape (values,); where each kind's begin, and
            the end, shape (kinds + 1,).
        """
        parts: list[Float64Array] = []
        unsettled: list[bool] = []
        for kind in kinds:
            known = self._values.get(kind)
            if known is None:
                known = _values_of(self._jobs.get(kind) or (), self._back_off.weights)
                if known.shape[1]:
                    self._values[kind] = known
            if kind in running:
                # Of very many, one in so many stands for all.
                each = -(-len(running[kind]) // self.settings.remembered_jobs)
                more = _values_of(running[kind][::each], self._running_weights)
                below = np.searchsorted(known[0], more[0], side="right")
                more[1] *= each * below / known.shape[1] if known.shape[1] else each
                if more[1, -1] > 0:  # the oldest weighs most
                    known = _in_order(np.concatenate([known, more[:, more[1] > 0]], axis=1))
            parts.append(known)
            unsettled.append(bool(known[2].any()))
        length = np.array([part.shape[1] for part in parts])
        first = np.concatenate(([0], np.cumsum(length)))
        log_share, weight, is_bound = np.concatenate(parts, axis=1)
        bound = is_bound > 0
        if any(unsettled):
            some = np.repeat(unsettled, length)
            of = np.repeat(np.arange(np.count_nonzero(unsettled)), length[unsettled])
            weight[some], bound[some] = settled_within(
                of, log_share[some], weight[some], bound[some]
            )
        return log_share, weight, bound, first

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            "runtime_histories": 1,
            "settings": asdict(self.settings),
            "kinds": [
                [kind, end_time, [list(job) for job in jobs]]
                for kind, end_time, jobs in self._jobs.state()
            ],
            "campaigns": self._campaigns.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another model saved it, or it was learned under other settings.
        """
        if state.get("runtime_histories") != 1:
            raise StateError(
                "runtime histories: the state given was saved by another model: learn the history"
                " anew"
            )
        if state["settings"] != asdict(self.settings):
            raise StateError(
                "runtime histories: the state was learned under other settings: learn the history"
                " anew"
            )
        self._jobs.restore(
            [
                (kind, end_time, [(runtime, asked, bound) for runtime, asked, bound in jobs])
                for kind, end_time, jobs in state["kinds"]
            ]
        )
        self._campaigns.restore(state["campaigns"])
        self._values.clear()


def _values_of(jobs: Sequence[tuple[int, int, bool]], weights: Float64Array) -> Float64Array:
    """Give log R, the weight, and 1 for a bound, in the order of R; shape (3, jobs)."""
    if not jobs:
        return np.empty((3, 0))
    runtime, asked, bound = np.array(jobs, dtype=np.float64).T
    return _in_order(np.stack([np.log(runtime / asked), weights[-len(jobs) :], bound]))


def _in_order(values: Float64Array) -> Float64Array:
    return values[:, np.lexsort((values[2], values[0]))]
