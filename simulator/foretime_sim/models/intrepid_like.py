"""A generated workload like Intrepid's of Tang 2010: what the paper tells of it, and no more.

W. Tang, N. Desai, D. Buettner and Z. Lan, "Analyzing and Adjusting User Runtime Estimates to
Improve Job Scheduling on the Blue Gene/P", IPDPS 2010: seven months of 2009 in two parts, WL-I
(January to June, the history) and WL-II (July, the test). The paper's own trace is not public as it
was used, and its figures 2 and 3 can't be read; docs/studies/intrepid-like.md says of each number
whether the paper states it, implies it, or leaves it open.

Size, requested time and accuracy of a job are *traits*: standard normal numbers made of shares that
project, person, application, session and the job itself have in them, so that similar jobs are
alike. Ranks within each period are then mapped to the wanted distribution: whatever the shares are,
sizes, requests and accuracies are distributed as they should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending
from foretime_estimators.time_units import DAY_S, MINUTE_S

from foretime_sim.models.generation import check_load, random_streams
from foretime_sim.models.intrepid_people import APPLICATIONS, Headcount, People, Sessions
from foretime_sim.models.request_model import labels_from_zero
from foretime_sim.workloads.workload import ENDINGS, Workload

NODES = 40_960
START = 1_230_768_000
"""Time zero: midnight of 1 January 2009, UTC."""
HISTORY_DAYS, TEST_DAYS = 181, 31
"""January to June, and July (Tang 2010, table I)."""
SPLIT_S = HISTORY_DAYS * DAY_S
"""Where WL-II begins in a workload of the published number of jobs."""
HISTORY_JOBS, TEST_JOBS = 48_056, 10_479
"""WL-I and WL-II (Tang 2010, table I)."""
JOBS = HISTORY_JOBS + TEST_JOBS
TIES = np.linspace(-0.9, 0.9, 181).tolist()
"""Correlations of size and length that are tried; see `_sizes`."""
CLOSE_LOAD = 0.005
"""Relative error at which a load is as wanted."""
EVERYBODY_FROM = 6_000
"""Jobs from which on everybody of table I takes part; below there are fewer people."""


@dataclass(frozen=True, slots=True)
class TraitShares:
    """Parts of a trait's variance, summing to 1; what is not named is the job's own.

    Attributes
    ----------
    project, user, application
        What lasts.
    session
        What a run of similar jobs has in common.
    """

    project: float
    user: float
    application: float
    session: float

    def __post_init__(self) -> None:
        parts = (self.project, self.user, self.application, self.session)
        if min(parts) < 0 or sum(parts) > 1 + 1e-9:
            raise InputError(
                f"shares of a trait are {parts}: give parts from 0 that sum to 1 or less"
            )

    @property
    def job(self) -> float:
        """What differs from job to job within a session."""
        return max(0.0, 1.0 - self.project - self.user - self.application - self.session)


@dataclass(frozen=True, slots=True)
class IntrepidLike:
    """The model's parameters.

    Attributes
    ----------
    size_shares
        Jobs by nodes asked for. "8K and 16K-node jobs are common, and 32K-node jobs run regularly"
        (II.B).
    request_shares
        Jobs by minutes asked for.
    accuracy_quantiles
        Points (share of jobs, R), straight lines between them: 20% "slightly larger than 1", 11 to
        13% accurate (0.9 to 1), most below 0.5, more than 20% below 0.2 (IV.B). The smallest R
        makes the mean of 1/R what table III's slowdowns and unitless waits imply.
    size_traits, request_traits, accuracy_traits
        How alike the jobs of a project, person, application, session are.
    session_memory
        Correlation of the accuracy's session part from one session of a person to the next.
    jobs_per_session
        Mean (geometric).
    batch_share, batch_gap_s, return_gap_s
        Jobs that follow the one before within seconds (mean), and the median gap of the others.
    test_load
        Offered load of the test period: node-seconds / (nodes x seconds). The history's follows
        from its jobs a day, the mean job being as large.
    night_rate, weekend_rate
        Sessions that begin at the quietest hour (4:00) and at weekends, relative to the busiest
        (16:00) and to weekdays.
    """

    size_shares: tuple[tuple[int, float], ...] = (
        (64, 0.02),
        (256, 0.06),
        (512, 0.383),
        (1_024, 0.15),
        (2_048, 0.16),
        (4_096, 0.12),
        (8_192, 0.06),
        (16_384, 0.035),
        (24_576, 0.002),
        (32_768, 0.008),
        (40_960, 0.002),
    )
    request_shares: tuple[tuple[int, float], ...] = (
        (10, 0.05),
        (15, 0.04),
        (20, 0.05),
        (30, 0.14),
        (45, 0.04),
        (60, 0.26),
        (90, 0.06),
        (120, 0.14),
        (180, 0.09),
        (240, 0.07),
        (360, 0.05),
        (720, 0.01),
    )
    accuracy_quantiles: tuple[tuple[float, float], ...] = (
        (0.0, 0.005),
        (0.22, 0.2),
        (0.53, 0.5),
        (0.68, 0.9),
        (0.80, 1.0),
        (1.0, 1.03),
    )
    size_traits: TraitShares = TraitShares(0.1, 0.1, 0.2, 0.6)
    request_traits: TraitShares = TraitShares(0.15, 0.15, 0.4, 0.3)
    accuracy_traits: TraitShares = TraitShares(0.45, 0.08, 0.2, 0.12)
    session_memory: float = 0.5
    jobs_per_session: float = 6.0
    batch_share: float = 0.5
    batch_gap_s: float = 20.0
    return_gap_s: float = 5_400.0
    test_load: float = 0.605
    night_rate: float = 0.35
    weekend_rate: float = 0.5

    def __post_init__(self) -> None:
        for name in ("size_shares", "request_shares"):
            total = sum(share for _, share in getattr(self, name))
            if abs(total - 1) > 1e-6:
                raise InputError(f"{name} sum to {total:g}; they are shares of all jobs")


def generate(
    jobs: int = JOBS,
    *,
    seed: int = 1,
    load: float | None = None,
    overruns: Literal["keep", "cut"] = "keep",
    model: IntrepidLike | None = None,
) -> Workload:
    """Generate a workload; the same arguments always give the same.

    Parameters
    ----------
    jobs
        How many in all; the history has its published part of them, and both periods are as much
        shorter or longer.
    seed
        Seed of the random numbers, at least 0.
    load
        Offered load of the whole, node-seconds / (nodes x time of the last submission), reached by
        scaling all submissions; ``None`` leaves the months as they are.
    overruns
        ``keep`` R slightly above 1 as the paper's trace has it (the time that it takes to end a
        job at its limit), or ``cut`` runtimes to the requested time.
    model
        Parameters.

    Returns
    -------
    Workload
        ``processors`` are nodes. Its name and notes say that it is generated.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> from foretime_sim.models.intrepid_like import generate
    >>> workload = generate(100, seed=1)
    >>> len(workload), workload.machine_processors
    (100, 40960)
    """
    if not 10 <= jobs <= 5_000_000:
        raise InputError(f"{jobs} jobs can't be generated; give 10 to 5,000,000")
    check_load(load)
    model = IntrepidLike() if model is None else model
    people_rng, session_rng, time_rng, trait_rng = random_streams(seed, 4)
    people = People.draw(Headcount().scaled(jobs / EVERYBODY_FROM), people_rng)
    history_jobs = round(jobs * HISTORY_JOBS / JOBS)
    periods = [
        Sessions.draw(people, period, count, model.jobs_per_session, session_rng)
        for period, count in enumerate((history_jobs, jobs - history_jobs))
    ]
    scale = jobs / JOBS
    split = round(SPLIT_S * scale)
    spans = [(0, split), (split, round((SPLIT_S + TEST_DAYS * DAY_S) * scale))]
    session, submit = _submissions(periods, spans, model, time_rng)
    order = np.argsort(submit, kind="stable")
    session, submit = session[order], submit[order]
    nodes, requested, accuracy = _traits(periods, session, submit, people, model, trait_rng)
    runtime = np.maximum(1, np.rint(accuracy * requested)).astype(np.int64)
    timed_out = runtime >= requested
    if overruns == "cut":
        runtime = np.minimum(runtime, requested)
    if load is not None:
        area = float(nodes @ np.minimum(runtime, requested))
        submit = np.rint(submit * (area / (NODES * load * submit[-1]))).astype(np.int64)
    nowhere = np.zeros(jobs, dtype=np.bool_)
    endings = np.where(timed_out, ENDINGS.index(Ending.TIMED_OUT), ENDINGS.index(Ending.COMPLETED))
    user = np.concatenate([part.user for part in periods])[session]
    project = np.concatenate([part.project for part in periods])[session]
    return Workload(
        name=f"generated-intrepid-like-{jobs}-jobs-seed-{seed}",
        machine_processors=NODES,
        unix_start_time=START,
        job_id=np.arange(1, jobs + 1, dtype=np.int64),
        submit_time=submit,
        processors=nodes,
        actual_runtime=runtime,
        requested_time=requested,
        status=np.ma.MaskedArray(np.where(timed_out, 0, 1).astype(np.int64), mask=nowhere),
        endings=np.ma.MaskedArray(endings.astype(np.int8), mask=nowhere.copy()),
        users=labels_from_zero(user, "user"),
        projects=labels_from_zero(project, "project"),
        notes=(
            "generated, not real: an Intrepid-like workload after what Tang et al. (2010) say of "
            f"theirs; processors are nodes; seed {seed}"
            + ("" if load is None else f", submissions scaled to an offered load of {load:g}"),
        ),
    )


def _submissions(
    periods: list[Sessions],
    spans: list[tuple[int, int]],
    model: IntrepidLike,
    rng: np.random.Generator,
) -> tuple[Int64Array, Int64Array]:
    """Give each job's session (numbered through both periods) and submission, seconds."""
    session_of, submitted = [], []
    first_session = 0
    for sessions, (begin, end) in zip(periods, spans, strict=True):
        count, jobs = len(sessions.jobs), int(sessions.jobs.sum())
        start = begin + _starts(count, begin, end, model, rng)
        of_job = np.repeat(np.arange(count, dtype=np.int64), sessions.jobs)
        batch = rng.random(jobs) < model.batch_share
        gaps = np.where(
            batch,
            rng.exponential(model.batch_gap_s, jobs),
            model.return_gap_s * np.exp(rng.normal(0.0, 1.0, jobs)),
        )
        first_job = np.concatenate([[0], np.cumsum(sessions.jobs)[:-1]])
        gaps[first_job] = 0.0
        passed = np.cumsum(gaps)
        offset = passed - passed[first_job][of_job]
        length = offset[first_job + sessions.jobs - 1]
        # A session that would last beyond its period begins earlier, or goes faster.
        room = float(end - 1 - begin)
        offset *= np.minimum(1.0, room / np.maximum(length, 1.0))[of_job]
        length = np.minimum(length, room)
        start = np.minimum(start, end - 1 - length)
        session_of.append(of_job + first_session)
        submitted.append(np.floor(start[of_job] + offset).astype(np.int64))
        first_session += count
    return np.concatenate(session_of), np.concatenate(submitted)


