"""From finished jobs to the table: the accuracy model, or an estimator, and rows from either."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from foretime_estimators.accuracy.accuracy import AccuracyModel, AccuracyRow, ClassHistory, RowKey
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.endings import MICRO, Evidence, evidence_of
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sidecar.clients.client import SchedulerConfiguration
from foretime_sidecar.clients.slurm.release import SOFT_LIMIT_SINCE, slurm_release
from foretime_sidecar.learning.estimator_rows import LearnedRows, micro_of
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.settings.settings import HookSettings, Settings
from foretime_sidecar.table.row_kinds import KINDS
from foretime_sidecar.table.table import (
    NO_ADVICE,
    Advice,
    Mechanism,
    Mode,
    Scheme,
    Table,
    TableRow,
    TableSettings,
    UserTimeMin,
)


@dataclass(frozen=True, slots=True)
class EveryonesAccuracy:
    """A over all users with enough history in a class of requested times.

    Attributes
    ----------
    requested_time_class, above_s, up_to_s
        The class, and its requested times in seconds; ``up_to_s`` is ``None`` for the longest.
    users
        How many they are.
    median_adjustment
        Half of them have no larger A.
    """

    requested_time_class: int
    above_s: int
    up_to_s: int | None
    users: int
    median_adjustment: float


class Learner:
    """The accuracy model under the daemon's settings, and the table that follows from it.

    Under the scheme ``learned`` the table follows from an estimator as long as that can be gone by
    (`go_by_estimator`), and else from the accuracy model's combined scheme.

    Attributes
    ----------
    learned
        The rows that an estimator fills; ``None`` under other schemes.
    runtimes
        How long jobs really take, if the queue's order is decided on that; else ``None``.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._scheme = settings.accuracy.to_scheme()
        self._model = AccuracyModel(settings.accuracy.to_model())
        self._rows: dict[RowKey, TableRow] = {}
        self._changed = False
        self.learned: LearnedRows | None = None
        self._by_estimator = False
        self._least_micro = round(settings.accuracy.minimum_adjustment * MICRO)
        if settings.accuracy.scheme == "learned":
            self.learned = LearnedRows(
                settings.learned.to_back_off(),
                self._model.settings,
                settings.learned.threshold,
                settings.api.smallest_group,
            )
        self.runtimes = RuntimeHistories() if settings.queue_order.draws_runtimes else None
        # Latest end of each user of a project and class, of the latest as many as make a group.
        self._members: dict[tuple[str, int], dict[str, int]] = {}
        self._smallest_group = settings.api.smallest_group
        # How long a user's evidence shows in an aggregate: as long as it is in the window, or has
        # half its weight.
        self._member_for_s = settings.accuracy.window_s or settings.accuracy.half_life_s or None
        self._latest = 0  # as of when the model speaks, epoch seconds

    def learn_one(self, job: FinishedJob) -> None:
        """Take in one finished job."""
        self._model.learn_one(job)
        if self.learned is not None:
            self.learned.learn_one(job)
        if self.runtimes is not None:
            self.runtimes.learn_one(job)
        self._latest = max(self._latest, job.end_time)
        user, project = job.request.user, job.request.project
        if user is not None and project is not None and evidence_of(job) is not Evidence.NONE:
            members = self._members.setdefault((project, self.class_of(job.request)), {})
            members[user] = max(members.get(user, 0), job.end_time)
            if len(members) > self._smallest_group:
                # Whether it is a group hangs on the latest alone.
                del members[min(members, key=members.__getitem__)]

    def class_of(self, job: JobRequest) -> int:
        """Give the requested-time class of a job, 0 the shortest."""
        return self.class_of_requested_time(job.requested_time)

    def class_of_requested_time(self, requested_time: int) -> int:
        """Give the class of a requested time in seconds, 0 the shortest."""
        return self._model.settings.requested_time_class(requested_time)

    def is_group(self, project: str, requested_time_class: int) -> bool:
        """Say whether enough users made a project's history in a class to show it to others.

        Those whose evidence has aged out don't count: they are not in the figures any more.
        """
        members = self._members.get((project, requested_time_class), {})
        oldest = 0 if self._member_for_s is None else self._latest - self._member_for_s
        live = sum(end_time >= oldest for end_time in members.values())
        return live >= self._smallest_group

    def knows(self, project: str) -> bool:
        """Say whether a project has any history."""
        return any(name == project for name, _ in self._members)

    def go_by_estimator(self, *, usable: bool) -> bool:
        """Note whether the estimator can be gone by, and say whether that is new."""
        new = usable != self._by_estimator
        self._by_estimator = usable
        self._changed = self._changed or new
        return new

    @property
    def scheme(self) -> Scheme:
        """Whose rows stand in the table."""
        return Scheme.LEARNED if self._by_estimator else Scheme(self._scheme)

    def scheduled_time(self, job: JobRequest) -> int:
        """t_sched of a job, seconds: what the hook would set with a table of this moment."""
        if not self._by_estimator:
            return self._model.scheduled_time(job, self._scheme)
        adjustment = self._learned_micro(job)
        if adjustment is None:
            return job.requested_time
        return self._model.settings.scheduled_time(adjustment, job.requested_time)

    def adjustment(self, job: JobRequest) -> float | None:
        """Give A of a job; ``None`` where there is too little history."""
        if not self._by_estimator:
            return self._model.adjustment(job, self._scheme)
        adjustment = self._learned_micro(job)
        return None if adjustment is None else adjustment / MICRO

    def kind_of(self, job: JobRequest) -> str | None:
        """Say what kind of jobs the row is of that the hook finds for a job; ``None`` if none."""
        row = self.learned.row_of(job) if self.learned is not None and self._by_estimator else None
        return None if row is None else KINDS[row.kind].description

    def _learned_micro(self, job: JobRequest) -> int | None:
        row = None if self.learned is None else self.learned.row_of(job)
        if row is None:
            return None
        return max(row.adjustment_micro, self._least_micro)

    def as_planned(self, job: JobRequest, estimated_s: int) -> int:
        """Give t_sched of a job, seconds, if an estimator expects it to take so long.

        As a row of its own would have the hook compute it.
        """
        micro = max(
            micro_of(estimated_s, job), round(self._settings.accuracy.minimum_adjustment * MICRO)
        )
        return self._model.settings.scheduled_time(micro, job.requested_time)

    def describe(self, user: str | None = None, project: str | None = None) -> list[ClassHistory]:
        """Say what is known of a user, a project or both, class by class."""
        return self._model.describe(user, project)

    def everyone(self) -> list[EveryonesAccuracy]:
        """Sum up the users' rows as of the last `refresh`, for classes that make a group."""
        by_class: dict[int, list[int]] = {}
        for row in self._rows.values():
            if row.scope == "user":
                by_class.setdefault(row.requested_time_class, []).append(row.adjustment_micro)
        found = []
        for time_class, adjustments in sorted(by_class.items()):
            if len(adjustments) >= self._smallest_group:
                above_s, up_to_s = self._model.settings.class_limits(time_class)
                median = statistics.median(adjustments) / MICRO
                found.append(
                    EveryonesAccuracy(time_class, above_s, up_to_s, len(adjustments), median)
                )
        return found

    def refresh(self, now: int) -> bool:
        """Work the rows out anew as of ``now``; say whether any differs from the last table's."""
        self._model.advance(now)
        self._latest = max(self._latest, now)
        # With equation 5 as it is printed A = 1 means "no data", so the hook must not find it.
        without_ones = self._settings.accuracy.literal_equation_5
        for key, row in self._model.changed_rows().items():
            left_out = row is None or (without_ones and row.adjustment_micro == MICRO)
            table_row = None if row is None or left_out else _table_row(row)
            if table_row != self._rows.get(key):
                self._changed = True
                if table_row is None:
                    del self._rows[key]
                else:
                    self._rows[key] = table_row
        if self.learned is not None and self.learned.refresh(now) and self._by_estimator:
            self._changed = True
        return self._changed

    def row_count(self) -> int:
        """Count the rows of the table, as of the last `refresh`."""
        if self._by_estimator and self.learned is not None:
            return len(self.learned.rows())
        return len(self._rows)

    def table(
        self,
        generation: int,
        written_at: int,
        valid_until: int,
        mode: Mode,
        exclusions: Exclusions,
        advice: Advice = NO_ADVICE,
    ) -> Table:
        """Give the table as of the last `refresh`.

        Parameters
        ----------
        generation, written_at, valid_until
            As they will stand in the file.
        mode
            What the hook may do; see `effective_mode`.
        exclusions
            What the table shall leave alone.
        advice
            What the hook needs to tell users; empty unless the mode is ``advise``.
        """
        accuracy, hook = self._settings.accuracy, self._settings.hook
        learned = self.learned if self._by_estimator else None
        return Table(
            generation=generation,
            written_at=written_at,
            valid_until=valid_until,
            settings=TableSettings(
                mode=mode,
                enforce_share_percent=hook.enforce_share_percent,
                scheme=self.scheme,
                mechanism=_mechanism(hook),
                user_time_min=UserTimeMin(hook.user_time_min),
                minimum_adjustment=accuracy.minimum_adjustment,
                minimum_scheduled_time_s=accuracy.minimum_scheduled_time_s,
                rounding_s=accuracy.rounding_s,
                requested_time_bounds_s=tuple(accuracy.class_bounds_s),
            ),
            left_alone=exclusions.left_alone,
            longest=exclusions.longest,
            enforced_only=hook.enforced_only,
            advice=advice,
            reservations=exclusions.reservations,
            rows=tuple(self._rows.values()) if learned is None else (),
            back_off=None if learned is None else learned.back_off,
            learned_rows=() if learned is None else learned.rows(),
        )

    def published(self) -> None:
        """Take note that the rows as of the last `refresh` stand in the table."""
        self._changed = False


