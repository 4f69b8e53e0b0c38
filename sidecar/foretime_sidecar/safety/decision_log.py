"""The audit: what each job was planned with instead of its own limit, and why.

It is written from what the scheduler itself says of each job at each look, so it holds what is so,
not what the hook meant to do. Why a job was left alone the hook itself says in PBS's server log;
without it, and on Slurm, it is worked out from the table's settings. A job that comes and goes
between two looks is not in it.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import replace

from foretime_sim.logs.pbs_records import array_of

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.pbs.hook_line import HookLine, read_hook_line
from foretime_sidecar.clients.slurm.job_note import JobNote, read_note
from foretime_sidecar.learning.enforced_part import outside
from foretime_sidecar.learning.exclusions import Exclusions, Why, why_plain
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.safety.refinements import NOTHING_REFINED, Refined
from foretime_sidecar.safety.tables_in_force import TableInForce, TablesInForce
from foretime_sidecar.settings.settings import HookSettings
from foretime_sidecar.store.decisions import Decision, Decisions
from foretime_sidecar.store.store import Store


class Action(enum.StrEnum):
    """What was done with a job."""

    PLANNED = "planned"  # with t_sched
    OBSERVED = "observed"  # would have been planned
    ADVISED = "advised"  # would have been planned, and its user may have been told
    LEFT = "left"  # left alone
    UNPLANNED = "unplanned"  # the table says to plan it, and it is not
    CLEARED = "cleared"  # was planned with t_sched, is with t_req now
    CHANGED = "changed"  # t_req or t_sched is another now


def judge(
    job: QueuedJob,
    hook: HookSettings,
    table: TableInForce,
    would_be_s: int | None,
    exclusions: Exclusions,
) -> tuple[Action, int | None, str]:
    """Say what was done with a job, its t_sched (seconds), and why.

    Parameters
    ----------
    job
        As the scheduler has it.
    hook
        What the hook was told.
    table
        The table at its submission.
    would_be_s
        t_sched by what is known of its user and project; ``None`` without enough history.
    exclusions
        What is left alone.
    """
    reason = _left_alone(job, table, exclusions)
    if hook.scheduler == "pbs":
        said = read_hook_line(job.admin_comment)
        if said is not None:
            return _said(job, said, hook, table)
        if job.is_short:
            return Action.PLANNED, job.time_min, "-"
    else:
        note = read_note(job.admin_comment)
        if note is not None:
            return _noted(job, note, hook, reason)
        if job.is_short:
            return Action.LEFT, job.time_min, "own-time-min"
    if not reason and would_be_s is None:
        reason = "no-row"
    if not reason and would_be_s is not None and would_be_s >= job.request.requested_time:
        reason = "as-requested"
    if reason:
        return Action.LEFT, None, reason
    if table.mode == "observe":
        return Action.OBSERVED, would_be_s, "observe"
    if table.mode == "advise":
        return Action.ADVISED, would_be_s, "advise"
    part = outside(job, hook)
    if part:
        return Action.OBSERVED, would_be_s, part
    return Action.UNPLANNED, would_be_s, "hook"


def _said(
    job: QueuedJob, said: HookLine, hook: HookSettings, table: TableInForce
) -> tuple[Action, int | None, str]:
    """Say what became of a job, of which the hook in PBS has said what it did."""
    if said.decision == "left":
        return Action.LEFT, job.time_min, said.reason
    if said.decision == "observed":
        why = outside(job, hook) if table.mode == "enforce" else table.mode
        return Action.OBSERVED, said.scheduled_time, why or "observe"
    if job.is_short:
        return Action.PLANNED, job.time_min, "-"
    reason = "modified" if said.reason == "-" else said.reason
    return Action.CLEARED, job.request.requested_time, reason


def _noted(
    job: QueuedJob, note: JobNote, hook: HookSettings, reason: str
) -> tuple[Action, int | None, str]:
    """Say what became of a job that the hook in Slurm has noted."""
    lowered = note.lowered_limit
    if lowered is not None and (
        job.request.requested_time == lowered or hook.planned_at == "submission"
    ):
        return Action.PLANNED, note.lowered_limit, "-"
    if job.is_short:
        return Action.PLANNED, job.time_min, "-"
    if job.state is not QueueState.PENDING:
        return Action.LEFT, None, "started"  # before the sidecar gave it its time_min
    if reason:
        return Action.LEFT, None, reason
    return Action.CLEARED, job.request.requested_time, "modified"


def _left_alone(job: QueuedJob, table: TableInForce, exclusions: Exclusions) -> str:
    """Give why a job is left alone whatever is known of its user, "" if it need not be."""
    if not table.mode:
        return "table"
    if table.mode not in ("observe", "advise", "enforce"):
        return "off"
    starts = job.start_time if job.state is not QueueState.PENDING else job.eligible_time
    why = why_plain(job, exclusions, max(job.request.submit_time, starts or 0))
    return "" if why is None else why.value


# What is in the queue with all of its limit, and was not planned short before.
_NOT_PLANNED = (Action.OBSERVED, Action.ADVISED, Action.LEFT, Action.UNPLANNED)
_FOLLOWED = (Action.PLANNED, Action.CHANGED, Action.CLEARED, Action.LEFT)

# Jobs that are in the queue were all seen within this time, or are judged once more.
_REMEMBERED_S = 30 * 86_400

Key = tuple[str, int]


_OF_EXCLUSIONS = frozenset(why.value for why in Why)


def _key(job: QueuedJob) -> Key:
    return job.request.array_id or job.request.job_id, job.request.submit_time


def _is_due(before: Decision, job: QueuedJob, others_left: bool) -> bool:
    """Say whether a waiting job that is not planned short must be judged anew.

    So it must when its limit is another now, which an administrator may have raised, or when others
    are left alone than at the last look.
    """
    if before.action not in _NOT_PLANNED or job.state is not QueueState.PENDING or job.is_short:
        return False
    if not others_left and job.request.requested_time == before.requested_time_s:
        return False
    note = read_note(job.admin_comment)
    return note is None or note.lowered_limit is None


def _news(before: Decision, found: Decision) -> Decision | None:
    """Give what a job judged anew is now, ``None`` if nothing is new but what is learned since."""
    if found.requested_time_s != before.requested_time_s:
        # Neither the hook nor the daemon plans a job that it did not plan at its submission.
        reason = "modified" if found.action is Action.UNPLANNED else found.reason
        return replace(found, reason=reason)
    if found.action is Action.UNPLANNED or found.reason == before.reason:
        return None
    return found if _OF_EXCLUSIONS & {found.reason, before.reason} else None


class DecisionLog:
    """Writes the audit; used with the sidecar's lock held.

    Parameters
    ----------
    hook, store
        What the hook is told, and where the audit is kept.
    """

    def __init__(self, hook: HookSettings, store: Store) -> None:
        self._hook = hook
        self._store = store
        self._rows = Decisions(store)
        self._last: dict[Key, Decision] | None = None
        self._exclusions: Exclusions | None = None  # as of the last look

    def note(
        self,
        jobs: Sequence[QueuedJob],
        learner: Learner,
        exclusions: Exclusions,
        now: int,
        refined: Refined = NOTHING_REFINED,
    ) -> list[Decision]:
        """Record what is new of the jobs in the queue, and give it.

        Parameters
        ----------
        jobs
            The queue, with what was changed at this look.
        learner, exclusions
            What is known of such jobs, and what is left alone.
        now
            Epoch seconds.
        refined
            Which time_min are ours besides the notes'.

        Raises
        ------
        StateError
            If it can't be stored: then nothing is, and the next look records it.
        """
        if self._last is None:
            self._last = self._recall(now)
        others_left = exclusions != self._exclusions
        # One task speaks for its array.
        by_key: dict[Key, QueuedJob] = {}
        for job in jobs:
            by_key.setdefault(_key(job), job)
        anew = {
            key
            for key, job in by_key.items()
            if (before := self._last.get(key)) is None or _is_due(before, job, others_left)
        }
        tables = TablesInForce(self._store, [submit_time for _, submit_time in anew])
        new: dict[Key, Decision] = {}
        present: dict[Key, Decision] = {}
        for key, job in by_key.items():
            before = self._last.get(key)
            found: Decision | None
            if before is not None and key not in anew:
                found = self._changed(before, job, exclusions, now, refined)
            else:
                found = self._first(key, job, learner, exclusions, tables, now)
                if before is not None:
                    found = _news(before, found)
            if found is not None:
                new[key] = found
            if latest := found or before:
                present[key] = latest
        if new:
            self._rows.add(new.values())
        self._last, self._exclusions = present, exclusions
        return list(new.values())

    def _recall(self, now: int) -> dict[Key, Decision]:
        latest = self._rows.latest_of_jobs(now - _REMEMBERED_S)
        return {(decision.job_id, decision.submit_time): decision for decision in latest}

    def _first(
        self,
        key: Key,
        job: QueuedJob,
        learner: Learner,
        exclusions: Exclusions,
        tables: TablesInForce,
        now: int,
    ) -> Decision:
        request = job.request
        table = tables.in_force_at(request.submit_time)
        known = learner.adjustment(request) is not None
        would_be_s = learner.scheduled_time(request) if known else None
        action, scheduled_time, reason = judge(job, self._hook, table, would_be_s, exclusions)
        pbs = self._hook.scheduler == "pbs"
        note = None if pbs else read_note(job.admin_comment)
        said = read_hook_line(job.admin_comment) if pbs else None
        generation = table.generation
        if note is not None:
            generation = note.generation
        elif said is not None and said.generation is not None:
            generation = said.generation
        return Decision(
            made_at=now,
            job_id=key[0],
            submit_time=key[1],
            user=request.user,
            project=request.project,
            queue=request.queue,
            processors=request.processors,
            action=action,
            requested_time_s=request.requested_time
            if note is None or note.lowered_limit is None
            else note.requested_time,
            scheduled_time_s=scheduled_time,
            reason=reason,
            generation=generation,
        )

    def _changed(
        self, before: Decision, job: QueuedJob, exclusions: Exclusions, now: int, refined: Refined
    ) -> Decision | None:
        """Give what was done since to a job that the hook had planned, ``None`` if nothing."""
        if before.action not in _FOLLOWED:
            return None
        # PBS alone changes what a running job is planned with.
        running = job.state is not QueueState.PENDING
        if running and (exclusions.scheduler != "pbs" or job.is_short):
            return None
        note = read_note(job.admin_comment)
        if note is not None and note.lowered_limit is not None:
            return None
        limit, scheduled_time = job.request.requested_time, job.time_min
        planned_before = before.action in (Action.PLANNED, Action.CHANGED)
        if not job.is_short:
            if not planned_before:
                return None
            why = why_plain(job, exclusions, now)
            ours = job.time_min in refined.ours_of(job)
            action, scheduled_time = Action.CLEARED, limit
            reason = ("refined" if ours else "modified") if why is None else why.value
            said = read_hook_line(job.admin_comment) if self._hook.scheduler == "pbs" else None
            if said is not None and said.decision == "cleared":
                reason = said.reason
        elif note is None and not planned_before:
            return None  # its user's own
        else:
            action, reason = Action.CHANGED, "modified" if planned_before else "-"
            if (limit, scheduled_time) == (before.requested_time_s, before.scheduled_time_s):
                return None
            if limit == before.requested_time_s and scheduled_time in refined.ours_of(job):
                reason = "refined"
        return replace(
            before,
            made_at=now,
            action=action,
            requested_time_s=limit,
            scheduled_time_s=scheduled_time,
            reason=reason,
        )

    def find(
        self,
        *,
        job_id: str | None = None,
        user: str | None = None,
        since: int | None = None,
        limit: int = 1000,
    ) -> list[Decision]:
        """Give the latest decisions, oldest first.

        Parameters
        ----------
        job_id
            Of this job alone, or of the array that it is a task of. On PBS the server's name may
            be left out.
        user
            Of this user's jobs alone.
        since
            Seen at this time or later, epoch seconds.
        limit
            At most so many.
        """
        job_ids: tuple[str, ...] = ()
        if job_id is not None:
            job_ids = (job_id, array_of(job_id) or job_id.partition("_")[0])
        return self._rows.find(job_ids=job_ids, user=user, since=since, limit=limit)
