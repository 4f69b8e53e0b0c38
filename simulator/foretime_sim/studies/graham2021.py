"""How well waits are forecast at a real Slurm site: noon polls of Graham, May and June 2021.

The published study (B. Popa and G. Alain, Mila 2023; see `graham2021_columns`) tests on seven days
drawn at random and learns from days around them, later ones too. Here, by contrast, every noon is
forecast from what was known at that very noon: of jobs that still waited then, only that they did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from foretime_estimators.errors import InputError
from foretime_estimators.jobs import JobRequest

from foretime_sim.accounting import DAY_S
from foretime_sim.metrics import BoolArray, Float64Array
from foretime_sim.policy import Policy
from foretime_sim.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.studies.graham2021_columns import KNOWN
from foretime_sim.studies.graham2021_features import features_of
from foretime_sim.studies.graham2021_polls import NoonPolls
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.survival_forest import ForestSettings, SurvivalForest
from foretime_sim.workload import Int64Array

SETTLING_POLLS = 14
"""First polls: only learned from, and what our settings were chosen on; 14 days to 14 May."""
LEARNED_DAYS = 28
"""How far back a forest learns."""
GAP_DAYS = 7
"""Between what is learned from and the poll, where it is tested that no near-copies help."""
SEED = 1
SETTINGS = ForestSettings(trees=40, least_jobs=10, tried=0.2)
"""Of the features' shares and leaf sizes tried on the settling polls, none was clearly better."""

_PUBLISHED_SEED, _PUBLISHED_SHARE = 46, 0.1
LEAST_S = 60.0
"""A rule that says less than a minute is taken to say a minute."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a method said of some jobs.

    Attributes
    ----------
    method
        Its name.
    rows
        Positions of the jobs in the polls, shape (jobs,).
    forecasts
        A row for each of them.
    """

    method: str
    rows: Int64Array
    forecasts: WaitForecasts

    def of(self, rows: Int64Array) -> Told:
        """Give what was said of some of the jobs, in their order."""
        order = np.argsort(self.rows)
        places = order[np.searchsorted(self.rows, rows, sorter=order)]
        kept = WaitForecasts(self.forecasts.wait_s[places], self.forecasts.starts_now[places])
        return Told(self.method, rows, kept)


@dataclass(frozen=True, slots=True)
class Graham2021:
    """What was found.

    Attributes
    ----------
    polls
        The data.
    published_rows
        The 15,042 jobs that the published network was tested on.
    online
        Every method, each noon from what was known then, on the polls after the settling ones.
    published
        Our forest on the published jobs, by what it learned from.
    ablations
        Our forest on the published jobs, each without a group of features.
    """

    polls: NoonPolls
    published_rows: Int64Array
    online: tuple[Told, ...]
    published: tuple[Told, ...]
    ablations: tuple[Told, ...]


Learnable = tuple[Int64Array, Int64Array, BoolArray]
"""Rows, seconds that each has waited, whether it started then."""


