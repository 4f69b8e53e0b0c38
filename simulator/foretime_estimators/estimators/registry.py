"""Estimators by the names that people write on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from foretime_estimators.accuracy.accuracy import Scheme
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.accuracy_estimator import AccuracyEstimator
from foretime_estimators.estimators.actual import Actual, ActualBelow
from foretime_estimators.estimators.blend import Blend
from foretime_estimators.estimators.boosted_runtime import BoostedRuntime
from foretime_estimators.estimators.calibrated_runtime import CalibratedRuntime, CalibrationSettings
from foretime_estimators.estimators.estimator import RuntimeEstimator
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime
from foretime_estimators.estimators.expert_mixture import ExpertMixture, MixtureSettings
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.learned_order import LearnedOrder
from foretime_estimators.estimators.outcome_classes import OutcomeClasses, OutcomeSettings
from foretime_estimators.estimators.recent_maximum import RecentMaximum
from foretime_estimators.estimators.regression.learned_runtime import OPTIONS, learned_runtime
from foretime_estimators.estimators.regression.prediction_loss import LOSSES
from foretime_estimators.estimators.requested import Requested
from foretime_estimators.estimators.scaled_request import RandomisedRequest, ScaledRequest
from foretime_estimators.estimators.similar_jobs_estimator import SimilarJobsEstimator
from foretime_estimators.estimators.similar_jobs_settings import RoleRule, SimilarJobsSettings
from foretime_estimators.estimators.weighted_runtime import WeightedRuntime
from foretime_estimators.jobs.errors import InputError


@dataclass(frozen=True, slots=True)
class _Given:
    """What an estimator may be built from besides its name."""

    value: float
    choice: str
    options: Sequence[str]
    settings: AccuracySettings | None
    actual_runtimes: Mapping[str, int]
    seed: int


_Build: TypeAlias = Callable[[_Given], RuntimeEstimator]


@dataclass(frozen=True, slots=True)
class EstimatorName:
    """A name, and what it stands for.

    Attributes
    ----------
    name
        As written; some are written with a parameter, ``name:parameter``.
    parameter
        What the parameter is called in help, ``None`` for a name without one.
    description
        One line for help.
    oracle
        Whether it needs the actual runtimes of the jobs that it predicts for.
    build
        Builds a fresh one.
    choices
        What the parameter may be, where it is a name and not a number.
    options
        What may stand behind it, each after a colon: commas part estimators in lists.
    """

    name: str
    parameter: str | None
    description: str
    oracle: bool
    build: _Build
    choices: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def spelling(self) -> str:
        """The name as help shows it, such as ``blend:A``."""
        return self.name if self.parameter is None else f"{self.name}:{self.parameter}"

    @property
    def example(self) -> str:
        """The name as it may be written, such as ``blend:0.5``."""
        if self.parameter is None:
            return self.name
        return f"{self.name}:{self.choices[0] if self.choices else '0.5'}"


def _accuracy(scheme: Scheme) -> _Build:
    return lambda given: AccuracyEstimator(scheme, given.settings)


def _typical(level: float) -> SimilarJobsSettings:
    rule = RoleRule(level)
    return SimilarJobsSettings(queue=rule, backfill=rule, drain=rule, minimum_scheduled_time_s=1)


def _experts(given: _Given) -> dict[str, RuntimeEstimator]:
    """Build what `mixture` mixes: every kind of estimator that costs microseconds."""
    return {
        "requested": Requested(),
        "combined": AccuracyEstimator(Scheme.COMBINED, given.settings),
        "last-two": LastTwo(),
        "recent-maximum": RecentMaximum(),
        "expected": ExpectedRuntime(),
        "outcomes:0.3": OutcomeClasses(OutcomeSettings(level=0.3)),
        "outcomes:0.5": OutcomeClasses(OutcomeSettings(level=0.5)),
        "outcomes:0.8": OutcomeClasses(OutcomeSettings(level=0.8)),
    }


ESTIMATORS: tuple[EstimatorName, ...] = (
    EstimatorName("requested", None, "the request as it is", False, lambda _: Requested()),
    EstimatorName(
        "user", None, "accuracy of the user's past requests", False, _accuracy(Scheme.USER)
    ),
    EstimatorName(
        "project", None, "accuracy of the project's past requests", False, _accuracy(Scheme.PROJECT)
    ),
    EstimatorName("combined", None, "mean of user and project", False, _accuracy(Scheme.COMBINED)),
    EstimatorName(
        "actual",
        None,
        "the actual runtime (an oracle)",
        True,
        lambda given: Actual(given.actual_runtimes),
    ),
    EstimatorName(
        "actual-below",
        "SECONDS",
        "the actual runtime of jobs that run shorter, else the request (an oracle)",
        True,
        lambda given: ActualBelow(given.actual_runtimes, given.value),
    ),
    EstimatorName(
        "blend",
        "A",
        "A * actual + (1 - A) * requested (an oracle)",
        True,
        lambda given: Blend(given.actual_runtimes, given.value),
    ),
    EstimatorName(
        "last-two", None, "mean of the user's last two runtimes", False, lambda _: LastTwo()
    ),
    EstimatorName(
        "recent-maximum",
        None,
        "highest accuracy of the user's last 15 jobs, plus 15 minutes",
        False,
        lambda _: RecentMaximum(),
    ),
    EstimatorName(
        "similar",
        None,
        "what similar jobs took, from the most alike to all; a time for each role",
        False,
        lambda _: SimilarJobsEstimator(),
    ),
    EstimatorName(
        "typical",
        "LEVEL",
        "what that share of similar jobs stayed within, from the most alike to all",
        False,
        lambda given: SimilarJobsEstimator(_typical(given.value)),
    ),
    EstimatorName(
        "expected",
        None,
        "mean share of their requests that similar jobs took; a time for each role",
        False,
        lambda _: ExpectedRuntime(),
    ),
    EstimatorName(
        "weighted",
        None,
        "expected, but for the order a job counts by how long it ran, so that decoys bring nothing",
        False,
        lambda _: WeightedRuntime(),
    ),
    EstimatorName(
        "ranked",
        None,
        "expected, but who goes first is learned from pairs of jobs that waited at one time",
        False,
        lambda _: LearnedOrder(),
    ),
    EstimatorName(
        "regression",
        "LOSS",
        "online regression on 20 features, learned by a loss such as squared-linear-large-area",
        False,
        lambda given: learned_runtime(given.choice, given.options),
        tuple(LOSSES),
        OPTIONS,
    ),
    EstimatorName(
        "outcomes",
        "LEVEL",
        "fails at once, runs to its limit or between: which is likely, by what errors cost",
        False,
        lambda given: OutcomeClasses(OutcomeSettings(level=given.value)),
    ),
    EstimatorName(
        "mixture",
        "LEVEL",
        "the other estimators, weighed for each user by how well they do at that level",
        False,
        lambda given: ExpertMixture(_experts(given), MixtureSettings(level=given.value)),
    ),
    EstimatorName(
        "calibrated",
        "SHARE",
        "expected, times a factor by user with which that share of jobs runs longer",
        False,
        lambda given: CalibratedRuntime(ExpectedRuntime(), CalibrationSettings(given.value)),
    ),
    EstimatorName(
        "boosted",
        None,
        "quantiles from boosted trees, grown anew as jobs finish; needs the extra learn",
        False,
        lambda _: BoostedRuntime(),
    ),
    EstimatorName("doubled", None, "twice the request", False, lambda _: ScaledRequest(2.0)),
    EstimatorName(
        "scaled",
        "FACTOR",
        "the request times a factor",
        False,
        lambda given: ScaledRequest(given.value),
    ),
    EstimatorName(
        "randomised",
        None,
        "the request times a random factor up to 1",
        False,
        lambda given: RandomisedRequest(seed=given.seed),
    ),
)


def parse_estimator(
    text: str,
    *,
    settings: AccuracySettings | None = None,
    actual_runtimes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> RuntimeEstimator:
    """Build the estimator that a name such as ``combined`` or ``blend:0.5`` stands for.

    Parameters
    ----------
    text
        A name of `ESTIMATORS`, with ``:number`` or ``:name`` where it has a parameter.
    settings
        For the accuracy schemes; production's if ``None``.
    actual_runtimes
        Seconds by job id, for oracles.
    seed
        For randomised estimates.

    Raises
    ------
    InputError
        For a name or parameter that there is not (with the nearest), a number missing, superfluous
        or out of range, or an oracle without actual runtimes.

    Examples
    --------
    >>> from foretime_estimators import Ending, FinishedJob, JobRequest, parse_estimator
    >>> estimator = parse_estimator("last-two")
    >>> job = JobRequest("17", "ann", "physics", processors=8, requested_time=3600, submit_time=0)
    >>> for runtime in (900, 1100):
    ...     estimator.learn_one(FinishedJob(job, 0, runtime, runtime, Ending.COMPLETED))
    >>> estimator.predict_one(job, 2000)
    1000
    """
    found, given = _parsed(text, settings, actual_runtimes or {}, seed)
    if found.oracle and actual_runtimes is None:
        raise InputError(
            f"estimator {text!r} needs the actual runtimes, which no site knows beforehand; take "
            "another (foretime replay --scheme actual and foretime simulate show what it would do)"
        )
    return _built(text, found, given)


def estimator_name(text: str) -> str:
    """Give the one spelling of an estimator that may be written in several ways.

    Raises
    ------
    InputError
        As `parse_estimator`.
    """
    found, given = _parsed(text, None, {}, 0)
    _built(text, found, given)
    if found.parameter is None:
        return found.name
    parameter = ":".join((given.choice, *given.options)) if found.choices else f"{given.value:g}"
    return f"{found.name}:{parameter}"


def _parsed(
    text: str, settings: AccuracySettings | None, actual_runtimes: Mapping[str, int], seed: int
) -> tuple[EstimatorName, _Given]:
    """Find the estimator that a text names, and what stands behind the colon."""
    name, colon, parameter = text.strip().partition(":")
    found = next((entry for entry in ESTIMATORS if entry.name == name), None)
    if found is None:
        spellings = [entry.spelling for entry in ESTIMATORS]
        raise InputError(
            f"estimator {text!r}: there is none of that name; "
            + _nearest(name, [entry.name for entry in ESTIMATORS], spellings)
        )
    value = 0.0
    options: Sequence[str] = ()
    if found.parameter is None:
        if colon:
            raise InputError(f"estimator {text!r}: {name} takes no parameter; write {name!r}")
    elif found.choices:
        if found.options:
            parameter, *options = parameter.split(":")
        if parameter not in found.choices:
            raise InputError(
                f"estimator {text!r}: {name} takes a {found.parameter.lower()}, written "
                f"{found.spelling}; " + _nearest(parameter, found.choices, found.choices)
            )
    else:
        try:
            value = float(parameter)
        except ValueError:
            raise InputError(
                f"estimator {text!r}: {name} needs a number; write {found.spelling}, such as "
                f"{found.example}"
            ) from None
    return found, _Given(value, parameter, options, settings, actual_runtimes, seed)


def _built(text: str, found: EstimatorName, given: _Given) -> RuntimeEstimator:
    """Build it; what is wrong with its number is said of the name as written."""
    try:
        return found.build(given)
    except InputError as error:
        raise InputError(f"estimator {text!r}: {error}") from error


def _nearest(given: str, names: Sequence[str], spellings: Sequence[str]) -> str:
    if not given:
        return f"valid: {', '.join(spellings)}"
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}Valid: {', '.join(spellings)}"