def _table_row(row: AccuracyRow) -> TableRow:
    return TableRow(
        row.scope,
        row.name,
        row.requested_time_class,
        row.adjustment_micro,
        row.largest_processor_seconds,
    )


def _mechanism(hook: HookSettings) -> Mechanism:
    """Give the mechanism in the table's words; the PBS hook has one and reads no other."""
    at_look = hook.planned_at == "look"
    if hook.mechanism == "rewrite-limit":
        return Mechanism.REWRITE_LIMIT_AT_LOOK if at_look else Mechanism.REWRITE_LIMIT
    if hook.mechanism == "slurm-soft-limit" and at_look:
        return Mechanism.TIME_MIN_AT_LOOK
    return Mechanism.TIME_MIN


def effective_mode(settings: Settings, configuration: SchedulerConfiguration) -> tuple[Mode, str]:
    """Give the mode that the table may carry, and why if it is not the one that was set.

    Without a soft limit in the scheduler, ``time_min`` is a limit that jobs are killed at
    (docs/left_alone.md: V2), and so is a rewritten limit that no prolog restores: the hook must
    then only observe.
    """
    mode = Mode(settings.hook.mode)
    if mode is Mode.ENFORCE and settings.starts_now:
        return Mode.OBSERVE, ""  # jobs are raised, and none is planned short
    if mode is not Mode.ENFORCE or settings.hook.mechanism == "pbs-soft-walltime":
        return mode, ""
    if configuration.federation:
        return Mode.OBSERVE, (
            f"the cluster is in the federation {configuration.federation}, where jobs may start on "
            "another cluster; Foretime only observes there"
        )
    if settings.hook.mechanism == "rewrite-limit":
        if not configuration.prolog_slurmctld:
            return Mode.OBSERVE, (
                "no PrologSlurmctld is configured, so jobs would be killed at the rewritten limit; "
                "set PrologSlurmctld to Foretime's prolog_slurmctld in slurm.conf"
            )
        return mode, ""
    if slurm_release(configuration.version) < SOFT_LIMIT_SINCE:
        return Mode.OBSERVE, (
            f"Slurm {configuration.version} has no soft limit (23.11 has); hook.mechanism = "
            '"rewrite-limit" is for older ones'
        )
    if configuration.scheduler_type != "sched/backfill":
        return Mode.OBSERVE, (
            f"SchedulerType is {configuration.scheduler_type}: only sched/backfill plans with "
            "time_min"
        )
    if not configuration.soft_limit:
        return Mode.OBSERVE, "SchedulerParameters lacks time_min_as_soft_limit"
    return mode, ""
