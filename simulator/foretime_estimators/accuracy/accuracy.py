"""Accuracy of past requests by user and by project, and the scheduled time that follows from it.

Tang et al., "Analyzing and Adjusting User Runtime Estimates to Improve Job Scheduling on the Blue
Gene/P", IPDPS 2010, section V: R = t_act / t_req of a user's (a project's) finished jobs (eq. 2);
A is the smallest R that is at least as large as 80% of them; t_sched = A * t_req (eq. 4); user and
project combined by eq. 5. `AccuracySettings.tang2010` is that rule and nothing else.

The production rule
-------------------
Taken plainly the rule is for sale: fifty `sleep 1` jobs at 48 hours cost a minute of machine time
and buy a t_sched near zero for a job of the full 48 hours. Six changes, each a setting, make the
purchase cost as much as what it buys (`AccuracySettings.production`):

1. *R weighs by processor-time really used*, not by jobs: a sleeper weighs next to nothing.
2. *Only up to a quarter of the request*: beyond it all jobs of one size weigh the same, else long
   jobs alone would decide and A would be near 1 for nearly everybody.
3. *An array is one submission* towards the threshold; its tasks add their processor-time.
4. *Classes of requested time are judged apart*, so that short jobs say nothing of long ones.
5. *An imagined job, as large as the largest* (processors x requested_time) in the history of that
   name and class, has run to its limit (R = 1).
6. *A applies only to jobs no larger than that largest one*, else it could be paid for in the small
   coin of one-processor sleepers and spent on a wide job.

The price: let S be the size of the largest job. It, imagined, weighs S/4 at R = 1, and so does each
job of that size that outlives A. With the 80th percentile, A <= a needs four times that weight in
jobs with R <= a, and no job weighs more than it really used. So A <= a costs at least S of real
processor-time in jobs that ended within a of their request, and S more for each job of that size
that then runs long. Nobody gets a job planned short without having computed for one such job.
``docs/estimators.md`` goes through the attacks and their cost; they are tests.
"""

from __future__ import annotations

import enum
import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from foretime_estimators.accuracy.accuracy_history import AccuracyHistory, AccuracyRule, Observation
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.jobs.endings import MICRO, Evidence, accuracy_micro, evidence_of
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

__all__ = [
    "AccuracyModel",
    "AccuracyRow",
    "AccuracySettings",
    "ClassHistory",
    "RowKey",
    "Scheme",
]

Scope: TypeAlias = Literal["user", "project"]
RowKey: TypeAlias = tuple[Scope, str, int]
"""Scope, name, requested-time class."""


class Scheme(enum.StrEnum):
    """Whose history decides A (Tang 2010, section V.A).

    Examples
    --------
    >>> from foretime_estimators.accuracy.accuracy import Scheme
    >>> [str(scheme) for scheme in Scheme]
    ['user', 'project', 'combined']
    """

    USER = "user"
    PROJECT = "project"
    COMBINED = "combined"


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """One row of the accuracy table: a name with enough history in a class.

    Attributes
    ----------
    scope, name, requested_time_class
        Whose row it is, and for which class of requested times (index, 0 the shortest).
    adjustment_micro
        A in whole millionths, rounded up, never below the minimum adjustment.
    submissions
        Finished submissions with exact evidence that it rests on.
    processor_seconds
        Processor-time that these jobs, and cancelled ones, really used.
    largest_processor_seconds
        Largest processors x requested_time among them: A applies to jobs up to this size. ``None``
        where the settings set no such limit.
    """

    scope: Scope
    name: str
    requested_time_class: int
    adjustment_micro: int
    submissions: int
    processor_seconds: int
    largest_processor_seconds: int | None

    @property
    def adjustment(self) -> float:
        """A, from 0 to 1."""
        return self.adjustment_micro / MICRO


@dataclass(frozen=True, slots=True)
class ClassHistory:
    """What is known of a name in one class, sufficient or not.

    Attributes
    ----------
    scope, name, requested_time_class
        Whose history it is, and the class (index).
    above_s, up_to_s
        The class's requested times, seconds; ``up_to_s`` is ``None`` for the longest class.
    submissions, threshold
        How many finished submissions there are, and how many are needed.
    processor_seconds, largest_processor_seconds
        As in `AccuracyRow`.
    adjustment
        A, or ``None`` while there are too few submissions.
    used_share
        R that the percentile of these jobs did not exceed, weighed as for A, but without the
        imagined job and the minimum; ``None`` as for ``adjustment``.
    """

    scope: Scope
    name: str
    requested_time_class: int
    above_s: int
    up_to_s: int | None
    submissions: int
    threshold: int
    processor_seconds: int
    largest_processor_seconds: int
    adjustment: float | None
    used_share: float | None


