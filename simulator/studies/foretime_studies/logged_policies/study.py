"""A log as logged, gone through once: forward runs by two policies, and past waits beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_sim.engine.estimated_run import job_requests
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.scores.intervals import Weeks
from foretime_sim.waits.arrival_model import ResampledArrivals
from foretime_sim.waits.best_of import BestOf
from foretime_sim.waits.block_sums import Blocks, Figure
from foretime_sim.waits.calibration.calibrated_forecaster import CalibratedForecaster
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.forward_forecaster import ForwardForecaster
from foretime_sim.waits.learned_forecaster import LearnedForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.newcomers import Newcomers
from foretime_sim.waits.order_agreement import pair_counts
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.scores.moments import LOOKS_S, Asking, ask_forecasters, sampled_evenly
from foretime_sim.waits.scores.wait_sources import LoggedWaits, with_known_waits
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.progress import Progress
from foretime_studies.logged_policies.plausible_runs import PlausibleRuns, QueueOrders, SitePools
from foretime_studies.waits.answers import AskedOnce, PassingOn, SameAnswer
from foretime_studies.waits.runs import DAILY_S, LOGGED, LOGGED_NOW_S, WaitsRun
from foretime_studies.waits.scores import ScoredRun

GENERIC, HELD, PLAUSIBLE = "generic", "generic, held apart", "plausible"
"""Forward runs by FCFS and EASY, the same without jobs that are held, and by what is plausible."""
RUNS = (GENERIC, HELD, PLAUSIBLE)
PAST = "past waits"
CHOSEN = {kind: f"foretime, {kind}" for kind in (PAST, *RUNS)}
"""What `foretime` says that has one of these and past waits to choose from, calibrated."""
METHODS = (*RUNS, *CHOSEN.values())
"""In the order of tables."""


@dataclass(frozen=True, slots=True)
class LoggedStudy:
    """A log, gone through."""

    scored: ScoredRun  # forecasts by `METHODS`
    trust: dict[str, Figure]  # share of moments at which forward runs had the word, by `RUNS`
    # agreement, with_held: share of pairs that started in an order, by the order's name, without
    # and with the jobs that are held; a queue at a moment counts once, however many pairs it has
    agreement: dict[str, Figure]
    with_held: dict[str, Figure]
    queues: int  # how many queues at moments were compared, without jobs that are held
    held: float  # share of held jobs among those that waited at a moment
    left_out: int  # jobs of the log that are wider than their slurm_partition at the site

    @property
    def name(self) -> str:
        """Of the log."""
        return self.scored.run.name


class _Voices(PassingOn):
    """A `BestOf` that notes at each moment whether the forward run had the word."""

    def __init__(self, best: BestOf, forward: str) -> None:
        super().__init__(best)
        self._best = best
        self._forward = forward
        self._made_at: list[int] = []
        self._trusted: list[bool] = []

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Ask, and note who spoke."""
        answer = self._best.forecast(moment)
        self._made_at.append(moment.now)
        self._trusted.append(self._best.spoke[:1] == (self._forward,))
        return answer

    def trusted(self, weeks: Weeks | None, scored_from: int) -> Figure:
        """Give the share of moments from then on at which the forward run had the word."""
        made_at = np.array(self._made_at, dtype=np.int64)
        scored = made_at >= scored_from
        return Blocks.of(weeks, made_at[scored]).mean(np.array(self._trusted)[scored])


