"""The shapes of the daemon's answers, of which OpenAPI's schemas are made.

Forecasts have theirs in `foretime_sidecar.forecast_answer`. What is a dataclass of another room is
answered as it is, field by field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypeVar

from foretime_estimators.accuracy.accuracy import ClassHistory
from pydantic import WithJsonSchema
from typing_extensions import TypedDict  # before Python 3.12 pydantic takes no other

from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.forecasts.latest_starts import KeptBounds
from foretime_sidecar.learning.learner import EveryonesAccuracy
from foretime_sidecar.plain_beside.account import Brought, By, ModelError
from foretime_sidecar.plain_beside.beside import BesideStanding
from foretime_sidecar.safety.circuit_breaker import BreakerFigures
from foretime_sidecar.scoreboard.estimator_board import EstimatorBoard
from foretime_sidecar.settings.settings import BreakerSettings
from foretime_sidecar.site_import.kept_site import SiteStanding
from foretime_sidecar.store.decisions import Decision
from foretime_sidecar.store.estimator_switches import EstimatorSwitch
from foretime_sidecar.store.order_switches import OrderSwitch
from foretime_sidecar.web.api.described_answers import ATTRIBUTES

StoredRow: TypeAlias = dict[str, str | int | float | None]
"""A row of one of the store's tables: its values by column."""
Answer = TypeVar("Answer")


def _with_fields_of_its_base(answer: type[Answer]) -> type[Answer]:
    """Have the docstring of an answer say what its base's fields mean, too."""
    _, _, attributes = cleandoc(answer.__bases__[0].__doc__ or "").partition(ATTRIBUTES)
    answer.__doc__ = f"{cleandoc(answer.__doc__ or '')}\n{attributes}"
    return answer


# -- accuracy --------------------------------------------------------------------------------------


class ClassAccuracy(TypedDict):
    """How accurate requests of one class of requested time were.

    Attributes
    ----------
    requested_time_class
        0 for the shortest requests.
    above_s, up_to_s
        The class's requested times, seconds; `up_to_s` is null for the longest.
    submissions, threshold
        Finished submissions, and how many are needed to adjust jobs.
    processor_seconds
        Processor-time that they used.
    largest_processor_seconds
        Largest processors x requested time among them. Larger jobs are not adjusted.
    adjustment
        A: such jobs are planned with A x requested time; null with too little history.
    """

    requested_time_class: int
    above_s: int
    up_to_s: int | None
    submissions: int
    threshold: int
    processor_seconds: int
    largest_processor_seconds: int
    adjustment: float | None


class ProjectAccuracy(TypedDict):
    """How accurate requests of a project were.

    Attributes
    ----------
    name
        As asked.
    classes
        Those that the caller may see.
    complete
        Whether every class with history is shown.
    """

    name: str
    classes: list[ClassAccuracy]
    complete: bool


class AccuracyAnswer(TypedDict):
    """How accurate requests were: the caller's own, and of groups of users.

    Attributes
    ----------
    user
        Whose history `classes` is; null if nobody is known.
    classes
        Each class of requested time with any history.
    everyone
        Over all users with enough history, for classes in which they make a group.
    smallest_group
        Users that an aggregate has at least.
    project
        Only if asked for.
    """

    user: str | None
    classes: list[ClassAccuracy]
    everyone: list[EveryonesAccuracy]
    smallest_group: int
    project: NotRequired[ProjectAccuracy]


# -- waits -----------------------------------------------------------------------------------------


class PartitionMap(TypedDict):
    """Expected waits in one partition.

    Attributes
    ----------
    partition
        Slurm partition; null for the whole machine.
    made_at
        When the queue was looked at, epoch seconds.
    sizes, times_s
        Processors, and requested times in seconds.
    median_wait_s, bound_95_s
        For each size a list over the times, seconds: the likely wait, and what 95% of such jobs do
        not exceed; null where no such job can run.
    """

    partition: str | None
    made_at: int
    sizes: Sequence[int]
    times_s: Sequence[int]
    median_wait_s: Sequence[Sequence[int | None]]
    bound_95_s: Sequence[Sequence[int | None]]


class MapAnswer(TypedDict):
    """Expected waits over job size and requested time.

    Attributes
    ----------
    made_at
        When the queue was looked at for the oldest map, epoch seconds.
    maps
        One for each partition that takes jobs.
    """

    made_at: int
    maps: list[PartitionMap]


