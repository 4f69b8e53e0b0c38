"""Many estimators as experts, weighed user by user by how well they have done there lately.

Exponential weights with a fixed share (Herbster and Warmuth 1998; Cesa-Bianchi and Lugosi 2006,
sections 2.2 and 5.2): an expert that was bad for a user for months is back within a few jobs
once it becomes the best. Here what is shared goes by the weights over all users' jobs, so a user of
whom little is known is predicted by what serves the others. The prediction is a weighted median, as
means of runtimes are of no job's length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foretime_estimators.estimators.estimator import RuntimeEstimator, StartObserver
from foretime_estimators.estimators.pending_predictions import AskedJobs
from foretime_estimators.estimators.per_user import UserValues
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S


@dataclass(frozen=True, slots=True)
class MixtureSettings:
    """Settings of `ExpertMixture`.

    Attributes
    ----------
    level
        Share of jobs that are to end within their prediction, between 0 and 1. An expert's loss is
        the pinball loss of ln(runtime / prediction) at this level: 0.5 for its absolute value, more
        where underestimates cost more.
    rate
        How fast weights follow losses (eta), above 0.
    share
        Of a user's weights that go by all users' after each of the user's jobs, from 0 to 1.
    shortest_s
        Shorter times count as so long in losses, at least 1 second.
    largest_loss
        A single job counts at most so much, above 0: 4.6 is a hundredfold error.
    window_s
        A user of whom no job has ended for so long is forgotten, seconds.
    """

    level: float = 0.5
    rate: float = 1.0
    share: float = 0.05
    shortest_s: int = 10
    largest_loss: float = 4.6
    window_s: int = 180 * DAY_S

    def __post_init__(self) -> None:
        def require(name: str, valid: bool, rule: str) -> None:
            if not valid:
                raise InputError(f"mixture: {name} = {getattr(self, name)!r}: it must be {rule}")

        require("level", 0 < self.level < 1, "between 0 and 1")
        require("rate", 0 < self.rate < math.inf, "above 0")
        require("share", 0 <= self.share <= 1, "from 0 to 1")
        require("shortest_s", self.shortest_s >= 1, "at least 1 second")
        require("largest_loss", 0 < self.largest_loss < math.inf, "above 0")
        require("window_s", self.window_s >= 1, "at least 1 second")


class ExpertMixture:
    """Weighted median of what other estimators say.

    The experts are judged by what they said when first asked about a job, normally at its
    submission; on a job that nobody asked about, by what they say when it has ended, before they
    learn it.

    Parameters
    ----------
    experts
        Fresh estimators by name, at least one. All learn all jobs.
    settings
        The defaults if ``None``.
    """

    def __init__(
        self, experts: Mapping[str, RuntimeEstimator], settings: MixtureSettings | None = None
    ) -> None:
        if not experts:
            raise InputError("mixture: there is no expert: give at least one estimator")
        self.settings = settings if settings is not None else MixtureSettings()
        self._names = tuple(experts)
        self._experts = tuple(experts.values())
        self._observers = [each for each in self._experts if isinstance(each, StartObserver)]
        self._all = self._alike()
        self._users: UserValues[list[float]] = UserValues(self.settings.window_s)
        self._judged = False
        self._asked: AskedJobs[list[int]] = AskedJobs()

    @property
    def oracle(self) -> bool:
        """Whether an expert is one."""
        return any(expert.oracle for expert in self._experts)

    def weights(self, user: str | None) -> dict[str, float]:
        """Give each expert's weight for a user's next job; they sum to 1."""
        return dict(zip(self._names, self._users.get(user, self._all), strict=True))

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the weighted median of the experts' times, seconds; the request before any judged.

        Of two medians the longer one.
        """
        said = self._said(job, now)
        self._asked.remember(job.job_id, said)
        if not self._judged:
            return job.requested_time
        reached = 0.0
        for predicted, weight in sorted(
            zip(said, self._users.get(job.user, self._all), strict=True)
        ):
            reached += weight
            if reached > 0.5:
                return predicted
        return max(said)

    def start_one(self, job: JobRequest, start_time: int) -> None:
        """Tell the experts that observe starts."""
        for expert in self._observers:
            expert.start_one(job, start_time)

    def learn_one(self, job: FinishedJob) -> None:
        """Judge the experts by the job, then let them learn it."""
        request = job.request
        said = self._asked.take(request.job_id)
        if evidence_of(job) is Evidence.EXACT:
            self._judge(job, self._said(request, job.end_time) if said is None else said)
        for expert in self._experts:
            expert.learn_one(job)

    def _said(self, job: JobRequest, now: int) -> list[int]:
        return [expert.predict_one(job, now) for expert in self._experts]

    def _judge(self, job: FinishedJob, said: Sequence[int]) -> None:
        request, rules = job.request, self.settings
        at_limit = job.ending is Ending.TIMED_OUT
        took = request.requested_time if at_limit else job.actual_runtime
        log_took = math.log(max(rules.shortest_s, min(took, request.requested_time)))
        factors = []
        for predicted in said:
            off = log_took - math.log(max(rules.shortest_s, predicted))
            loss = off * rules.level if off > 0 else off * (rules.level - 1)
            factors.append(math.exp(-rules.rate * min(loss, rules.largest_loss)))
        before = self._users.get(request.user, self._all)
        self._all = self._followed(self._all, factors, self._alike())
        self._judged = True
        if request.user is not None:
            after = self._followed(before, factors, self._all)
            self._users.put(request.user, after, job.end_time)

    def _followed(
        self, weights: Sequence[float], factors: Sequence[float], shared: Sequence[float]
    ) -> list[float]:
        """Give weights after a job: times the factors, normed, then the fixed share."""
        moved = [weight * factor for weight, factor in zip(weights, factors, strict=True)]
        kept = (1 - self.settings.share) / math.fsum(moved)
        return [
            kept * weight + self.settings.share * other
            for weight, other in zip(moved, shared, strict=True)
        ]

    def _alike(self) -> list[float]:
        return [1 / len(self._experts)] * len(self._experts)

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            "mixture": 1,
            "settings": asdict(self.settings),
            "experts": [
                [name, expert.state()]
                for name, expert in zip(self._names, self._experts, strict=True)
            ],
            "judged": self._judged,
            "all": self._all,
            "users": self._users.state(),
            "asked": self._asked.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another estimator saved it, or one with other experts or settings.
        """
        if state.get("mixture") != 1:
            raise StateError("mixture: the state given was saved by another estimator")
        names = tuple(name for name, _ in state["experts"])
        if (names, state["settings"]) != (self._names, asdict(self.settings)):
            raise StateError(
                f"mixture: the state was learned with other settings or experts "
                f"({', '.join(names)}): learn the history anew"
            )
        for expert, (_, learned) in zip(self._experts, state["experts"], strict=True):
            expert.restore(learned)
        self._judged = state["judged"]
        self._all = list(state["all"])
        self._users.restore(state["users"])
        self._asked.restore(state["asked"])
