"""Requested times, users and projects for generated jobs that have only sizes and runtimes.

A model of our own, in the spirit of D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user
runtime estimates", JSSPP 2005: people ask for few round times, use the same request again and
again, and some jobs fail at once or run into their limit. Its parameters are chosen, not fitted:
the workload is good for demonstrations and tests, not for statements about real sites.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array, MaskedInt64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending
from foretime_estimators.time_units import HOUR_S, MINUTE_S

from foretime_sim.models.generation import MONDAY
from foretime_sim.workloads.job_log import labels_of_numbers
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import ENDINGS, MaskedEndings, Workload

ROUND_REQUESTS_S = np.array(
    [minutes * MINUTE_S for minutes in (5, 10, 15, 20, 30, 45)]
    + [hours * HOUR_S for hours in (1, 2, 3, 4, 6, 8, 10, 12, 18, 24, 36, 48, 72)],
    dtype=np.int64,
)
"""Times that people ask for, seconds."""


@dataclass(frozen=True, slots=True)
class RequestModel:
    """Who submits, and what they ask for.

    Attributes
    ----------
    users
        How many; ``None``: the square root of the number of jobs, at least 4. How often each
        submits falls with rank as in Zipf's law.
    users_per_project
        On average; projects are Zipf-distributed too. One user in five has a second project.
    zipf_exponent
        Of both laws.
    jobs_per_session
        Mean length (geometric) of a run of similar jobs: one user, project, executable and request.
    session_spread
        Mean gap, in jobs of everybody, between two jobs of a session.
    accuracy_mean, accuracy_spread
        Users differ: each has a mean R of their own, drawn evenly from mean - spread to
        mean + spread; their sessions' R are Beta-distributed about it.
    accuracy_concentration
        Alpha + beta of that Beta distribution: how true users are to their own mean.
    maximum_habit
        Share of sessions that ask for the longest time their user ever asks for, whatever they run.
    failing
        Share of jobs that fail at once: short ones, found in sessions of long ones.
    too_short
        Share of sessions that ask for less than their longest job needs; it is killed at the limit.
    """

    users: int | None = None
    users_per_project: float = 4.0
    zipf_exponent: float = 1.0
    jobs_per_session: float = 6.0
    session_spread: float = 4.0
    accuracy_mean: float = 0.55
    accuracy_spread: float = 0.35
    accuracy_concentration: float = 8.0
    maximum_habit: float = 0.15
    failing: float = 0.06
    too_short: float = 0.05

    def __post_init__(self) -> None:
        for name in ("maximum_habit", "failing", "too_short"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; it is a share from 0 to 1")
        if self.users is not None and self.users < 1:
            raise InputError(f"{self.users} users; give at least 1")
        if not self.accuracy_mean - self.accuracy_spread > 0:
            raise InputError("accuracy_spread must be below accuracy_mean")
        if not self.accuracy_mean + self.accuracy_spread < 1:
            raise InputError("accuracy_mean + accuracy_spread must be below 1")
        for name in ("users_per_project", "jobs_per_session"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; give at least 1")
        for name in ("accuracy_concentration", "session_spread"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}; give more than 0")


@dataclass(frozen=True, slots=True)
class RequestedJobs:
    """Jobs in order of submission; every column has shape (jobs,), times in seconds."""

    processors: Int64Array
    actual_runtime: Int64Array
    requested_time: Int64Array
    status: MaskedInt64Array
    endings: MaskedEndings
    users: Labels
    projects: Labels
    executables: Labels


def add_requests(
    sizes: Int64Array, runtimes: Int64Array, model: RequestModel, rng: np.random.Generator
) -> RequestedJobs:
    """Give jobs users, projects and requests, and put them in an order of submission.

    The jobs stay the same pairs of size and runtime, only in another order (similar ones one after
    another, as their user's session), except that those killed at their limit end there.

    Parameters
    ----------
    sizes, runtimes
        Shape (jobs,): processors, and seconds.
    model
        Its parameters.
    rng
        Random numbers.
    """
    jobs = len(sizes)
    failing = _failing(runtimes, model.failing, rng)
    session_of, sessions = _sessions(sizes, runtimes, failing, model, rng)
    users = max(4, round(jobs**0.5)) if model.users is None else model.users
    user_of = _zipf(users, sessions, model.zipf_exponent, rng)
    project_of = _projects(user_of, users, model, rng)
    requests = _requests(runtimes, failing, session_of, user_of, users, model, rng)

    # A session begins anywhere, and its jobs follow in small steps among everybody's.
    gaps = rng.exponential(model.session_spread, jobs)
    by_session = np.argsort(session_of, kind="stable")
    position = rng.random(sessions)[session_of] * jobs
    running = np.cumsum(gaps[by_session])
    first = np.searchsorted(session_of[by_session], np.arange(sessions))
    position[by_session] += running - running[first][session_of[by_session]]
    order = np.argsort(position, kind="stable")

    requested_time = requests[session_of]
    timed_out = runtimes > requested_time
    code = {ending: index for index, ending in enumerate(ENDINGS)}
    endings = np.full(jobs, code[Ending.COMPLETED], dtype=np.int8)
    endings[failing] = code[Ending.FAILED]
    endings[timed_out] = code[Ending.TIMED_OUT]
    nowhere = np.zeros(jobs, dtype=np.bool_)
    session_of = session_of[order]
    return RequestedJobs(
        processors=sizes[order],
        actual_runtime=np.minimum(runtimes, requested_time)[order],
        requested_time=requested_time[order],
        status=np.ma.MaskedArray(
            np.where(failing | timed_out, 0, 1).astype(np.int64)[order], mask=nowhere
        ),
        endings=np.ma.MaskedArray(endings[order], mask=nowhere.copy()),
        users=labels_from_zero(user_of[session_of], "user"),
        projects=labels_from_zero(project_of[session_of], "group"),
        executables=labels_from_zero(_executables(user_of, rng)[session_of], "executable"),
    )


def requested_workload(
    name: str,
    sizes: Int64Array,
    runtimes: Int64Array,
    arrivals: Callable[[float | None], Int64Array],
    *,
    processors: int,
    load: float | None,
    model: RequestModel | None,
    rng: np.random.Generator,
) -> Workload:
    """Make a workload of drawn jobs: add requests and users, then submissions for a load.

    Parameters
    ----------
    name
        Of the workload.
    sizes, runtimes
        Shape (jobs,): processors, and seconds.
    arrivals
        Gives submissions since `MONDAY`, shape (jobs,), so that a number of seconds passes to the
        last; with ``None`` as they are.
    processors, load
        Size of the machine, and the offered load: processor-seconds of all jobs / (processors x
        time of the last submission); ``None`` leaves submissions as they are.
    model
        Of requests; its defaults if not given.
    rng
        Random numbers for the requests.
    """
    jobs = add_requests(sizes, runtimes, RequestModel() if model is None else model, rng)
    area = float(jobs.processors @ jobs.actual_runtime)
    submit_time = arrivals(None if load is None else max(area / (processors * load), 1.0))
    return Workload(
        name=name,
        machine_processors=processors,
        unix_start_time=MONDAY,
        job_id=np.arange(1, len(sizes) + 1, dtype=np.int64),
        submit_time=submit_time,
        processors=jobs.processors,
        actual_runtime=jobs.actual_runtime,
        requested_time=jobs.requested_time,
        status=jobs.status,
        endings=jobs.endings,
        users=jobs.users,
        projects=jobs.projects,
        executables=jobs.executables,
    )


def _failing(runtimes: Int64Array, share: float, rng: np.random.Generator) -> BoolArray:
    """Choose the jobs that fail at once, among the shorter half, so that there are so many."""
    jobs = len(runtimes)
    short = np.argsort(runtimes, kind="stable")[: max(1, jobs // 2)]
    count = min(round(share * jobs), len(short))
    failing = np.zeros(jobs, dtype=np.bool_)
    failing[rng.choice(short, size=count, replace=False)] = True
    return failing


def _sessions(
    sizes: Int64Array,
    runtimes: Int64Array,
    failing: BoolArray,
    model: RequestModel,
    rng: np.random.Generator,
) -> tuple[Int64Array, int]:
    """Give each job's session, and how many sessions there are: runs of similar jobs.

    Jobs are put in order of size and runtime, both blurred; those that fail are put at the runtime
    that they might have had.
    """
    jobs = len(sizes)
    meant = runtimes.copy()
    if bool(failing.any()) and not bool(failing.all()):
        meant[failing] = rng.choice(runtimes[~failing], size=int(np.count_nonzero(failing)))
    size_class = np.round(np.log2(sizes) + rng.normal(0.0, 0.3, jobs))
    order = np.lexsort((np.log(meant) + rng.normal(0.0, 0.4, jobs), size_class))
    starts = rng.random(jobs) < 1 / model.jobs_per_session
    starts[0] = True
    session_of = np.empty(jobs, dtype=np.int64)
    session_of[order] = np.cumsum(starts) - 1
    return session_of, int(np.count_nonzero(starts))


def _requests(
    runtimes: Int64Array,
    failing: BoolArray,
    session_of: Int64Array,
    user_of: Int64Array,
    users: int,
    model: RequestModel,
    rng: np.random.Generator,
) -> Int64Array:
    """Give what each session asks for: shape (sessions,), seconds, one of the round times."""
    sessions = len(user_of)
    longest = np.ones(sessions, dtype=np.int64)
    np.maximum.at(longest, session_of, np.where(failing, 1, runtimes))
    spread = model.accuracy_spread
    mean = rng.uniform(model.accuracy_mean - spread, model.accuracy_mean + spread, users)[user_of]
    accuracy = rng.beta(
        mean * model.accuracy_concentration, (1 - mean) * model.accuracy_concentration
    )
    need = np.searchsorted(ROUND_REQUESTS_S, longest)
    wish = np.searchsorted(ROUND_REQUESTS_S, longest / np.maximum(accuracy, 0.01))
    top = len(ROUND_REQUESTS_S) - 1
    choice = np.clip(wish, need, top)
    habit = np.zeros(users, dtype=np.int64)
    np.maximum.at(habit, user_of, choice)
    choice = np.where(rng.random(sessions) < model.maximum_habit, habit[user_of], choice)
    below = (rng.random(sessions) < model.too_short) & (need > 0)
    return np.asarray(ROUND_REQUESTS_S[np.where(below, need - 1, choice)])


def _zipf(ranks: int, draws: int, exponent: float, rng: np.random.Generator) -> Int64Array:
    """Draw ranks from 0 with probabilities that fall as 1/(rank + 1)**exponent."""
    weights = 1.0 / np.arange(1, ranks + 1) ** exponent
    return rng.choice(ranks, size=draws, p=weights / weights.sum()).astype(np.int64)


def _projects(
    user_of: Int64Array, users: int, model: RequestModel, rng: np.random.Generator
) -> Int64Array:
    """Give the project that each session is charged to: the user's first, or second if any."""
    projects = max(1, round(users / model.users_per_project))
    first = _zipf(projects, users, model.zipf_exponent, rng)
    second = np.where(
        rng.random(users) < 0.2, _zipf(projects, users, model.zipf_exponent, rng), first
    )
    return np.where(rng.random(len(user_of)) < 0.3, second[user_of], first[user_of])


def _executables(user_of: Int64Array, rng: np.random.Generator) -> Int64Array:
    """Give the executable of each session: every user has three of their own."""
    return np.asarray(user_of * 3 + rng.integers(0, 3, size=len(user_of)))


def labels_from_zero(numbers: Int64Array, prefix: str) -> Labels:
    """Name numbers from 0 as "user1", "user2"."""
    counted = np.ma.MaskedArray(numbers + 1, mask=np.zeros(len(numbers), dtype=np.bool_))
    labels = labels_of_numbers(counted, prefix)
    if labels is None:
        raise ValueError("no jobs")
    return labels
