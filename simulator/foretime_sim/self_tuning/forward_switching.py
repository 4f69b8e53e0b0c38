"""Self-tuning by forward runs: which candidate does best in the futures of this moment.

dynP (Streit 2002, section 3.2) compares the plans of its policies on requested times, for the jobs
that wait now. Here each candidate is run forward over several sampled futures, the same for all:
runtimes drawn from what has been learned, and jobs that arrive later. What is compared is how long
the jobs of those futures respond, weighted by width. A decision needs only a
`foretime_sim.engine.snapshot.Snapshot`, and what was learned by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.forward import SampledArrivals, forward_runs
from foretime_sim.engine.snapshot import PendingJobs, Snapshot
from foretime_sim.policies.families import Easy
from foretime_sim.policies.order import Order
from foretime_sim.self_tuning.forward_candidates import Candidate, OrderedBy, Patience, due_first


def width_candidates() -> tuple[Candidate, ...]:
    """Give the candidates that are chosen between unless others are given; the first begins."""

    def sjf(width_exponent: float, by: OrderedBy = OrderedBy.EXPECTED) -> Candidate:
        return Candidate(Order.SJF, by, width_exponent, Easy(depth=16))

    return (
        sjf(0.5),
        sjf(0.25),
        sjf(1.0),
        sjf(0.5, OrderedBy.REQUESTED),
        sjf(0.0, OrderedBy.REQUESTED),
    )


@dataclass(frozen=True, slots=True)
class ForwardSwitching:
    """How a scheduler tunes itself by forward runs.

    Attributes
    ----------
    candidates
        What it chooses between; it begins with the first.
    every_jobs
        It decides after so many submissions, as soon as at least two jobs wait.
    samples
        Futures at each decision.
    ahead_jobs
        A future reaches as far ahead as so many submissions back, and until all its jobs have
        started.
    memory
        Share of its weight that a decision's comparison keeps at the next one, from 0 to below 1.
    slackness
        By what share a new candidate must be better (Streit 2002, section 6), 0 to below 1.
    patience
        When jobs go before all orders.
    half_life_jobs
        Of what is learned of runtimes for the order, see
        `foretime_estimators.estimators.job_kinds.Ageing`.
    seed
        Of the futures.

    Examples
    --------
    >>> from foretime_sim.self_tuning.forward_switching import ForwardSwitching
    >>> settings = ForwardSwitching(every_jobs=100, samples=2)
    >>> len(settings.candidates)
    5
    """

    candidates: tuple[Candidate, ...] = width_candidates()
    every_jobs: int = 500
    samples: int = 1
    ahead_jobs: int = 2_500
    memory: float = 0.9
    slackness: float = 0.05
    patience: Patience = field(default_factory=Patience)
    half_life_jobs: float = 128.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.candidates or len(set(self.candidates)) < len(self.candidates):
            raise InputError("forward switching: give one candidate or more, each once")
        for name in ("every_jobs", "samples", "ahead_jobs"):
            if (value := getattr(self, name)) < 1:
                raise InputError(f"forward switching: {name} {value}: give 1 or more")
        for name in ("memory", "slackness"):
            if not 0 <= (share := getattr(self, name)) < 1:
                raise InputError(f"forward switching: {name} {share}: give 0 to below 1")


@dataclass(frozen=True, slots=True)
class Future:
    """One way in which things may go on.

    Attributes
    ----------
    actual_runtime
        Of the snapshot's jobs, in the order of its columns, seconds; above the ages of those that
        run.
    arrivals
        Jobs that are submitted later, each of sample 0; ``None``: nobody.
    expected_s
        Mean runtimes of the arrivals as learned, seconds; shape (arrivals,).
    """

    actual_runtime: Int64Array
    arrivals: SampledArrivals | None = None
    expected_s: Float64Array | None = None


def forward_costs(
    snapshot: Snapshot,
    expected_s: Float64Array,
    due: Int64Array,
    futures: Sequence[Future],
    candidates: Sequence[Candidate],
) -> Float64Array:
    """Say what each candidate would cost, if it were kept to in each future.

    Parameters
    ----------
    snapshot
        Its priorities do not matter.
    expected_s
        Mean runtimes of its pending jobs as learned, seconds; shape (pending,).
    due
        When each of them has waited for too long (`Patience.until`), seconds.
    futures, candidates
        What is run, and in which ways.

    Returns
    -------
    Float64Array
        Sum of processors * (end - submission) over the jobs that wait or are submitted later,
        processor-seconds; shape (candidates, futures).
    """
    costs = np.empty((len(candidates), len(futures)))
    for place, future in enumerate(futures):
        whole, all_expected, runtimes = _with_arrivals(snapshot, expected_s, future)
        waiting = whole.pending
        waits = len(snapshot.pending)
        ran = np.minimum(runtimes[len(whole.running) :], waiting.requested_time)
        for row, candidate in enumerate(candidates):
            priority = candidate.priorities(
                waiting.joins_at(), waiting.processors, waiting.requested_time, all_expected
            )
            priority[:waits] = due_first(priority[:waits], due, snapshot.now)
            there = whole.with_priorities(priority)
            starts = forward_runs(there, candidate.policy(), runtimes[np.newaxis], threads=1)[0]
            response = starts[len(whole.running) :] + ran - waiting.joins_at()
            costs[row, place] = float(waiting.processors @ response)
    return costs


def _with_arrivals(
    snapshot: Snapshot, expected_s: Float64Array, future: Future
) -> tuple[Snapshot, Float64Array, Int64Array]:
    """Give the snapshot with a future's arrivals as pending jobs, and their runtimes."""
    arrivals = future.arrivals
    if arrivals is None or not len(arrivals.sample):
        return snapshot, expected_s, future.actual_runtime
    if snapshot.machine is not None or future.expected_s is None:
        raise InputError("forward switching: arrivals are for a flat pool, with expected runtimes")
    now = snapshot.pending
    pending = PendingJobs(
        np.concatenate([now.joins_at(), arrivals.submit_time]),
        np.concatenate([now.processors, arrivals.processors]),
        np.concatenate([now.requested_time, arrivals.requested_time]),
    )
    return (
        replace(snapshot, pending=pending),
        np.concatenate([expected_s, future.expected_s]),
        np.concatenate([future.actual_runtime, arrivals.actual_runtime]),
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided at one moment, and why.

    Attributes
    ----------
    now
        Seconds.
    waiting
        Jobs that waited.
    before, chosen
        Places among the candidates.
    relative_cost
        What each cost in the futures of this moment, by what the cheapest did.
    remembered_cost
        The same with earlier decisions as far as they count: what was decided by.
    """

    now: int
    waiting: int
    before: int
    chosen: int
    relative_cost: tuple[float, ...]
    remembered_cost: tuple[float, ...]


class ForwardSwitcher:
    """Chooses by costs, and remembers them.

    Parameters
    ----------
    settings
        How.
    """

    def __init__(self, settings: ForwardSwitching) -> None:
        self.settings = settings
        self.current = 0
        self._remembered = np.zeros(len(settings.candidates))

    def decide(self, now: int, waiting: int, costs: Float64Array) -> Decision:
        """Decide between the candidates.

        Costs of all decisions so far are added up, the older the less: what differs between futures
        that were drawn evens out, and a moment at which much waits counts for more.

        Parameters
        ----------
        now, waiting
            Seconds; how many jobs wait.
        costs
            As `forward_costs` gives them.
        """
        here = costs.sum(axis=1)
        self._remembered = self.settings.memory * self._remembered + here
        best, before = int(np.argmin(self._remembered)), self.current
        enough = (1 - self.settings.slackness) * self._remembered[before]
        if self._remembered[best] < enough:
            self.current = best
        return Decision(
            now, waiting, before, self.current, _relative(here), _relative(self._remembered)
        )


def _relative(costs: Float64Array) -> tuple[float, ...]:
    least = costs.min()
    return tuple((costs / least).tolist()) if least > 0 else (1.0,) * len(costs)
