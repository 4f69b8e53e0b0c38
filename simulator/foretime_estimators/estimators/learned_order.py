"""Who goes first, learned from pairs of jobs that waited at one time (Gaussier 2015, section 7).

A pair's order matters by what the wrong one costs: if the longer job of two goes first, the other's
slowdown grows by longer / shorter, in the right order by shorter / longer. The score of a job is a
linear function of a few facts known at its submission; it is learned online by the logistic loss of
the difference of two scores, each pair weighed by the slowdown that is at stake (Burges et al.,
"Learning to rank using gradient descent", ICML 2005), with AdaGrad (Duchi, Hazan and Singer, JMLR
12, 2011). Where runtimes are drawn independently from known distributions, the expected cost of
such pairs is least by E[p] / E[1/p]: Smith's ratio as `expected` has it. So that is where the
score begins, and what is learned is where it is wrong.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from foretime_estimators.estimators.estimator import RolePrediction, clamped
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.outcome_classes import OutcomeClasses
from foretime_estimators.estimators.pending_predictions import AskedJobs
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

FACTS = (
    "ln_order_time",
    "ln_mean_time",
    "ln_requested_time",
    "ln_processors",
    "ln_last_two",
    "fails_at_once",
    "runs_to_limit",
)
"""What the score is linear in: the two times of `expected`, the request and the mean of the user's
last two runtimes, logarithms of seconds; the size; two probabilities of `outcomes`."""
_BEGINNING = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class LearnedOrderSettings:
    """Settings of `LearnedOrder`.

    Attributes
    ----------
    rate
        AdaGrad's eta, above 0: how far the first step moves a weight.
    pairs
        With how many jobs that waited at the same time a job is compared when it ends, at least 1.
    remembered
        Among how many that ended last these are looked for, at least 1.
    largest_stake
        A pair weighs at most so much, above 0: with 100 jobs whose runtimes differ a
        hundredfold weigh as much as more unequal ones.
    shortest_s
        Shorter runtimes count as so long, at least 1 second: the tau of bounded slowdown.
    """

    rate: float = 0.05
    pairs: int = 8
    remembered: int = 500
    largest_stake: float = 100.0
    shortest_s: int = 10

    def __post_init__(self) -> None:
        def require(name: str, valid: bool, rule: str) -> None:
            if not valid:
                raise InputError(f"ranked: {name} = {getattr(self, name)!r}: it must be {rule}")

        require("rate", 0 < self.rate < math.inf, "above 0")
        require("pairs", self.pairs >= 1, "at least 1")
        require("remembered", self.remembered >= 1, "at least 1")
        require("largest_stake", 0 < self.largest_stake < math.inf, "above 0")
        require("shortest_s", self.shortest_s >= 1, "at least 1 second")


class _Waited(NamedTuple):
    """A job that has ended: when it waited, how long it took, seconds, and what was known of it."""

    submit_time: int
    start_time: int
    took: int
    facts: tuple[float, ...]


class LearnedOrder:
    """`expected`, but who goes first is learned.

    Parameters
    ----------
    settings
        The defaults if ``None``.
    """

    oracle = False

    def __init__(self, settings: LearnedOrderSettings | None = None) -> None:
        self.settings = settings if settings is not None else LearnedOrderSettings()
        self._expected = ExpectedRuntime()
        self._outcomes = OutcomeClasses()
        self._last_two = LastTwo()
        self._weights = list(_BEGINNING)
        self._gradient_squares = [0.0] * len(FACTS)
        self._mean_facts: list[float] = []
        self._recent: deque[_Waited] = deque(maxlen=self.settings.remembered)
        self._asked: AskedJobs[tuple[float, ...]] = AskedJobs()

    @property
    def weights(self) -> dict[str, float]:
        """What each fact adds to the score now; the greater score goes later."""
        return dict(zip(FACTS, self._weights, strict=True))

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the time for backfilling, seconds."""
        return self.predict_roles(job, now).backfill

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction:
        """Give each role's time, seconds.

        That for the queue's order is Smith's, times what the job's score is beside that of a job
        with mean facts; scores have no unit of their own.
        """
        times = self._expected.predict_roles(job, now)
        facts = self._facts(job, now, times)
        self._asked.remember(job.job_id, facts)
        moved = sum(
            (weight - first) * (fact - mean)
            for weight, first, fact, mean in zip(
                self._weights, _BEGINNING, facts, self._mean_facts or facts, strict=True
            )
        )
        longest = math.log(job.requested_time)
        score = min(math.log(times.queue) + moved, longest)
        return times._replace(queue=clamped(round(math.exp(score)), job))

    def _facts(self, job: JobRequest, now: int, times: RolePrediction) -> tuple[float, ...]:
        at_once, _, at_limit = self._outcomes.probabilities(job) or (0.0, 0.0, 1.0)
        return (
            math.log(times.queue),
            math.log(times.backfill),
            math.log(job.requested_time),
            math.log(job.processors),
            math.log(self._last_two.predict_one(job, now)),
            at_once,
            at_limit,
        )

    def learn_one(self, job: FinishedJob) -> None:
        """Compare the job with those that waited when it did, then take it in."""
        request = job.request
        facts = self._asked.take(request.job_id)
        if facts is None:
            facts = self._facts(
                request, job.end_time, self._expected.predict_roles(request, job.end_time)
            )
        if evidence_of(job) is not Evidence.NONE and job.start_time is not None:
            at_limit = job.ending is Ending.TIMED_OUT
            took = request.requested_time if at_limit else job.actual_runtime
            took = max(took, self.settings.shortest_s)
            own = _Waited(request.submit_time, job.start_time, took, facts)
            for other in self._beside(own):
                self._compare(own, other)
            self._recent.append(own)
            self._follow(facts)
        for each in (self._expected, self._outcomes, self._last_two):
            each.learn_one(job)

    def _follow(self, facts: Sequence[float]) -> None:
        """Move the mean facts towards a job's, by its share in as many as are remembered."""
        share = 1 / len(self._recent)
        before = self._mean_facts or facts
        self._mean_facts = [
            mean + share * (fact - mean) for mean, fact in zip(before, facts, strict=True)
        ]

    def _beside(self, own: _Waited) -> Sequence[_Waited]:
        """Give some that were candidates when it was, spread evenly over those remembered."""
        beside = [
            other
            for other in self._recent
            if other.submit_time < own.start_time and own.submit_time < other.start_time
        ]
        count = min(self.settings.pairs, len(beside))
        return [beside[place * len(beside) // count] for place in range(count)]

    def _compare(self, one: _Waited, other: _Waited) -> None:
        """Move the weights one step towards the order that was right for two jobs."""
        shorter, longer = (one, other) if one.took < other.took else (other, one)
        if shorter.took == longer.took:
            return
        stake = longer.took / shorter.took - shorter.took / longer.took
        apart = [late - early for late, early in zip(longer.facts, shorter.facts, strict=True)]
        margin = sum(weight * fact for weight, fact in zip(self._weights, apart, strict=True))
        # The logistic loss ln(1 + e^-margin) falls with the margin by 1 / (1 + e^margin).
        falls = min(stake, self.settings.largest_stake) / (1 + math.exp(min(margin, 700.0)))
        for place, fact in enumerate(apart):
            gradient = falls * fact
            if gradient:
                self._gradient_squares[place] += gradient * gradient
                step = self.settings.rate / math.sqrt(self._gradient_squares[place])
                self._weights[place] += step * gradient

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            "learned_order": 1,
            "settings": asdict(self.settings),
            "expected": self._expected.state(),
            "outcomes": self._outcomes.state(),
            "last_two": self._last_two.state(),
            "weights": list(self._weights),
            "gradient_squares": list(self._gradient_squares),
            "mean_facts": list(self._mean_facts),
            "recent": [[*each[:3], list(each.facts)] for each in self._recent],
            "asked": {job: list(facts) for job, facts in self._asked.state().items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another estimator saved it, or it was learned under other settings.
        """
        if state.get("learned_order") != 1 or state["settings"] != asdict(self.settings):
            raise StateError(
                "ranked: the state given was saved by another estimator or learned under other"
                " settings: learn the history anew"
            )
        self._expected.restore(state["expected"])
        self._outcomes.restore(state["outcomes"])
        self._last_two.restore(state["last_two"])
        self._weights = list(state["weights"])
        self._gradient_squares = list(state["gradient_squares"])
        self._mean_facts = list(state["mean_facts"])
        self._recent = deque(
            (
                _Waited(submit_time, start_time, took, tuple(facts))
                for submit_time, start_time, took, facts in state["recent"]
            ),
            self.settings.remembered,
        )
        self._asked.restore({job: tuple(facts) for job, facts in state["asked"].items()})