@_with_fields_of_its_base
@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityAnswer(Reliability):
    """How well the forecasts served have done, over all users.

    Attributes
    ----------
    start_no_later_than
        How such bounds have done; null where none are noted.
    smallest_group
        Users that an aggregate has at least.
    """

    start_no_later_than: KeptBounds | None
    smallest_group: int


# -- one job, and all that is stored of a user -----------------------------------------------------


class DecisionsAnswer(TypedDict):
    """The audit.

    Attributes
    ----------
    decisions
        Oldest first.
    """

    decisions: list[Decision]


class OwnJobs(TypedDict):
    """History of a user's jobs in one class.

    Attributes
    ----------
    submissions, threshold, adjustment
        As in `ClassAccuracy`.
    """

    submissions: int
    threshold: int
    adjustment: float | None


@_with_fields_of_its_base
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Decision):
    """What became of one job: its latest decision, and what is known of such jobs.

    Attributes
    ----------
    why
        The reason in words.
    history
        All decisions on it.
    own_jobs
        Of its user's jobs in its class; null if there are none.
    estimated_from
        Under the scheme `learned` the kind of jobs that the table has a row of for it, else null.
    mode
        What the table in place tells the hook.
    """

    why: str
    history: list[Decision]
    own_jobs: OwnJobs | None
    estimated_from: str | None
    mode: str | None


class PersonalAnswer(TypedDict):
    """All that is stored of one user.

    Attributes
    ----------
    user
        Whose.
    jobs
        Finished jobs.
    job_decisions
        The audit.
    served_forecasts
        Forecasts of waits.
    start_bounds
        Bounds of starts.
    plain_starts
        Starts in the model of the plain scheduler.
    told_users
        When they were told what their jobs use.
    decisions
        The hook's notes on the jobs.
    learned
        What is made of them.
    forgotten_at
        Up to when all was erased, epoch seconds; null: never.
    """

    user: str
    jobs: list[StoredRow]
    job_decisions: list[StoredRow]
    served_forecasts: list[StoredRow]
    start_bounds: list[StoredRow]
    plain_starts: list[StoredRow]
    told_users: list[StoredRow]
    decisions: list[StoredRow]
    learned: list[ClassHistory]
    forgotten_at: int | None


class ForgetAnswer(TypedDict):
    """What was erased.

    Attributes
    ----------
    user
        Of whom.
    erased
        Rows, by table.
    forgotten_at
        When, epoch seconds.
    """

    user: str
    erased: dict[str, int]
    forgotten_at: int


class TokenAnswer(TypedDict):
    """The token that a request must show if it changes anything.

    Attributes
    ----------
    token
        For the header `X-Foretime-Token`.
    valid_s
        For how long, seconds.
    """

    token: str
    valid_s: int


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


@_with_fields_of_its_base
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


@_with_fields_of_its_base
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


@_with_fields_of_its_base
@dataclass(frozen=True, slots=True, kw_only=True)
class LateStanding(BesideStanding):
    """How the runs of the plain scheduler stand, and what they find.

    Attributes
    ----------
    late_jobs
        Waiting jobs that are later than `beside.most_late_s`.
    behind_s
        Work of the jobs that would have started without Foretime and still wait, in seconds of the
        nodes that they wait for, where it is most.
    is_behind
        Whether that is over `beside.most_behind_s`.
    """

    late_jobs: int
    behind_s: int
    is_behind: bool


class BroughtAnswer(TypedDict):
    """What Foretime has brought.

    Attributes
    ----------
    user
        Whose jobs; null for everybody's.
    since, by
        As asked: epoch seconds, and what rows are by.
    brought, brought_rows
        Of days on which Foretime was at work: in all, and by rows.
    would_bring, would_bring_rows
        Of other days: what it would have brought.
    model
        How far the model is from the scheduler.
    left_out_jobs
        Jobs that were not compared.
    standing
        How the runs of the plain scheduler stand.
    """

    user: str | None
    since: int
    by: By
    brought: Brought
    brought_rows: Sequence[Brought]
    would_bring: Brought
    would_bring_rows: Sequence[Brought]
    model: ModelError
    left_out_jobs: int
    standing: LateStanding


# -- monitoring ------------------------------------------------------------------------------------


@_with_fields_of_its_base
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
