"""A Slurm with a virtual clock: the hook judges submissions, the engine schedules.

It answers the commands of the sidecar's client with the JSON that Slurm 22.05 prints, so that the
sidecar can't tell it from a real one. A flat pool of processors is one node. What it leaves out of
Slurm: multifactor priority (the order is the engine's), preemption, steps. Limits are
whole minutes wherever Slurm has whole minutes (the hook, time_min, the JSON); a job's own limit is
kept to the second, so that a replay without adjustments equals a plain run of the engine.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import Ending
from foretime_estimators.time_units import MINUTE_S

from foretime_sim.engine.node_snapshot import HeldNodes, nodes_held
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.mock_scheduler import MockScheduler, Phase
from foretime_sim.mocks.slurm import replies
from foretime_sim.mocks.slurm.hook import Fields, Value
from foretime_sim.mocks.slurm.node_replies import NodeReplies
from foretime_sim.mocks.slurm.replies import DEFAULT_PARTITION
from foretime_sim.mocks.slurm.slurm_job import SlurmJob, SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm

NO_VAL = 4294967294
INFINITE = 4294967295


class HookReply(Protocol):
    """What the plugin decided."""

    @property
    def code(self) -> int:
        """Slurm's return code; 0 accepts."""

    @property
    def changes(self) -> Mapping[str, Value]:
        """Fields that it set."""

    @property
    def log(self) -> Sequence[str]:
        """Lines that it wrote, each beginning with its level."""


