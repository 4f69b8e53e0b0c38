"""The shapes of what the daemon answers to operators and to monitoring, as `answer_types`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import WithJsonSchema
from typing_extensions import TypedDict  # before Python 3.12 pydantic takes no other

from foretime_sidecar.forecasts.forecast_reliability import DayScores
from foretime_sidecar.plain_beside.account import Account
from foretime_sidecar.safety.ab_report import AbReport
from foretime_sidecar.safety.circuit_breaker import BreakerFigures
from foretime_sidecar.scoreboard.estimator_board import EstimatorBoard
from foretime_sidecar.settings.settings import BreakerSettings
from foretime_sidecar.site_import.kept_site import SiteStanding
from foretime_sidecar.store.decisions import DecidedJobs
from foretime_sidecar.store.estimator_switches import EstimatorSwitch
from foretime_sidecar.store.order_switches import OrderSwitch
from foretime_sidecar.web.api.described_answers import with_fields_of_its_base
from foretime_sidecar.web.api.verdicts import Line, Verdict

Helps: TypeAlias = Literal["yes", "no", "unclear", "early", "off", "stopped"]
"""Whether Foretime helps, in a word for programs."""


# -- administration --------------------------------------------------------------------------------


class BreakerAnswer(TypedDict):
    """The circuit breaker.

    Attributes
    ----------
    open
        Whether enforce is given up.
    tripped_at, reason
        Since when, epoch seconds, and why; null if it is closed.
    figures
        What it judges.
    limits
        The settings `breaker.*`.
    """

    open: bool
    tripped_at: int | None
    reason: str | None
    figures: BreakerFigures
    limits: Annotated[dict[str, Any], WithJsonSchema(BreakerSettings.model_json_schema())]


class BreakerReset(TypedDict):
    """The circuit breaker before it was closed.

    Attributes
    ----------
    was_open
        Whether it was open.
    reason
        Why; null if it was not.
    """

    was_open: bool
    reason: str | None


class OrderTry(TypedDict):
    """The last try to find the best order.

    Attributes
    ----------
    tried_at
        Epoch seconds.
    kept
        Why the order was kept without a decision; null if it was decided.
    took_s
        How long it took, seconds.
    waiting_jobs
        Jobs that it was decided by.
    case
        Of table 1 (Streit 2002); null where it does not apply.
    best
        The order found.
    quality
        By which quality.
    qualities
        Of the schedule in each order, by name.
    """

    tried_at: int
    kept: str | None
    took_s: float
    waiting_jobs: int | None
    case: str | None
    best: str | None
    quality: str
    qualities: dict[str, float | None] | None


class QueueOrderAnswer(TypedDict):
    """The order that the queue is kept in.

    Attributes
    ----------
    set
        The setting `queue_order.order`.
    order, since, instead_of
        The order now, and under `dynp` since when (epoch seconds) and in place of which; null if
        there is none, or it is not known yet.
    why
        Under `dynp` why it was chosen, in words.
    switches_of_a_day
        How often it was switched in the last 24 hours.
    refused
        Why the queue is not put in order though it is set.
    going_first
        Jobs that go before all others.
    last_try
        Under `dynp` the last try to find the best order.
    raised, missed
        Under `start-now` how often a job was raised, and how often one that still fitted had not
        started by the next look; else null.
    """

    set: str
    order: str | None
    since: int | None
    instead_of: str | None
    why: str | None
    switches_of_a_day: int | None
    refused: str | None
    going_first: int
    last_try: OrderTry | None
    raised: int | None
    missed: int | None


@with_fields_of_its_base
@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedSwitch(OrderSwitch):
    """One decision of dynP's.

    Attributes
    ----------
    why
        Why, in words.
    """

    why: str


class OrderSwitchesAnswer(TypedDict):
    """The log of dynP's decisions.

    Attributes
    ----------
    switches
        Oldest first.
    """

    switches: list[ExplainedSwitch]


@with_fields_of_its_base
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorsAnswer(EstimatorBoard):
    """How every estimator does on the site's jobs.

    Attributes
    ----------
    more_accurate
        The best one, if it is better than the one in use beyond chance; else null.
    scheme
        The setting `accuracy.scheme`.
    """

    more_accurate: str | None
    scheme: str


class EstimatorSwitchesAnswer(TypedDict):
    """Which estimator was in use since when, and which was found to be better.

    Attributes
    ----------
    switches
        Oldest first.
    """

    switches: list[EstimatorSwitch]


# -- whether Foretime helps ------------------------------------------------------------------------


class LineGroup(TypedDict):
    """Lines of one subject.

    Attributes
    ----------
    name
        A word for programs, which stays the same.
    title
        What they are about.
    verdict
        The worst of them.
    lines
        What was measured, and what each comes to.
    """

    name: str
    title: str
    verdict: Verdict
    lines: list[Line]


class EstimatorFigures(TypedDict):
    """How one estimator does, in short.

    Attributes
    ----------
    name
        As in the registry.
    in_use
        Whether jobs are planned by it.
    jobs
        Scored.
    accuracy, under_predicted
        Of its estimates, and the share of jobs that ran longer; null without jobs.
    set_aside
        Why it is asked no more; "" while it is.
    """

    name: str
    in_use: bool
    jobs: int
    accuracy: float | None
    under_predicted: float | None
    set_aside: str


@with_fields_of_its_base
@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedJobs(DecidedJobs):
    """Jobs of which the latest word of the audit is the same.

    Attributes
    ----------
    why
        The reason in words.
    """

    why: str


class OperatorsAnswer(TypedDict):
    """Whether Foretime helps or hurts, and what should be looked at.

    Attributes
    ----------
    made_at, started_at
        Now, and when the daemon began, epoch seconds.
    helps
        "unclear": no difference is shown; "early": too early to tell; "off": it is set to change
        nothing; "stopped": the circuit breaker is open.
    text
        That in a sentence.
    verdict
        The worst of all lines.
    groups
        All lines, by subject.
    brought
        Over four weeks, by week; null if the plain scheduler is not run beside.
    ab
        Over four weeks; null if `brought` tells something.
    forecast_days
        How forecasts have done, day by day.
    estimators
        Those that have any figures.
    decided
        Jobs seen in `breaker.window_s`, the most frequent first.
    refused_requests
        Refused since the daemon began, by HTTP status.
    """

    made_at: int
    started_at: int
    helps: Helps
    text: str
    verdict: Verdict
    groups: list[LineGroup]
    brought: Account | None
    ab: AbReport | None
    forecast_days: Sequence[DayScores]
    estimators: list[EstimatorFigures]
    decided: list[ExplainedJobs]
    refused_requests: dict[str, int]


# -- monitoring ------------------------------------------------------------------------------------


@with_fields_of_its_base
@dataclass(frozen=True, slots=True, kw_only=True)
class AgedSite(SiteStanding):
    """The site that the queue is run forward as.

    Attributes
    ----------
    age_s
        Since the last good reading, seconds; null before it.
    """

    age_s: int | None


class HealthAnswer(TypedDict):
    """Whether the daemon does its work.

    Attributes
    ----------
    status
        "starting" before the first poll is through.
    poll_age_s
        Since the last poll that went through, seconds.
    pause_s, pause_reason
        Pause between two looks at the scheduler now, and why it is longer than
        `scheduler.poll_interval_s`; "" if it is not.
    table_generation, table_rows
        Of the table in place.
    table_age_s, table_valid_s
        Since it was written, and until the hook no longer heeds it, seconds.
    mode, mode_reason
        What it tells the hook, and why if that is not the mode that was set.
    finished_jobs
        Finished jobs learned from.
    last_error
        Why the last poll failed; "" if it did not.
    last_forecast_error
        Why forecasts were not refreshed; "" if they were.
    site
        The site that the queue is run forward as; null with `forecast.run_as = "policy"`.
    last_beside_error
        Why the plain scheduler beside did not go on; "" if it did.
    last_estimators_error
        Why the estimators' scores were not refreshed; "" if they were.
    """

    status: Literal["starting", "ok"]
    poll_age_s: int | None
    pause_s: int
    pause_reason: str
    table_generation: int | None
    table_age_s: int | None
    table_valid_s: int | None
    table_rows: int
    mode: str | None
    mode_reason: str
    finished_jobs: int
    last_error: str
    last_forecast_error: str
    site: AgedSite | None
    last_beside_error: str
    last_estimators_error: str