def _starts(
    count: int, begin: int, end: int, model: IntrepidLike, rng: np.random.Generator
) -> Float64Array:
    """Draw when sessions begin, seconds after ``begin``: by the hour of day and day of week."""
    hours = np.arange(begin, end, 3_600)
    hour_of_day = hours // 3_600 % 24
    depth = (1 - model.night_rate) / 2
    rate = 1 - depth + depth * np.cos(2 * np.pi * (hour_of_day - 16) / 24)
    weekday = (hours // DAY_S + 3) % 7  # 1 January 2009 was a Thursday
    rate = np.where(weekday >= 5, rate * model.weekend_rate, rate)
    chosen = rng.choice(len(hours), size=count, p=rate / rate.sum())
    return np.minimum(hours[chosen] + rng.uniform(0, 3_600, count), end - 1) - begin


def _traits(
    periods: list[Sessions],
    session: Int64Array,
    submit: Int64Array,
    people: People,
    model: IntrepidLike,
    rng: np.random.Generator,
) -> tuple[Int64Array, Int64Array, Float64Array]:
    """Give nodes, requested seconds and accuracy of each job, in order of submission."""
    user, project, application = (
        np.concatenate([getattr(part, name) for part in periods])
        for name in ("user", "project", "application")
    )
    sessions = len(user)
    test = session >= len(periods[0].user)

    def trait(shares: TraitShares, own: Float64Array) -> Float64Array:
        """Add up what a job has of its project, person, application, session, and its own."""
        return np.asarray(
            np.sqrt(shares.project) * rng.standard_normal(people.projects)[project[session]]
            + np.sqrt(shares.user) * rng.standard_normal(people.users)[user[session]]
            + np.sqrt(shares.application)
            * rng.standard_normal(people.users * APPLICATIONS)[application[session]]
            + np.sqrt(shares.session) * own[session]
            + np.sqrt(shares.job) * rng.standard_normal(len(session))
        )

    size = trait(model.size_traits, rng.standard_normal(sessions))
    request = _in_each_period(trait(model.request_traits, rng.standard_normal(sessions)), test)
    first_job = np.full(sessions, np.iinfo(np.int64).max)
    np.minimum.at(first_job, session, np.arange(len(session)))
    remembered = _remembered(user, np.argsort(first_job), model.session_memory, rng)
    accuracy = _in_each_period(trait(model.accuracy_traits, remembered), test)
    shares, ratios = np.array(model.accuracy_quantiles).T
    requested = _quantile(model.request_shares, request) * MINUTE_S
    ratio = np.interp(accuracy, shares, ratios)
    runtime = np.maximum(1.0, np.minimum(ratio, 1.0) * requested)
    mean_log = np.bincount(session, np.log(runtime), sessions) / np.bincount(session)
    work = model.test_load * NODES * TEST_DAYS * DAY_S / TEST_JOBS
    nodes = np.empty(len(session), dtype=np.int64)
    for part in (~test, test):
        nodes[part] = _sizes(
            size[part], mean_log[session[part]], runtime[part], work, model.size_shares
        )
    return nodes, requested, ratio


def _sizes(
    trait: Float64Array,
    length: Float64Array,
    runtime: Float64Array,
    work: float,
    shares: tuple[tuple[int, float], ...],
) -> Int64Array:
    """Give nodes by rank of the trait, tied to length just so much that the mean job has its work.

    The few jobs of many racks decide a month's load: left to chance it would differ by a fifth from
    seed to seed. How sizes are distributed stays as it is; only who has which changes.

    Parameters
    ----------
    trait
        Shape (jobs,), standard normal.
    length
        Log of the runtime, as the session has it on average: all its jobs have one size.
    runtime
        Seconds.
    work
        Wanted mean of nodes x runtime.
    shares
        Nodes, and the part of the jobs that asks for so many.
    """
    spread = float(length.std())
    standard = (length - length.mean()) / spread if spread > 0 else np.zeros_like(length)

    def tied(tie: float) -> Int64Array:
        return _quantile(shares, _ranks(np.sqrt(1 - tie * tie) * trait + tie * standard))

    # Work grows with the tie, but in steps: a session of many racks has one size. So all are tried.
    candidates = sorted(TIES, key=abs)
    misses = []
    for tie in candidates:
        nodes = tied(tie)
        misses.append(abs(float((nodes * runtime).mean()) / work - 1))
        if misses[-1] < CLOSE_LOAD:
            return nodes
    return tied(candidates[int(np.argmin(misses))])


def _remembered(
    user: Int64Array, in_time: Int64Array, memory: float, rng: np.random.Generator
) -> Float64Array:
    """Give a standard normal number a session, correlated with the same person's one before."""
    fresh = rng.standard_normal(len(user))
    values = np.empty(len(user))
    last: dict[int, float] = {}
    for place in in_time.tolist():
        person = int(user[place])
        before = last.get(person)
        value = float(fresh[place])
        if before is not None:
            value = memory * before + float(np.sqrt(1 - memory**2)) * value
        values[place] = last[person] = value
    return values


def _in_each_period(trait: Float64Array, test: BoolArray) -> Float64Array:
    """Give ranks within history and test period as shares from 0 to 1."""
    shares = np.empty(len(trait))
    for part in (~test, test):
        shares[part] = _ranks(trait[part])
    return shares


def _ranks(trait: Float64Array) -> Float64Array:
    """Give ranks as shares from 0 to 1; ties in their order."""
    ranks = np.empty(len(trait))
    ranks[np.argsort(trait, kind="stable")] = np.arange(len(trait)) + 0.5
    return ranks / max(len(trait), 1)


def _quantile(shares: tuple[tuple[int, float], ...], places: Float64Array) -> Int64Array:
    """Give the values of which these shares of the jobs are at or below."""
    values = np.array([value for value, _ in shares], dtype=np.int64)
    bounds = np.cumsum([share for _, share in shares])
    found = np.searchsorted(bounds, places)
    return np.asarray(values[np.minimum(found, len(values) - 1)])
