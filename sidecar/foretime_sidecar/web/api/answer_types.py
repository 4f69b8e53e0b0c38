"""The shapes of what the daemon answers to users, of which OpenAPI's schemas are made.

Forecasts have theirs in `foretime_sidecar.forecast_answer`. What is a dataclass of another room is
answered as it is, field by field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypeAlias

from foretime_estimators.accuracy.accuracy import ClassHistory
from typing_extensions import TypedDict  # before Python 3.12 pydantic takes no other

from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.forecasts.latest_starts import KeptBounds
from foretime_sidecar.learning.learner import EveryonesAccuracy
from foretime_sidecar.notify.ways import Kind
from foretime_sidecar.plain_beside.account import Brought, By, ModelError
from foretime_sidecar.plain_beside.beside import BesideStanding
from foretime_sidecar.store.decisions import Decision
from foretime_sidecar.web.api.described_answers import with_fields_of_its_base

StoredRow: TypeAlias = dict[str, str | int | float | None]
"""A row of one of the store's tables: its values by column."""


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
    used_share
        The share of their requested time that most of them used at most; null as `adjustment`.
    """

    requested_time_class: int
    above_s: int
    up_to_s: int | None
    submissions: int
    threshold: int
    processor_seconds: int
    largest_processor_seconds: int
    adjustment: float | None
    used_share: float | None


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


@with_fields_of_its_base
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
    submissions, threshold, adjustment, used_share
        As in `ClassAccuracy`.
    """

    submissions: int
    threshold: int
    adjustment: float | None
    used_share: float | None


@with_fields_of_its_base
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
    watched_jobs
        Jobs that they have news of.
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
    watched_jobs: list[StoredRow]
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


# -- news of when jobs start -----------------------------------------------------------------------


class NotifiedJob(TypedDict):
    """A job that its user has news of.

    Attributes
    ----------
    job_id
        As its user has named it.
    asked_at
        When they asked, epoch seconds.
    """

    job_id: str
    asked_at: int


class Notifications(TypedDict):
    """What news of when jobs start the daemon sends a user.

    Attributes
    ----------
    user
        Whose.
    way
        How they are sent; null: the site's daemon sends none.
    address
        Where they are mailed to; null if they are not.
    jobs
        The jobs that they are of.
    """

    user: str
    way: Kind | None
    address: str | None
    jobs: list[NotifiedJob]


# -- what Foretime has brought ---------------------------------------------------------------------


@with_fields_of_its_base
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