class AccuracyModel:
    """Accuracy histories of users and projects, learned one finished job at a time.

    Learning a job costs microseconds whatever the history's length; A is worked out only when
    asked for, and only anew after a change.

    Examples
    --------
    >>> from foretime_estimators import AccuracyModel, AccuracySettings, Ending
    >>> from foretime_estimators import FinishedJob, JobRequest
    >>> model = AccuracyModel(AccuracySettings(threshold=2))
    >>> job = JobRequest("17", "ann", "physics", processors=8, requested_time=3600, submit_time=0)
    >>> for runtime in (900, 1800):
    ...     model.learn_one(FinishedJob(job, 0, runtime, runtime, Ending.COMPLETED))
    >>> model.adjustment(job)
    0.5
    """

    def __init__(self, settings: AccuracySettings | None = None) -> None:
        self.settings = settings if settings is not None else AccuracySettings.production()
        self._rule = AccuracyRule(self.settings)
        self._histories: dict[RowKey, AccuracyHistory] = {}
        self._changed: set[RowKey] = set()
        self._live: list[Observation] = []  # heap by end time, with a window only
        self._sequence = 0
        self._now: int | None = None
        self._oldest: int | None = None  # evidence that ended before it is out (window only)
        self._origin: int | None = None  # time at which evidence weighs 1 (half-life only)

    # Learning

    def learn_one(self, job: FinishedJob) -> None:
        """Take a finished job into the histories of its user and its project (those it has)."""
        evidence = evidence_of(job)
        self.advance(job.end_time)
        if evidence is Evidence.NONE or self._before_window(job.end_time):
            return
        settings, request = self.settings, job.request
        factor = self._ageing_factor(job.end_time)
        used = request.processors * job.actual_runtime
        size = request.processors * request.requested_time
        seen = Observation(
            end_time=job.end_time,
            sequence=self._sequence,
            user=request.user,
            project=request.project,
            requested_time_class=settings.requested_time_class(request.requested_time),
            exact=evidence is Evidence.EXACT,
            micro=accuracy_micro(job),
            weight=self._rule.weight(used, size) * factor,
            processor_seconds=used,
            size=size,
            array_id=request.array_id if settings.arrays_count_once else None,
        )
        self._sequence += 1
        windowed = settings.window_s is not None
        for key in _keys(seen):
            history = self._histories.get(key)
            if history is None:
                history = self._histories[key] = AccuracyHistory()
            history.add(seen, self._rule, factor, windowed=windowed)
            self._changed.add(key)
        if windowed:
            heapq.heappush(self._live, seen)

    def advance(self, now: int) -> None:
        """Drop what the window no longer holds at ``now`` (seconds); earlier times do nothing."""
        if self._now is not None and now <= self._now:
            return
        self._now = now
        if self.settings.window_s is None:
            return
        self._oldest = now - self.settings.window_s
        while self._live and self._live[0].end_time < self._oldest:
            gone = heapq.heappop(self._live)
            for key in _keys(gone):
                history = self._histories[key]
                history.remove(gone, self._rule, self._oldest)
                if history.jobs == 0:
                    del self._histories[key]
                self._changed.add(key)

    def _before_window(self, end_time: int) -> bool:
        return self._oldest is not None and end_time < self._oldest

    def _ageing_factor(self, end_time: int) -> int:
        """Weight of evidence from ``end_time`` relative to other evidence, in 2**-20 at the origin.

        Forward decay: later evidence weighs more, so that what was learned is never touched again.
        Whole numbers of any length do not overflow: 1,000 half-lives are 1,000 bits.
        """
        half_life_s = self.settings.half_life_s
        if half_life_s is None:
            return 1
        if self._origin is None:
            self._origin = end_time
        doublings, rest = divmod(end_time - self._origin, half_life_s)
        mantissa = round(math.exp2(rest / half_life_s) * (1 << 20))
        return mantissa << doublings if doublings >= 0 else mantissa >> -doublings

    # Asking

    def adjustment(self, job: JobRequest, scheme: Scheme = Scheme.COMBINED) -> float | None:
        """Give A for a job, or ``None`` where there is too little history to adjust it."""
        micro = self.adjustment_micro(job, scheme)
        return None if micro is None else micro / MICRO

    def adjustment_micro(self, job: JobRequest, scheme: Scheme = Scheme.COMBINED) -> int | None:
        """Give A for a job in whole millionths, as the hook reads it from the table.

        Combined (Tang 2010, eq. 5): the mean of both, rounded up; the one there is; or ``None``.
        """
        user = project = None
        if scheme is not Scheme.PROJECT:
            user = self._applicable("user", job.user, job)
        if scheme is not Scheme.USER:
            project = self._applicable("project", job.project, job)
        if scheme is Scheme.COMBINED and self.settings.literal_equation_5:
            user = None if user == MICRO else user
            project = None if project == MICRO else project
        if user is None or project is None:
            return project if user is None else user
        return (user + project + 1) // 2

    def scheduled_time(self, job: JobRequest, scheme: Scheme = Scheme.COMBINED) -> int:
        """t_sched in seconds, from 1 to the requested time; that itself where there is no A."""
        micro = self.adjustment_micro(job, scheme)
        if micro is None:
            return job.requested_time
        return self.settings.scheduled_time(micro, job.requested_time)

    def rows(self) -> Iterable[AccuracyRow]:
        """Give every row with enough history, by scope, name and class."""
        for key in sorted(self._histories):
            row = self._row(key)
            if row is not None:
                yield row

    def changed_rows(self) -> dict[RowKey, AccuracyRow | None]:
        """Rows whose evidence changed since the last call; ``None`` for one that there is no more.

        Only these need be worked out anew for the next table.
        """
        changed = {key: self._row(key) for key in sorted(self._changed)}
        self._changed.clear()
        return changed

    def describe(self, user: str | None = None, project: str | None = None) -> list[ClassHistory]:
        """Say what is known of a user, a project or both, class by class; empty if nothing is."""
        wanted: list[tuple[Scope, str]] = []
        if user is not None:
            wanted.append(("user", user))
        if project is not None:
            wanted.append(("project", project))
        found = []
        for scope, name in wanted:
            for time_class in range(len(self.settings.class_bounds_s) + 1):
                history = self._histories.get((scope, name, time_class))
                if history is None:
                    continue
                above_s, up_to_s = self.settings.class_limits(time_class)
                micro = history.adjustment_micro(self._rule)
                used_micro = history.used_share_micro(self._rule)
                found.append(
                    ClassHistory(
                        scope=scope,
                        name=name,
                        requested_time_class=time_class,
                        above_s=above_s,
                        up_to_s=up_to_s,
                        submissions=history.submissions,
                        threshold=self.settings.threshold,
                        processor_seconds=history.processor_seconds,
                        largest_processor_seconds=history.largest,
                        adjustment=None if micro is None else micro / MICRO,
                        used_share=None if used_micro is None else used_micro / MICRO,
                    )
                )
        return found

    def _row(self, key: RowKey) -> AccuracyRow | None:
        history = self._histories.get(key)
        micro = None if history is None else history.adjustment_micro(self._rule)
        if history is None or micro is None:
            return None
        limited = self.settings.within_largest_job
        return AccuracyRow(
            *key,
            adjustment_micro=micro,
            submissions=history.submissions,
            processor_seconds=history.processor_seconds,
            largest_processor_seconds=history.largest if limited else None,
        )

    def _applicable(self, scope: Scope, name: str | None, job: JobRequest) -> int | None:
        if name is None:
            return None
        time_class = self.settings.requested_time_class(job.requested_time)
        history = self._histories.get((scope, name, time_class))
        if history is None:
            return None
        if (
            self.settings.within_largest_job
            and job.processors * job.requested_time > history.largest
        ):
            return None
        return history.adjustment_micro(self._rule)

    # Keeping

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            "version": 1,
            "settings": {
                **asdict(self.settings),
                "class_bounds_s": list(self.settings.class_bounds_s),
            },
            "now": self._now,
            "oldest": self._oldest,
            "origin": self._origin,
            "sequence": self._sequence,
            "live": [list(seen) for seen in self._live],
            "histories": [
                {"key": list(key), **history.state()} for key, history in self._histories.items()
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned; every row counts as changed.

        Raises
        ------
        StateError
            If it is of another version, or was learned under other settings: learn anew then.
        """
        if state.get("version") != 1:
            raise StateError(
                f"accuracy state of version {state.get('version')!r}, not 1: learn the history anew"
            )
        kept = dict(state["settings"])
        kept["class_bounds_s"] = tuple(kept["class_bounds_s"])
        now = asdict(self.settings)
        different = [name for name in now if name not in kept or kept[name] != now[name]]
        if different:
            raise StateError(
                f"accuracy state was learned under other settings ({', '.join(different)}): "
                "learn the history anew"
            )
        self._now = state["now"]
        self._oldest = state["oldest"]
        self._origin = state["origin"]
        self._sequence = state["sequence"]
        self._live = [Observation(*values) for values in state["live"]]
        self._histories = {}
        for kept_history in state["histories"]:
            scope, name, time_class = kept_history["key"]
            self._histories[scope, name, time_class] = AccuracyHistory.from_state(kept_history)
        self._changed = set(self._histories)


def _keys(seen: Observation) -> list[RowKey]:
    keys: list[RowKey] = []
    if seen.user is not None:
        keys.append(("user", seen.user, seen.requested_time_class))
    if seen.project is not None:
        keys.append(("project", seen.project, seen.requested_time_class))
    return keys