def study(
    workload: Workload,  # the log; jobs without a known wait are left out
    policy: Policy,  # what is plausible: an order and backfilling, or a site's Slurm
    *,
    # submissions, samples, seed: jobs asked about, forward runs at each moment, and the seed of
    # both
    submissions: int,
    samples: int,
    seed: int,
    warm_up: float,  # first part of the jobs, which is learned from only
    progress: Progress | None = None,
) -> LoggedStudy:
    """Go through a log with its waits, and score everybody."""
    workload, _ = with_known_waits(workload)
    left_out = 0
    if isinstance(policy.backfill, Slurm):
        fits = SitePools(policy.backfill.site).fits(job_requests(workload))
        left_out = int((~fits).sum())
        workload = workload.take(fits)
    runtimes = RuntimeHistories()
    arrivals, newcomers = ResampledArrivals(runtimes), Newcomers()
    # The first teaches the models of all.
    forward, held, by_policy = (
        ForwardForecaster(
            name,
            runtimes,
            arrivals,
            samples=samples,
            seed=seed,
            newcomers=newcomers,
            now_within_s=LOGGED_NOW_S,
        )
        for name in RUNS
    )
    plausible = PlausibleRuns(by_policy, policy, workload)
    once = {
        asked.name: AskedOnce(asked)
        for asked in (
            forward,
            PlausibleRuns(held, Policy(), workload),
            plausible,
            LearnedForecaster(seed=seed),
            Qbets(LOGGED_NOW_S),
        )
    }
    past = [name for name in once if name not in RUNS]
    voices = {
        kind: _Voices(
            BestOf(
                [SameAnswer(once[name]) for name in ([] if kind == PAST else [kind]) + past], kind
            ),
            kind,
        )
        for kind in CHOSEN
    }
    calibrated = [
        CalibratedForecaster(voice, CHOSEN[kind], now_within_s=LOGGED_NOW_S)
        for kind, voice in voices.items()
    ]
    asking = Asking(sampled_evenly(workload, submissions, seed), LOOKS_S, DAILY_S)
    source = LoggedWaits(workload, Policy())
    records = ask_forecasters(source, [*once.values(), *calibrated], asking, progress)
    scored_from = int(workload.submit_time[int(warm_up * len(workload))])
    run = WaitsRun(
        workload.name,
        LOGGED,
        len(workload),
        records,
        workload.submit_time[records.job],
        None,
        scored_from,
    )
    later = [queue for queue in plausible.queues if queue.now >= scored_from]
    weeks = Weeks.of(workload.submit_time[workload.submit_time >= scored_from], seed)
    ids = (job.job_id for job in source.requests)
    start_of = dict(zip(ids, source.start_time.tolist(), strict=True))
    agreement, queues = order_agreement(later, start_of, weeks)
    with_held, _ = order_agreement(later, start_of, weeks, held_too=True)
    held_jobs = [queue.held for queue in later]
    return LoggedStudy(
        ScoredRun(run),
        {kind: voices[kind].trusted(weeks, scored_from) for kind in RUNS},
        agreement,
        with_held,
        queues,
        float(np.concatenate(held_jobs).mean()) if later else math.nan,
        left_out,
    )


def order_agreement(
    queues: Sequence[QueueOrders],
    start_of: Mapping[str, int],
    weeks: Weeks | None,
    *,
    held_too: bool = False,
) -> tuple[dict[str, Figure], int]:
    """Give the share of pairs that started in each order, and how many queues were compared.

    Pairs waited together in one slurm_partition, and are of jobs that are not held unless they are
    to be. A queue at a moment counts once, as a deep one has more pairs than all others together.
    """
    if not queues:
        return {}, 0
    kept = ~np.concatenate([queue.held for queue in queues]) | held_too
    start = np.array([start_of[job] for queue in queues for job in queue.jobs], dtype=np.int64)
    number = np.repeat(np.arange(len(queues)), [len(queue.jobs) for queue in queues])
    partition = np.concatenate([queue.slurm_partition for queue in queues])
    where = np.stack([number, partition], axis=1)[kept]
    made_at = np.array([queue.now for queue in queues], dtype=np.int64)
    found, group = np.unique(where, axis=0, return_inverse=True)
    group = group.reshape(-1).astype(np.int64)
    shares: dict[str, Figure] = {}
    compared = 0
    for order in queues[0].places:
        place = np.concatenate([queue.places[order] for queue in queues])
        counts = pair_counts(group, place[kept], start[kept])
        pairs = counts.other > 0  # places have no ties
        share = (1 + counts.balance[pairs] / counts.other[pairs]) / 2
        shares[order] = Blocks.of(weeks, made_at[found[pairs, 0]]).mean(share)
        compared = int(pairs.sum())
    return shares, compared