class SubmitHook(Protocol):
    """The scheduler's plugin, as the mock calls it; see `foretime_sim.mocks.slurm.hook.LuaHook`."""

    def submit(
        self, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        """Judge a submission."""

    def modify(
        self, request: Fields, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        """Judge a change of a job."""


_FIRST_JOB_ID = 1
_NOT_WEIGHED_YET = 1  # Slurm's least, for who was submitted just now
_FIRST_UID = 1000
_JOB_NAME = re.compile(r"(?:(?P<array>\d{1,10})_)?(?P<job>\d{1,10})", re.ASCII)
_RECORDED_REQUEST = re.compile(r"foretime:treq=(\d+)", re.ASCII)


def _minutes(seconds: int) -> int:
    return -(-seconds // MINUTE_S)


class MockSlurm(MockScheduler[SlurmJob]):
    """A Slurm controller, its accounting and its hook, driven by a virtual clock.

    Parameters
    ----------
    setup
        The mock's slurm.conf.
    policy
        How the engine schedules.
    hook
        The job_submit plugin; ``None`` runs without one.
    start_time
        The clock's first reading, epoch seconds.

    Examples
    --------
    >>> from foretime_sim import MockSlurm, Policy
    >>> from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
    >>> slurm = MockSlurm(SlurmSetup(processors=8), Policy())
    >>> first = slurm.submit(Submission("ann", "physics", None, 8, 3600, 600))
    >>> second = slurm.submit(Submission("bob", "physics", None, 8, 3600, 600))
    >>> slurm.finish()
    >>> slurm.schedule().start_time.tolist()
    [0, 600]
    """

    def __init__(
        self, setup: SlurmSetup, policy: Policy, hook: SubmitHook | None = None, start_time: int = 0
    ) -> None:
        super().__init__(setup.processors, policy, start_time, setup.reservations, setup.machine)
        self._setup = setup
        self._hook = hook
        self._uids: dict[str, int] = {}
        self._arrays: dict[int, list[int]] = {}
        self._partitions: dict[str, dict[str, Value]] = {}
        self._has_priorities = isinstance(policy.backfill, Slurm)
        self._changes: deque[tuple[int, str]] = deque()  # those to come, and when
        self._last_told: dict[int, tuple[object, dict[str, Any]]] = {}
        self._node_replies: NodeReplies | None = None
        if setup.machine is not None:
            site = policy.backfill.site if isinstance(policy.backfill, Slurm) else None
            reserved = () if site is None else site.reservations
            self._node_replies = NodeReplies(setup.machine, reserved)
        self._partition(DEFAULT_PARTITION)
        for name in setup.max_time_min:
            self._partition(name)

    def advance(self, until: int) -> None:
        """As of `MockScheduler`; changes that come until then are made."""
        while self._changes and self._changes[0][0] <= until:
            at, text = self._changes.popleft()
            super().advance(at)
            self._refused_of(text)
        super().advance(until)

    @property
    def next_event_time(self) -> int | None:
        """As of `MockScheduler`; a change that comes is an event."""
        event = super().next_event_time
        if not self._changes:
            return event
        at = self._changes[0][0]
        return at if event is None else min(event, at)

    def finish(self) -> None:
        """As of `MockScheduler`."""
        while self._changes:
            self.advance(self._changes[0][0])
        super().finish()

    def _on_start(self, index: int, job: SlurmJob) -> None:
        job.time_limit_min = _minutes(job.kill_limit)

    def _ending(self, job: SlurmJob) -> Ending:
        return job.submission.ending

    def running_times(self) -> Int64Array:
        """Give what each job was planned with as it started, seconds, by submission."""
        return np.array([job.planned for job in self._jobs], dtype=np.int64)

    # What users do --------------------------------------------------------------------------

    def submit(self, submission: Submission) -> int:
        """Submit a job now, as `sbatch` does, and give its job id.

        Raises
        ------
        SchedulerError
            If Slurm rejects it (too large a job, a limit above the slurm_partition's, or the hook).
        """
        job = self._accepted(submission)
        limit = submission.requested_time
        planned = limit
        kill_limit = limit
        if self._setup.mechanism is Mechanism.REWRITE_LIMIT:
            if job.time_limit_min < _minutes(limit):
                planned = job.time_limit_min * MINUTE_S
                kill_limit = min(limit, self._limit_after_prolog(job))
        elif job.time_min_min:
            planned = min(job.time_min_min * MINUTE_S, limit)
            if not self._setup.soft_limit_parameter:
                kill_limit = planned
        job.kill_limit, job.planned = kill_limit, planned
        index = self._enqueue(
            job,
            processors=submission.processors,
            actual_runtime=submission.actual_runtime,
            requested_time=limit,
            planned=planned,
            resources=submission.resources,
            user=submission.user,
            project=submission.account,
            said=submission.said,
        )
        if submission.array_id is not None:
            self._arrays.setdefault(submission.array_id, []).append(index + _FIRST_JOB_ID)
        return index + _FIRST_JOB_ID

    def _accepted(self, submission: Submission) -> SlurmJob:
        """Judge a submission as slurmctld and its plugin do."""
        if submission.processors > self._setup.processors:
            raise SchedulerError(
                f"Requested node configuration is not available: {submission.processors} "
                f"processors of {self._setup.processors}"
            )
        partition = submission.slurm_partition or DEFAULT_PARTITION
        limit_min = _minutes(submission.requested_time)
        if limit_min > int(self._partition(partition)["max_time"]):
            raise SchedulerError("Requested time limit is invalid (missing or exceeds some limit)")
        job = SlurmJob(
            submission=submission,
            submit_time=self.now,
            time_limit_min=limit_min,
            comment=submission.comment or "",
        )
        if submission.time_min is not None:
            job.time_min_min = _minutes(submission.time_min)
        if self._hook is not None:
            user = submission.user or "nobody"
            uid = self._uid(user)
            description: dict[str, Value] = {
                "user_name": user,
                "user_id": uid,
                "time_limit": limit_min,
                "min_cpus": submission.processors,
                "num_tasks": submission.processors,
            }
            if submission.account is not None:
                description["account"] = submission.account
            if submission.slurm_partition is not None:
                description["partition"] = submission.slurm_partition
            if job.time_min_min:
                description["time_min"] = job.time_min_min
            if submission.comment is not None:
                description["comment"] = submission.comment
            if submission.said is not None and submission.said.qos is not None:
                description["qos"] = submission.said.qos
            reply = self._hook.submit(description, self._partitions, uid, self.now)
            self._count_errors(reply)
            if reply.code != 0:
                raise SchedulerError(f"job_submit/lua rejected the job: {reply.code}")
            self._apply(job, reply.changes)
        return job

    @staticmethod
    def _apply(job: SlurmJob, changes: Mapping[str, Value]) -> None:
        for name, value in changes.items():
            if name == "time_min":
                job.time_min_min = 0 if value in (0, NO_VAL) else int(value)
            elif name == "time_limit":
                job.time_limit_min = int(value)
            elif name == "admin_comment":
                job.admin_comment = str(value)
            else:
                raise InputError(f"the hook set {name}, which a replay has no use for")

    def _limit_after_prolog(self, job: SlurmJob) -> int:
        """Seconds that PrologSlurmctld raises a lowered limit to, read as it reads it."""
        recorded = _RECORDED_REQUEST.search(job.admin_comment)
        if recorded is None or not self._setup.prolog_works:
            return job.time_limit_min * MINUTE_S
        return int(recorded[1]) * MINUTE_S

    def cancel(self, job_id: int) -> None:
        """Cancel a pending job, as `scancel` does."""
        job = self._job(str(job_id))
        if job.phase is not Phase.WAITING:
            raise SchedulerError(f"job {job_id} is {job.state}: the mock cancels pending jobs only")
        self._cancel_waiting(job_id - _FIRST_JOB_ID)

    def change_limit(self, job_id: int, time_limit: int, uid: int = _FIRST_UID) -> None:
        """Change a job's limit (seconds), as ``scontrol update JobId=... TimeLimit=...`` does.

        Raises
        ------
        SchedulerError
            If Slurm refuses: users may only lower a limit, and not below time_min.
        """
        job = self._changeable(str(job_id))
        minutes = _minutes(time_limit)
        if uid and minutes > job.time_limit_min:
            raise SchedulerError("Access/permission denied")
        changes: Mapping[str, Value] = {}
        if self._hook is not None:
            reply = self._hook.modify(
                {"time_limit": minutes}, self._record(job), self._partitions, uid, self.now
            )
            self._count_errors(reply)
            if reply.code != 0:
                raise SchedulerError(f"job_submit/lua rejected the change: {reply.code}")
            changes = reply.changes
        time_min_min = int(changes.get("time_min", job.time_min_min))
        if time_min_min > minutes:
            raise SchedulerError("Requested time limit is invalid (below time_min)")
        job.time_limit_min, job.time_min_min = minutes, time_min_min
        job.kill_limit = time_limit
        self._replan(job_id, job)

    def _record(self, job: SlurmJob) -> dict[str, Value]:
        """Give a job as `slurm_job_modify` is shown it."""
        submission = job.submission
        record: dict[str, Value] = {
            "time_limit": job.time_limit_min,
            "time_min": job.time_min_min or NO_VAL,
            "admin_comment": job.admin_comment,
            "comment": job.comment,
            "min_cpus": submission.processors,
            "partition": submission.slurm_partition or DEFAULT_PARTITION,
        }
        if submission.user is not None:
            record["user_name"] = submission.user
        if submission.account is not None:
            record["account"] = submission.account
        if submission.said is not None and submission.said.qos is not None:
            record["qos"] = submission.said.qos
        return record

    def _count_errors(self, reply: HookReply) -> None:
        self.hook_errors += sum(line.startswith("error") for line in reply.log)

    def _replan(self, job_id: int, job: SlurmJob) -> None:
        if self._setup.mechanism is Mechanism.REWRITE_LIMIT and job.phase is Phase.WAITING:
            planned = job.time_limit_min * MINUTE_S
        else:
            planned = job.time_min_min * MINUTE_S if job.time_min_min else job.kill_limit
        if job.phase is Phase.WAITING:
            job.planned = min(planned, job.kill_limit)
        self._engine.update(
            job_id - _FIRST_JOB_ID,
            requested_time=job.kill_limit,
            scheduled_time=min(planned, job.kill_limit),
            time_limit=job.kill_limit,
        )

    def _reprioritise(self, job_id: int, job: SlurmJob) -> None:
        """Tell the engine of a job's new site factor, which of a running one means nothing."""
        if job.phase is not Phase.WAITING:
            return
        if self._has_priorities:
            self._engine.update(job_id - _FIRST_JOB_ID, site_factor=job.site_factor)
        else:
            self._engine.update(job_id - _FIRST_JOB_ID, priority=job.site_factor)

    # What the sidecar's client runs ---------------------------------------------------------

    def run(self, argv: Sequence[str], stdin: str | None = None) -> object:
        """Answer one of Slurm's commands: decoded JSON if it has ``--json``, text otherwise.

        Raises
        ------
        SchedulerError
            For a command that the mock does not know, or a change that Slurm would refuse.
        """
        match list(argv):
            case ["squeue", "--all", "--json"]:
                return replies.listed(self._queue())
            case ["sacct", "--json", *options]:
                ended = self._ended_between(*replies.span(options, self.now))
                return replies.listed(self._each(self._accounted, ended))
            case ["sinfo", *_]:
                allocated = self._setup.processors - self._engine.free_processors
                idle = self._engine.free_processors
                return f"{allocated}/{idle}/0/{self._setup.processors}\n"
            case ["scontrol", "show", "config"]:
                nodes = "" if self._node_replies is None else self._node_replies.configuration
                return replies.configuration(self._setup) + nodes
            case ["scontrol", "show", "partition", *_]:
                if self._node_replies is not None:
                    return self._node_replies.partitions()
                return replies.partitions(self._partitions)
            case ["scontrol", "show", "node", *_]:
                if self._node_replies is not None:
                    return self._node_replies.nodes()
                return replies.node(self._setup.processors, self._partitions)
            case ["scontrol", "show", "federation"]:
                return ""
            case ["sdiag"]:
                return replies.STATISTICS
            case ["sprio", "--noheader", replies.SITE_FACTORS]:
                return replies.site_factors(
                    (index + _FIRST_JOB_ID, self._jobs[index]) for index in self._queued_jobs()
                )
            case ["sacctmgr", "--noheader", "--parsable2", "show", "qos", *_]:
                return "normal|0\nhigh|100\n"
            case ["scontrol", "show", "reservation", *_]:
                if self._node_replies is not None:
                    text = self._node_replies.reservations(self.now)
                    return text or "No reservations in the system\n"
                return replies.reservations(self._setup.reservations, self.now)
            case ["scontrol"] if stdin is not None and self._setup.changes_take_s:
                self._changes.append((self.now + self._setup.changes_take_s, stdin))
                return ""
            case ["scontrol"] if stdin is not None:
                if refused := self._refused_of(stdin):
                    raise SchedulerError(f"scontrol failed with exit code 1: {'; '.join(refused)}")
                return ""
            case _:
                raise SchedulerError(f"the mock Slurm does not know: {' '.join(argv)}")

    def _refused_of(self, text: str) -> list[str]:
        """Make changes as scontrol does: what is refused does not keep the rest from being done."""
        refused = []
        for line in text.splitlines():
            try:
                self._scontrol(line)
            except SchedulerError as error:
                refused.append(str(error))
        return refused

    def _queue(self) -> list[dict[str, Any]]:
        """Give what ``squeue --json`` says of each job; made anew where something is."""
        jobs = self._queued_jobs()
        running = [job for job in jobs if self._jobs[job].phase is Phase.RUNNING]
        had: dict[int, dict[str, Any]] = {}
        if self._node_replies is not None:
            had = dict(zip(running, self._node_replies.had(running, self._held_by), strict=True))
        told = {job: self._told(job, had.get(job)) for job in jobs}
        self._last_told = told
        return [dict(fields) for _, fields in told.values()]

    def _told(self, index: int, had: dict[str, Any] | None) -> tuple[object, dict[str, Any]]:
        """Give what is said of a job, and what that depends on."""
        job = self._jobs[index]
        priority, reason = 0, ""
        # Under a site's rules the order is theirs, and limits keep jobs.
        if self._has_priorities and job.phase is Phase.WAITING:
            priority = self._engine.slurm_priority(index) or _NOT_WEIGHED_YET
            reason = self._engine.slurm_reason(index)
        by = (
            job.phase, job.start_time, job.time_limit_min, job.time_min_min, job.site_factor,
            job.admin_comment, job.comment, priority, reason,
        )  # fmt: skip
        known = self._last_told.get(index)
        if known is not None and known[0] == by:
            return known
        fields = replies.queued(index + _FIRST_JOB_ID, job)
        if priority:
            fields |= {"priority": priority, "state_reason": reason or fields["state_reason"]}
        if self._node_replies is not None:
            fields |= self._node_replies.asked(job.submission) | (had or {})
        return by, fields

    def _held_by(self, running: Sequence[int]) -> HeldNodes:
        """Give what running jobs have of the nodes."""
        return nodes_held(self._engine, np.array(running, dtype=np.int64))

    def _accounted(self, job_id: int, job: SlurmJob) -> dict[str, Any]:
        fields = replies.accounted(job_id, job)
        if self._node_replies is not None:
            fields["partition"] = self._node_replies.asked(job.submission)["partition"]
        return fields

    def _scontrol(self, line: str) -> None:
        if line in ("", "quit"):
            return
        words = line.split()
        values = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        if words[0] != "update" or "JobId" not in values:
            raise SchedulerError(f"the mock Slurm does not know: scontrol {line}")
        name = values.pop("JobId")
        if tasks := self._waiting_tasks(name):
            for task in tasks:
                self._change(f"{name}_{task}", values)
        else:
            self._change(name, values)

    def _waiting_tasks(self, name: str) -> list[int]:
        """Give the job ids of the tasks that wait of the array of this number, if it is one."""
        tasks = self._arrays.get(int(name), []) if name.isdecimal() and name.isascii() else []
        return [t for t in tasks if self._jobs[t - _FIRST_JOB_ID].phase is Phase.WAITING]

    def _change(self, name: str, values: Mapping[str, str]) -> None:
        """Change a job, or one task of an array."""
        job_id = self._job_id(name)
        job = self._changeable(name)
        if unknown := values.keys() - {"TimeLimit", "TimeMin", "SiteFactor"}:
            raise SchedulerError(f"Update of this parameter is not supported: {min(unknown)}")
        for field_name, value in values.items():
            if not re.fullmatch(r"-?\d{1,9}", value, re.ASCII):
                raise SchedulerError(f"Invalid value for job {name}: {field_name}={value}")
        limit_min = int(values.get("TimeLimit", job.time_limit_min))
        time_min_min = int(values.get("TimeMin", job.time_min_min))
        if limit_min < 1 or time_min_min > limit_min:
            raise SchedulerError(f"Requested time limit is invalid for job {name}")
        if "TimeLimit" in values:
            job.time_limit_min, job.kill_limit = limit_min, limit_min * MINUTE_S
        job.time_min_min = time_min_min
        if values.keys() - {"SiteFactor"}:
            self._replan(job_id, job)
        if "SiteFactor" in values:
            job.site_factor = int(values["SiteFactor"])
            self._reprioritise(job_id, job)

    def _each(
        self, reply: Callable[[int, SlurmJob], dict[str, Any]], jobs: Iterable[int]
    ) -> list[dict[str, Any]]:
        return [reply(index + _FIRST_JOB_ID, self._jobs[index]) for index in jobs]

    # Names and numbers ----------------------------------------------------------------------

    def _uid(self, user: str) -> int:
        return self._uids.setdefault(user, _FIRST_UID + len(self._uids))

    def _partition(self, name: str) -> dict[str, Value]:
        known = self._partitions.get(name)
        if known is None:
            known = {
                "name": name,
                "max_time": self._setup.max_time_min.get(name, INFINITE),
                "default_time": NO_VAL,
                "flag_default": 1 if name == DEFAULT_PARTITION else 0,
            }
            # The hook converts a mapping of partitions once, so a new one is another mapping.
            self._partitions = {**self._partitions, name: known}
        return known

    def _job(self, name: str) -> SlurmJob:
        return self._jobs[self._job_id(name) - _FIRST_JOB_ID]

    def _job_id(self, name: str) -> int:
        """Find a job by its number, or by ARRAY_TASK."""
        match = _JOB_NAME.fullmatch(name)
        job_id = int(match["job"]) if match else 0
        index = job_id - _FIRST_JOB_ID
        if match is None or not 0 <= index < len(self._jobs):
            raise SchedulerError(f"Invalid job id specified for job {name}")
        if match["array"] and self._jobs[index].submission.array_id != int(match["array"]):
            raise SchedulerError(f"Invalid job id specified for job {name}")
        return job_id

    def _changeable(self, name: str) -> SlurmJob:
        job = self._job(name)
        if job.phase is Phase.ENDED:
            raise SchedulerError(f"Job/step already completing or completed for job {name}")
        return job
