"""How well waits are forecast at a real Slurm site: noon polls of Graham, May and June 2021.

The published study (B. Popa and G. Alain, Mila 2023; see `graham2021_columns`) tests on seven days
drawn at random and learns from days around them, later ones too. Here, by contrast, every noon is
forecast from what was known at that very noon: of jobs that still waited then, only that they did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.survival_forest import ForestSettings

from foretime_studies.graham2021.columns import KNOWN
from foretime_studies.graham2021.features import features_of
from foretime_studies.graham2021.forests import (
    Grower,
    Plan,
    Told,
    known_at,
    published_split,
    together,
)
from foretime_studies.graham2021.polls import NoonPolls

SETTLING_POLLS = 14
"""First polls: only learned from, and what our settings were chosen on; 14 days to 14 May."""
GAP_DAYS = 7
"""Between what is learned from and the poll, where it is tested that no near-copies help."""
GAP = f"the same, up to {GAP_DAYS} days before"
SETTINGS = ForestSettings(trees=40, least_jobs=10, tried=0.2)
"""Of the features' shares and leaf sizes tried on the settling polls, none was clearly better."""

LEAST_S = 60.0
"""A rule that says less than a minute is taken to say a minute."""


@dataclass(frozen=True, slots=True)
class Graham2021:
    """What was found."""

    polls: NoonPolls
    published_rows: Int64Array  # the 15,042 jobs that the published network was tested on
    # Every method, each noon from what was known then, on the polls after the settling ones.
    online: tuple[Told, ...]
    published: tuple[Told, ...]  # our forest on the published jobs, by what it learned from
    # Our forest on the published jobs, each without a group of features.
    ablations: tuple[Told, ...]


def study(
    polls: NoonPolls,  # at least `SETTLING_POLLS` and one more
    progress: Callable[[int, int], None] | None = None,
    settings: ForestSettings = SETTINGS,  # of the forests
    workers: int = 1,  # processes that grow them; the result is the same for any number
) -> Graham2021:
    """Forecast every noon by every method.

    InputError if there are too few polls.
    """
    scored = polls.polls[SETTLING_POLLS:].tolist()
    if not scored:
        raise InputError(
            f"{len(polls.polls)} polls: {SETTLING_POLLS} are needed to learn from, and one more"
        )
    test_polls, training_polls = published_split(polls)
    within = [poll for poll in test_polls.tolist() if poll in scored]
    tested = np.flatnonzero(np.isin(polls.poll_time, within) & ~polls.infinite)
    if not len(tested):
        raise InputError(
            f"{len(polls.polls)} polls: none of those that the published network was tested on is "
            f"after the first {SETTLING_POLLS}; name the whole archive"
        )
    features = features_of(polls)
    around = tuple(training_polls.tolist())
    groups = [group for group in features.groups if group != "request"]
    plans = [
        *(Plan("forest", (noon,)) for noon in scored),
        *(Plan(GAP, (noon,), gap_days=GAP_DAYS) for noon in within),
        Plan("days around, as published", tuple(within), around=around),
        *(Plan(f"without {group}", (noon,), without=group) for group in groups for noon in within),
    ]
    grown: dict[str, list[Told]] = {}
    for told in Grower(polls, features, settings).grow_all(plans, workers, progress):
        grown.setdefault(told.method, []).append(told)
    ours, *others = (together(parts) for parts in grown.values())
    online = (
        ours,
        together(past_waits(polls, noon) for noon in scored),
        asked_at_noons(Qbets(), polls, scored),
        queue_ahead(polls, ours.rows),
    )
    others = [told.of(tested) for told in others]
    published = (replace(ours.of(tested), method="what was known at noon"), *others[:2])
    return Graham2021(polls, tested, online, published, tuple(others[2:]))


def past_waits(polls: NoonPolls, now: int, fewest: int = 30) -> Told:
    """Give quantiles of the waits of a slurm_partition's jobs that have started by a noon.

    Of all jobs where a slurm_partition has seen fewer than ``fewest``.
    """
    rows, waited_s, started = known_at(polls, now)
    rows, waited_s = rows[started], waited_s[started]
    asked = polls.rows_of(now)
    wait_s = np.tile(np.quantile(waited_s, LEVELS), (len(asked), 1))
    for number in np.unique(polls.slurm_partition[asked]).tolist():
        its = waited_s[polls.slurm_partition[rows] == number]
        if len(its) >= fewest:
            wait_s[polls.slurm_partition[asked] == number] = np.quantile(its, LEVELS)
    return Told("past waits", asked, WaitForecasts(wait_s, np.zeros(len(asked))))


def queue_ahead(polls: NoonPolls, rows: Int64Array) -> Told:
    """Give the time that the cores now running in a slurm_partition need for what is ahead.

    Requested core hours of higher priority, over cores; at least a minute. It is what a scheduler
    that knows only requests would say of a slurm_partition that keeps its share of the machine.
    """
    known = dict(zip(KNOWN, polls.known[rows, : len(KNOWN)].T, strict=True))
    cores = np.maximum(known["r_p_cores_above"], 1)
    wait = np.maximum(known["q_p_core_hours_above"] / cores * 3_600, LEAST_S)
    wait_s = np.repeat(wait[:, np.newaxis], len(LEVELS), axis=1)
    return Told("queue ahead", rows, WaitForecasts(wait_s, np.zeros(len(rows))))


def asked_at_noons(forecaster: WaitForecaster, polls: NoonPolls, noons: Iterable[int]) -> Told:
    """Go through the polls with a forecaster, told of each job at its poll and at its start.

    Waits are those from the poll on, by slurm_partition; nothing is told of the machine.
    """
    requests = [_request(polls, row) for row in range(len(polls))]
    start_time = polls.poll_time + polls.wait_s
    by_start = np.argsort(start_time, kind="stable").tolist()
    told, next_start, nothing = [], 0, np.zeros(0, dtype=np.int64)
    asked_at = set(noons)
    for now in polls.polls.tolist():
        while next_start < len(by_start) and start_time[by_start[next_start]] <= now:
            row = by_start[next_start]
            forecaster.started(requests[row], int(start_time[row]))
            next_start += 1
        here = polls.rows_of(now)
        jobs = [requests[row] for row in here.tolist()]
        for job in jobs:
            forecaster.submitted(job)
        if now not in asked_at:
            continue
        ones = np.ones(len(here), dtype=np.int64)
        pending = PendingJobs(now * ones, ones, ones)
        running = RunningJobs(nothing, nothing, nothing)
        snapshot = Snapshot(now, len(here), running, pending)
        moment = Moment(snapshot, Policy(), jobs, np.arange(len(here)))
        told.append(Told(forecaster.name, here, forecaster.forecast(moment)))
    return together(told)


def _request(polls: NoonPolls, row: int) -> JobRequest:
    known = dict(zip(KNOWN, polls.known[row].tolist(), strict=False))
    return JobRequest(
        job_id=str(row),
        user=None,
        project=str(polls.account[row]),
        queue=str(polls.slurm_partition[row]),
        submit_time=int(polls.poll_time[row]),
        processors=int(known["req_cpus"]),
        requested_time=int(known["time_limit_sec"]),
    )