def study(
    polls: NoonPolls,
    progress: Callable[[int, int], None] | None = None,
    settings: ForestSettings = SETTINGS,
) -> Graham2021:
    """Forecast every noon by every method.

    Parameters
    ----------
    polls
        At least `SETTLING_POLLS` and one more.
    progress
        Told how many of how many forests have been grown.
    settings
        Of the forests.

    Raises
    ------
    InputError
        If there are too few polls.
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
    groups = [group for group in features.groups if group != "request"]
    total = len(scored) + len(within) * (1 + len(groups)) + 1
    grown = 0

    def forest(name: str, values: Float64Array, asked: Int64Array, known: Learnable) -> Told:
        nonlocal grown
        found = grow(name, values, asked, known, settings)
        grown += 1
        if progress is not None:
            progress(grown, total)
        return found

    def each_noon(name: str, values: Float64Array, noons: Iterable[int], gap_days: int = 0) -> Told:
        return together(
            forest(name, values, polls.rows_of(now), known_at(polls, now, gap_days))
            for now in noons
        )

    ours = each_noon("forest", features.values, scored)
    rows = ours.rows
    online = (
        ours,
        together(past_waits(polls, now) for now in scored),
        qbets(polls, scored),
        queue_ahead(polls, rows),
    )
    everything = np.flatnonzero(np.isin(polls.poll_time, training_polls))
    outcome = polls.wait_s[everything]
    whole = (everything, outcome, np.ones(len(outcome), dtype=np.bool_))
    published = (
        replace(ours.of(tested), method="what was known at noon"),
        each_noon(f"the same, up to {GAP_DAYS} days before", features.values, within, GAP_DAYS).of(
            tested
        ),
        forest("days around, as published", features.values, tested, whole),
    )
    ablations = tuple(
        each_noon(f"without {group}", features.without(group), within).of(tested)
        for group in groups
    )
    return Graham2021(polls, tested, online, published, ablations)


def published_split(polls: NoonPolls) -> tuple[Int64Array, Int64Array]:
    """Give the polls that the published network was tested on, and those it learned from.

    Each a tenth of the days, rounded up, the test's and then the validation's, drawn by numpy's
    legacy generator with the seed 46; on Graham the test has 15,042 jobs after those with infinite
    columns are dropped, a tenth of the 150,420 predictions that were published of ten trainings.
    """
    days = np.array([f"{datetime.fromtimestamp(poll, UTC):%Y-%m-%d}" for poll in polls.polls])
    rng = np.random.RandomState(_PUBLISHED_SEED)
    size = math.ceil(_PUBLISHED_SHARE * len(days))
    tested = rng.choice(days, size=size, replace=False)
    others = days[~np.isin(days, tested)]
    validated = rng.choice(others, size=min(size, len(others)), replace=False)
    test = np.isin(days, tested)
    return polls.polls[test], polls.polls[~test & ~np.isin(days, validated)]


def known_at(polls: NoonPolls, now: int, gap_days: int = 0) -> Learnable:
    """Give what a forest may learn from at a noon.

    Parameters
    ----------
    polls
        The data.
    now
        The noon.
    gap_days
        Learn what was known so many days before, instead.
    """
    then = now - gap_days * DAY_S
    rows, waited_s, started = polls.known_outcomes(then)
    recent = polls.poll_time[rows] >= then - LEARNED_DAYS * DAY_S
    return rows[recent], waited_s[recent], started[recent]


def grow(
    name: str, values: Float64Array, asked: Int64Array, known: Learnable, settings: ForestSettings
) -> Told:
    """Grow a forest on what is known, and ask it."""
    rows, waited_s, started = known
    forest = SurvivalForest(values[rows], waited_s, started, settings, SEED)
    wait_s = forest.quantiles(values[asked], LEVELS)
    return Told(name, asked, WaitForecasts(wait_s, np.zeros(len(asked))))


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


def qbets(polls: NoonPolls, scored: Iterable[int]) -> Told:
    """Give QBETS' bounds, on waits from the poll on, by slurm_partition."""
    forecaster = Qbets()
    requests = [_request(polls, row) for row in range(len(polls))]
    start_time = polls.poll_time + polls.wait_s
    by_start = np.argsort(start_time, kind="stable").tolist()
    told, next_start, nothing = [], 0, np.zeros(0, dtype=np.int64)
    asked_at = set(scored)
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
        told.append(Told("QBETS", here, forecaster.forecast(moment)))
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


def together(parts: Iterable[Told]) -> Told:
    """Put what was said at several noons together."""
    told = list(parts)
    return Told(
        told[0].method,
        np.concatenate([part.rows for part in told]),
        WaitForecasts(
            np.concatenate([part.forecasts.wait_s for part in told]),
            np.concatenate([part.forecasts.starts_now for part in told]),
        ),
    )
