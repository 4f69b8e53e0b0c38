"""How good models of runtimes as distributions are, on a log, told of nothing but its past.

At moments drawn from a log's submissions every model draws the runtimes of all jobs that run or
wait, and is compared with how long they ran. Starts and ends are those logged.

    python -m foretime_studies.waits.runtime_scores LOG --jobs 50000
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.runtime_distribution import RuntimeDistribution
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.distributions.shared_effects import campaigns
from foretime_estimators.distributions.uniform_log_classes import LifetimeClasses, parse_classifiers
from foretime_estimators.distributions.uniform_log_runtimes import UniformLogRuntimes
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.scores.wait_sources import LoggedWaits, with_known_waits

from foretime_studies.frame.tables import Row, StudyTable
from foretime_studies.waits.plain_runtimes import DrawnApart, LastRuntimes, RequestedRuntimes

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels at which it is asked how many jobs stayed within the quantile."""
JOBS_OF_A_SUM = 3
"""Jobs that a campaign must have waiting for its sum to be scored."""


@dataclass
class Levels:
    """At which level of its forecast each outcome lay; uniform from 0 to 1 if forecasts are right.

    Ties are broken at random.
    """

    values: list[Float64Array] = field(default_factory=list)

    def add(
        self,
        drawn: npt.NDArray[np.number],
        outcome: npt.NDArray[np.number],
        rng: np.random.Generator,
    ) -> None:
        """Take in forecasts (samples, outcomes) and their outcomes."""
        below = (drawn < outcome).mean(axis=0)
        equal = (drawn == outcome).mean(axis=0)
        self.values.append(below + equal * rng.random(len(outcome)))

    def within(self) -> list[float]:
        """Give the share of outcomes up to the quantile of each of `SHARES`."""
        levels = np.concatenate([*self.values, np.empty(0)])
        return [float(np.mean(levels <= share)) for share in SHARES]

    def told(self) -> Row:
        """Give the same as columns of a table, in percent."""
        titles = ("within 5%", *(f"{share:.0%}" for share in SHARES[1:]))
        within = zip(titles, self.within(), strict=True)
        return [(title, 100 * share, ".0f") for title, share in within]

    def distance(self) -> float:
        """Give the largest distance to the uniform distribution (Kolmogorov's)."""
        levels = np.sort(np.concatenate([*self.values, np.empty(0)]))
        return float(np.abs(levels - (np.arange(len(levels)) + 0.5) / len(levels)).max())


@dataclass
class RuntimeScore:
    """How good one model was for one group of jobs.

    Attributes
    ----------
    levels
        Of single jobs' runtimes.
    log_crps, crps_s
        Sums of the continuous ranked probability scores of log runtime and of the runtime in
        seconds: the mean absolute error, where a forecast is one number.
    jobs
        How many forecasts.
    """

    levels: Levels = field(default_factory=Levels)
    log_crps: float = 0.0
    crps_s: float = 0.0
    jobs: int = 0


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


@dataclass
class ModelScores:
    """How good one model was.

    Attributes
    ----------
    by_group
        ``submitted``: jobs at their submission; ``waiting``: all that wait at a moment;
        ``running``: all that run, given their age.
    campaign_sums, user_sums
        Of the sums of runtimes of a campaign's, and of a user's, waiting jobs.
    all_work
        Of what is left to do for all jobs that run or wait, in processor-seconds.
    """

    by_group: dict[str, RuntimeScore] = field(
        default_factory=lambda: {
            name: RuntimeScore() for name in ("submitted", "waiting", "running")
        }
    )
    campaign_sums: Levels = field(default_factory=Levels)
    user_sums: Levels = field(default_factory=Levels)
    all_work: Levels = field(default_factory=Levels)


def score_runtimes(
    source: LoggedWaits,
    models: Mapping[str, RuntimeDistribution],
    *,
    moments: int = 1_000,
    samples: int = 200,
    seed: int = 1,
    settled_share: float = 0.1,
) -> dict[str, ModelScores]:
    """Go through a log once and score models of runtimes.

    Parameters
    ----------
    source
        A fresh one.
    models
        Fresh ones, by name; they learn each job as it ends.
    moments
        At how many jobs' submissions they are asked, drawn at random.
    samples
        Draws at each.
    seed
        Of moments and draws.
    settled_share
        Nothing is asked in so large a part of the log, the first one.
    """
    workload = source.workload
    rng = np.random.default_rng(seed)
    first = int(len(workload) * settled_share)
    chosen = np.sort(
        rng.choice(np.arange(first, len(workload)), min(moments, len(workload) - first), False)
    )
    scores = {name: ModelScores() for name in models}
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
                _score(score.by_group[group], drawn[:, columns], outcome[columns], rng)
            waiting, waited = drawn[:, running:], outcome[running:]
            for levels, sets in ((score.campaign_sums, campaign), (score.user_sums, user)):
                if sets is not None:
                    levels.add(waiting @ sets, waited @ sets, rng)
            processors = workload.processors[jobs]
            left = (np.maximum(drawn - age, 0) * processors).sum(axis=1, keepdims=True)
            score.all_work.add(left, np.array([((outcome - age) * processors).sum()]), rng)
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


def _score(
    score: RuntimeScore, drawn: Int64Array, outcome: Int64Array, rng: np.random.Generator
) -> None:
    if not len(outcome):
        return
    score.levels.add(drawn, outcome, rng)
    score.crps_s += float(crps(drawn.astype(np.float64), outcome.astype(np.float64)).sum())
    score.log_crps += float(crps(np.log(drawn), np.log(outcome)).sum())
    score.jobs += len(outcome)


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


def score_table(scores: Mapping[str, ModelScores]) -> str:
    """Write scores as Markdown, shares in percent."""
    rows: list[Row] = []

    def add(
        jobs: str, name: str, levels: Levels, log_crps: float | None, crps_s: float | None
    ) -> None:
        if levels.values:
            rows.append(
                [
                    ("jobs", jobs),
                    ("model", name),
                    *levels.told(),
                    ("distance", levels.distance(), ".3f"),
                    ("log CRPS", log_crps, ".3f"),
                    ("CRPS, s", crps_s, ",.0f"),
                ]
            )

    for group in ("submitted", "waiting", "running"):
        for name, model in scores.items():
            score = model.by_group[group]
            if score.jobs:
                means = score.log_crps / score.jobs, score.crps_s / score.jobs
                add(group, name, score.levels, *means)
    for group, of in (
        ("sum of a campaign", "campaign_sums"),
        ("sum of a user", "user_sums"),
        ("all work", "all_work"),
    ):
        for name, model in scores.items():
            add(group, name, getattr(model, of), None, None)
    return StudyTable.of("runtimes", "Runtimes", rows).to_markdown()


def logged_waits(
    arguments: Sequence[str] | None, what: str, moments: int
) -> tuple[LoggedWaits, int]:
    """Read what a command says: which log, how many of its jobs, and at how many moments to ask.

    Parameters
    ----------
    arguments
        Of the command; ``None`` for this process's.
    what
        Models of which are scored.
    moments
        How many unless the command says otherwise.
    """
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
    print(score_table(score_runtimes(source, models_compared(), moments=moments)))


if __name__ == "__main__":
    main()
