"""How good models of runtimes as distributions are, on a log, told of nothing but its past.

At moments drawn from a log's submissions every model draws the runtimes of all jobs that run or
wait, and is compared with how long they ran. Starts and ends are those logged. Beside ours stand
plain models: the request itself, the last jobs' runtimes, and ours with every job drawn by itself.

    python -m foretime_studies.waits.runtime_scores LOG --jobs 50000
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.runtime_distribution import RuntimeDistribution
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.distributions.shared_effects import campaigns
from foretime_estimators.distributions.uniform_log_classes import LifetimeClasses, parse_classifiers
from foretime_estimators.distributions.uniform_log_runtimes import UniformLogRuntimes
from foretime_estimators.estimators.estimator import Memoryless
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.scores.wait_sources import LoggedWaits, with_known_waits

from foretime_studies.frame.tables import Row, Rows, study_table


class RequestedRuntimes(Memoryless):
    """Every job runs to its requested time: what a plan on t_req takes for certain."""

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Give the requested times in every sample; see `RuntimeDistribution.sample`."""
        requested = np.array([job.requested_time for job in jobs], dtype=np.int64)
        return np.tile(requested, (samples, 1))


class DrawnApart(Memoryless):
    """Another model's runtimes with every job drawn by itself: nothing is shared."""

    def __init__(
        self,
        runtimes: RuntimeDistribution,  # the other model; it is taught by its owner
    ) -> None:
        self._runtimes = runtimes

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes; see `RuntimeDistribution.sample`."""
        return rng.permuted(self._runtimes.sample(jobs, age, now, samples, rng), axis=0)


class LastRuntimes:
    """Runs as long as one of the last finished jobs, each as likely, of those above the age.

    Cut at the requested time; a job older than all of them runs to it.
    """

    def __init__(
        self,
        last: int,  # how many jobs are remembered
        *,
        # Whether those are its user's, as far as that one has any; otherwise anybody's.
        by_user: bool,
    ) -> None:
        if last < 1:
            raise InputError(f"last runtimes: {last} jobs: give 1 or more")
        self._last = last
        self._by_user = by_user
        self._all: deque[int] = deque(maxlen=last)
        self._of_user: dict[str, deque[int]] = {}

    def learn_one(self, job: FinishedJob) -> None:
        """Remember the runtime."""
        if evidence_of(job) is Evidence.NONE:
            return
        self._all.append(job.actual_runtime)
        user = job.request.user
        if self._by_user and user is not None:
            self._of_user.setdefault(user, deque(maxlen=self._last)).append(job.actual_runtime)

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes; see `RuntimeDistribution.sample`."""
        everybody = np.sort(np.array(self._all, dtype=np.int64))
        of_user: dict[str | None, Int64Array] = {
            user: np.sort(np.array(runtimes, dtype=np.int64))
            for user, runtimes in self._of_user.items()
        }
        drawn = np.empty((samples, len(jobs)), dtype=np.int64)
        for column, (job, old) in enumerate(zip(jobs, age.tolist(), strict=True)):
            known = of_user.get(job.user, everybody)
            longer = known[known.searchsorted(old, side="right") :]
            if not len(longer):
                drawn[:, column] = job.requested_time
                continue
            taken = longer[rng.integers(len(longer), size=samples)]
            drawn[:, column] = np.minimum(np.maximum(taken, 1), job.requested_time)
        return drawn

    def state(self) -> dict[str, Any]:
        """Give what is remembered, as JSON can hold it."""
        return {
            "last_runtimes": [self._last, self._by_user],
            "all": list(self._all),
            "of_user": {user: list(runtimes) for user, runtimes in self._of_user.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; `StateError` if another model saved it."""
        if state.get("last_runtimes") != [self._last, self._by_user]:
            raise StateError("last runtimes: the state was saved by another model: learn anew")
        self._all = deque(state["all"], maxlen=self._last)
        self._of_user = {
            user: deque(runtimes, maxlen=self._last) for user, runtimes in state["of_user"].items()
        }


SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels at which it is asked how many jobs stayed within the quantile."""
GROUPS = ("submitted", "waiting", "running", "sum of a campaign", "sum of a user", "all work")
"""Jobs at their submission; all that wait at a moment; all that run, given their age; sums of the
runtimes of a campaign's, and of a user's, waiting jobs; what is left to do for all jobs that run or
wait, in processor-seconds."""
JOBS_OF_A_SUM = 3
"""Jobs that a campaign must have waiting for its sum to be scored."""


@dataclass
class Score:
    """How good the forecasts of some outcomes were."""

    # At which level of its forecast each outcome lay, ties broken at random: uniform from 0 to 1 if
    # forecasts are right.
    levels: list[Float64Array] = field(default_factory=list)
    # Sums of the continuous ranked probability scores of outcomes and of their logarithms: the
    # absolute error, where a forecast is one number.
    crps: float = 0.0
    log_crps: float = 0.0
    outcomes: int = 0  # of which these are

    def add_levels(
        self,
        drawn: npt.NDArray[np.number],
        outcome: npt.NDArray[np.number],
        rng: np.random.Generator,
    ) -> None:
        """Take in forecasts (samples, outcomes) and their outcomes."""
        below = (drawn < outcome).mean(axis=0)
        equal = (drawn == outcome).mean(axis=0)
        self.levels.append(below + equal * rng.random(len(outcome)))

    def within(self) -> list[float]:
        """Give the share of outcomes up to the quantile of each of `SHARES`."""
        levels = np.concatenate([*self.levels, np.empty(0)])
        return [float(np.mean(levels <= share)) for share in SHARES]

    def told(self) -> Row:
        """Give the same as columns of a table, in percent."""
        titles = ("within 5%", *(f"{share:.0%}" for share in SHARES[1:]))
        within = zip(titles, self.within(), strict=True)
        return [(title, 100 * share, ".0f") for title, share in within]

    def distance(self) -> float:
        """Give the largest distance to the uniform distribution (Kolmogorov's)."""
        levels = np.sort(np.concatenate([*self.levels, np.empty(0)]))
        return float(np.abs(levels - (np.arange(len(levels)) + 0.5) / len(levels)).max())


def crps(drawn: Float64Array, outcome: Float64Array) -> Float64Array:
    """Give the continuous ranked probability score of each column of draws, shape (outcomes,).

    E|X - y| - E|X - X'| / 2, the latter over different draws (Gneiting and Raftery 2007, eq. 21).
    """
    samples = len(drawn)
    error = np.abs(drawn - outcome).mean(axis=0)
    rank = 2 * np.arange(samples) - samples + 1
    spread = rank @ np.sort(drawn, axis=0) / (samples * (samples - 1))
    scores: Float64Array = error - spread
    return scores


def score_runtimes(
    source: LoggedWaits,  # a fresh one
    # Fresh ones, by name; they learn each job as it ends.
    models: Mapping[str, RuntimeDistribution],
    *,
    moments: int = 1_000,  # at how many jobs' submissions they are asked, drawn at random
    samples: int = 200,  # draws at each
    seed: int = 1,  # of moments and draws
    settled_share: float = 0.1,  # nothing is asked in so large a part of the log, the first one
) -> dict[str, dict[str, Score]]:
    """Go through a log once and score models of runtimes, by model and one of `GROUPS`."""
    workload = source.workload
    rng = np.random.default_rng(seed)
    first = int(len(workload) * settled_share)
    chosen = np.sort(
        rng.choice(np.arange(first, len(workload)), min(moments, len(workload) - first), False)
    )
    scores = {name: {group: Score() for group in GROUPS} for name in models}
    submitted = 0
    for job in chosen.tolist():
        now = int(workload.submit_time[job])
        while submitted < len(workload) and workload.submit_time[submitted] <= now:
            for event in source.advance(int(workload.submit_time[submitted])):
                if not event.is_start:
                    for model in models.values():
                        model.learn_one(source.finished(event.job))
            source.submit(submitted)
            submitted += 1
        snapshot, jobs = source.snapshot()
        running = len(snapshot.running)
        age = np.zeros(len(jobs), dtype=np.int64)
        age[:running] = now - snapshot.running.start_time
        requests = [source.requests[at] for at in jobs.tolist()]
        outcome = workload.actual_runtime[jobs]
        groups = {
            "submitted": np.flatnonzero(jobs == job),
            "waiting": np.arange(running, len(jobs)),
            "running": np.arange(running),
        }
        campaign = _sets(campaigns(requests[running:]) if running < len(jobs) else None)
        users = [request.user or "" for request in requests[running:]]
        user = _sets(np.unique(users, return_inverse=True)[1] if users else None)
        for name, model in models.items():
            drawn = model.sample(requests, age, now, samples, rng)
            score = scores[name]
            for group, columns in groups.items():
                _score(score[group], drawn[:, columns], outcome[columns], rng)
            waiting, waited = drawn[:, running:], outcome[running:]
            for group, sets in (("sum of a campaign", campaign), ("sum of a user", user)):
                if sets is not None:
                    score[group].add_levels(waiting @ sets, waited @ sets, rng)
            processors = workload.processors[jobs]
            left = (np.maximum(drawn - age, 0) * processors).sum(axis=1, keepdims=True)
            work = np.array([((outcome - age) * processors).sum()])
            score["all work"].add_levels(left, work, rng)
    return scores


def _sets(group: Int64Array | None) -> Int64Array | None:
    """Give which jobs belong to which of the groups that are large enough, (jobs, groups)."""
    if group is None:
        return None
    large = np.flatnonzero(np.bincount(group) >= JOBS_OF_A_SUM)
    if not len(large):
        return None
    sets: Int64Array = (group[:, np.newaxis] == large).astype(np.int64)
    return sets


def _score(score: Score, drawn: Int64Array, outcome: Int64Array, rng: np.random.Generator) -> None:
    if not len(outcome):
        return
    score.add_levels(drawn, outcome, rng)
    score.crps += float(crps(drawn.astype(np.float64), outcome.astype(np.float64)).sum())
    score.log_crps += float(crps(np.log(drawn), np.log(outcome)).sum())
    score.outcomes += len(outcome)


def models_compared() -> dict[str, RuntimeDistribution]:
    """Give ours and those it is measured by, fresh, by name."""
    histories = RuntimeHistories()
    return {
        "requested": RequestedRuntimes(),
        "all jobs": LastRuntimes(1_000, by_user=False),
        "user's last 10": LastRuntimes(10, by_user=True),
        "uniform-log": UniformLogRuntimes(
            LifetimeClasses(parse_classifiers("requested-time,queue"))
        ),
        "histories, each job by itself": DrawnApart(histories),
        "histories": histories,
    }


@study_table("runtimes", "Runtimes")
def score_table(scores: Mapping[str, Mapping[str, Score]]) -> Rows:
    """Give the scores, shares in percent."""
    for group in GROUPS:
        for name, model in scores.items():
            score = model[group]
            if score.levels:
                count = score.outcomes
                yield [
                    ("jobs", group),
                    ("model", name),
                    *score.told(),
                    ("distance", score.distance(), ".3f"),
                    ("log CRPS", score.log_crps / count if count else None, ".3f"),
                    ("CRPS, s", score.crps / count if count else None, ",.0f"),
                ]


def logged_waits(
    arguments: Sequence[str] | None,  # of the command; ``None`` for this process's
    what: str,  # models of which are scored
    moments: int,  # how many unless the command says otherwise
) -> tuple[LoggedWaits, int]:
    """Read what a command says: which log, how many of its jobs, and at how many moments to ask."""
    parser = argparse.ArgumentParser(description=f"Score models of {what} on a log.")
    parser.add_argument("log", type=Path)
    parser.add_argument("--jobs", type=int, help="only the first so many")
    parser.add_argument("--moments", type=int, default=moments)
    given = parser.parse_args(arguments)
    workload, _ = with_known_waits(workload_of_log(read_log(given.log))[0])
    if given.jobs is not None:
        workload = workload.head(min(given.jobs, len(workload)))
    return LoggedWaits(workload, Policy()), given.moments


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the models on a log and print the table."""
    source, moments = logged_waits(arguments, "runtimes", 1_000)
    scores = score_runtimes(source, models_compared(), moments=moments)
    print(score_table(scores).to_markdown())


if __name__ == "__main__":
    main()
