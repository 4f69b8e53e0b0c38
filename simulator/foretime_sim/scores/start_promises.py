"""Start no later than: how tight a run's promises were, and whether they were kept.

Who promises: slack-based backfilling its latest starts (Talby and Feitelson 1999), and conservative
backfilling the first planned starts, unless it compresses in the order of submission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array, MaskedInt64Array

from foretime_sim.engine.schedule import Schedule
from foretime_sim.policies.families import Compression, Conservative, Slack
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slack import INFINITE_SLACK
from foretime_sim.scores.gains import mean
from foretime_sim.scores.metrics import Direction, Metric, rank
from foretime_sim.workloads.workload import Workload

PROMISE_METRICS = {
    metric.key: metric
    for metric in (
        Metric("promised_jobs", "jobs with a promise", "jobs", Direction.NEITHER),
        Metric("promised_waiting_jobs", "of them that waited", "jobs", Direction.NEITHER),
        Metric("promises_kept", "promises kept", "jobs", Direction.LARGER),
        Metric("promise_margin_p50_s", "bound minus start, median", "s"),
        Metric("promise_margin_p95_s", "bound minus start, p95", "s"),
        Metric("promised_wait_p50_s", "promised wait at most, median", "s"),
        Metric("promised_wait_p95_s", "promised wait at most, p95", "s"),
        Metric("promise_latest_by_s", "largest lateness", "s"),
        Metric("promise_outlived_jobs", "jobs that outlived t_sched", "jobs"),
    )
}
"""What `StartPromises` has, as it stands in JSON and CSV."""


class Judged(Protocol):
    """A schedule with what its jobs made of their estimates."""

    @property
    def start_time(self) -> Int64Array:
        """Shape (jobs,), seconds."""

    @property
    def outlived(self) -> BoolArray:
        """Shape (jobs,): ran longer than planned for."""


def promised_starts(policy: Policy, schedule: Schedule) -> MaskedInt64Array | None:
    """Give the latest start that each job was promised, seconds; masked where none was.

    ``None``: a policy that promises nothing.
    """
    if isinstance(policy.backfill, Slack) and schedule.latest_start is not None:
        unbounded = schedule.latest_start == INFINITE_SLACK
        return np.ma.MaskedArray(schedule.latest_start, mask=unbounded)
    family = policy.backfill
    keeps = (
        isinstance(family, Conservative) and family.compression is not Compression.SUBMISSION_ORDER
    )
    if keeps:
        return np.ma.MaskedArray(schedule.first_planned_start)
    return None


@dataclass(frozen=True, slots=True)
class StartPromises:
    """How a run's promises fared. Percentiles are of the promised jobs that waited.

    Attributes
    ----------
    promised_jobs
        Jobs with a promise.
    promised_waiting_jobs
        Those of them that did not start at once.
    promises_kept
        Jobs that started no later than promised.
    promise_margin_p50_s, promise_margin_p95_s
        How much earlier than promised a job started, seconds: what the promise was too wide by.
    promised_wait_p50_s, promised_wait_p95_s
        The promised bound of the wait, seconds.
    promise_latest_by_s
        By how much the latest job was late, seconds; 0 if none was.
    promise_outlived_jobs
        Jobs of the run that outlived what they were planned for: while there are none, nobody is
        late.
    """

    promised_jobs: float
    promised_waiting_jobs: float
    promises_kept: float
    promise_margin_p50_s: float | None
    promise_margin_p95_s: float | None
    promised_wait_p50_s: float | None
    promised_wait_p95_s: float | None
    promise_latest_by_s: float
    promise_outlived_jobs: float

    @classmethod
    def of(
        cls,
        workload: Workload,
        judged: Judged,
        promised: MaskedInt64Array | None,
        scored: BoolArray | None = None,
    ) -> Self | None:
        """Compare starts with what was promised (`promised_starts`).

        Parameters
        ----------
        workload, judged
            Jobs, and when they started.
        promised
            Shape (jobs,), seconds; ``None`` gives ``None``.
        scored
            Shape (jobs,): which of them count; ``None``: all.
        """
        if promised is None:
            return None
        chosen = ~np.ma.getmaskarray(promised)
        if scored is not None:
            chosen &= scored
        bound, start = np.ma.getdata(promised)[chosen], judged.start_time[chosen]
        submit = workload.submit_time[chosen]
        waited = start > submit
        margin = np.sort((bound - start)[waited])
        bound_of_wait = np.sort((bound - submit)[waited])

        def at(values: Int64Array, share: float) -> float | None:
            return float(values[rank(share, len(values)) - 1]) if len(values) else None

        return cls(
            promised_jobs=int(chosen.sum()),
            promised_waiting_jobs=int(waited.sum()),
            promises_kept=int((start <= bound).sum()),
            promise_margin_p50_s=at(margin, 0.5),
            promise_margin_p95_s=at(margin, 0.95),
            promised_wait_p50_s=at(bound_of_wait, 0.5),
            promised_wait_p95_s=at(bound_of_wait, 0.95),
            promise_latest_by_s=int((start - bound).max(initial=0)),
            promise_outlived_jobs=int(judged.outlived.sum()),
        )

    @property
    def broken(self) -> float:
        """Jobs that started later than promised."""
        return self.promised_jobs - self.promises_kept

    def to_dict(self) -> Mapping[str, float | None]:
        """Give the figures by the keys of `PROMISE_METRICS`."""
        return asdict(self)


def mean_promises(runs: Sequence[StartPromises | None]) -> StartPromises | None:
    """Give the means over repeats; ``None`` if a policy promises nothing."""
    known = [run.to_dict() for run in runs if run is not None]
    if not known:
        return None
    means: dict[str, Any] = {key: mean([run[key] for run in known]) for key in PROMISE_METRICS}
    return StartPromises(**means)
