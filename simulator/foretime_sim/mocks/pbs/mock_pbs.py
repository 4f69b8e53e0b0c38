"""A PBS with a virtual clock: the hook judges jobs as they come and as they start.

It answers the commands of the sidecar's client with what OpenPBS prints, and writes the accounting
and server logs that the client reads, so that the sidecar can't tell it from a real one. It refuses
what pbs_server refuses. It schedules as the engine's policy does: as a site's PBS, or by a queue
order and a backfilling, which know no job classes. A flat pool is one host. What it leaves out of
PBS: preemption, routing queues, and jobs in reservations. Each task of an array is submitted by
itself, under the name of a sub-job. Where pbs_sched would die, it raises `InputError`: a job that
runs with a soft_walltime below 1 s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import Ending

from foretime_sim.files.pbs_durations import parse_pbs_duration
from foretime_sim.logs.pbs_accounting_writer import (
    SERVER,
    ended_message,
    name_words,
    queued_message,
    resource_words,
    started_message,
)
from foretime_sim.logs.pbs_day_log import DayLog, Stamps
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.mock_scheduler import MockScheduler, Phase
from foretime_sim.mocks.pbs.hook import PbsReply, fatal, refusal
from foretime_sim.mocks.pbs.host_replies import HostReplies
from foretime_sim.mocks.pbs.pbs_job import PbsJob, PbsSetup, PbsSubmission
from foretime_sim.mocks.pbs.replies import PbsReplies
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.role_times import JobTimesUpdate
from foretime_sim.sites.pbs.formula import RANK
from foretime_sim.sites.pbs.site import PbsSite

MANAGER = "root"
_DEFAULT_QUEUE = "workq"
NOBODY = "nobody"
_FIRST_JOB_ID = 1
_JOB_NAME = re.compile(r"(\d{1,10})(\[\d{1,10}\])?(?:\.pbs)?", re.ASCII)
_ARRAY_NUMBERS = 10_000_000  # arrays are numbered from here, above all other jobs
_EVENT_ERROR = 0x0001
_BY_PRIORITY = "job_priority"  # in the engine ranks stand there: jobs have no priority of their own
_NOT_YOURS = "Cannot set attribute, read only or insufficient permission  Resource_List."


class PbsServerHook(Protocol):
    """The server's hook, as the mock calls it; see `foretime_sim.mocks.pbs.hook.PbsHook`."""

    def queuejob(self, job: Mapping[str, Any], requestor: str, now: float) -> PbsReply:
        """Judge a submission."""

    def modifyjob(
        self, request: Mapping[str, Any], job: Mapping[str, Any], requestor: str, now: float
    ) -> PbsReply:
        """Judge a change of a job."""

    def runjob(self, job: Mapping[str, Any], now: float) -> PbsReply:
        """Judge a job that is about to start."""


class MockPbs(MockScheduler[PbsJob]):
    """A pbs_server, its scheduler, its logs and its hook, driven by a virtual clock.

    Parameters
    ----------
    setup
        The server's configuration.
    policy
        How the engine schedules.
    hook
        The hook; ``None`` runs without one.
    start_time
        The clock's first reading, epoch seconds.
    on_end
        Called with each job that has run, as it ends.

    Attributes
    ----------
    hosts
        Of its site, where there are several.
    has_ranks
        Whether its site's job_sort_formula is the rank that Foretime raises jobs by.

    Examples
    --------
    >>> from foretime_sim import MockPbs, Policy
    >>> from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
    >>> pbs = MockPbs(PbsSetup(processors=8), Policy())
    >>> job_id = pbs.submit(PbsSubmission("ann", None, None, 8, 3600, 600))
    >>> pbs.finish()
    >>> pbs.schedule().end_time.tolist()
    [600]
    """

    def __init__(
        self,
        setup: PbsSetup,
        policy: Policy,
        hook: PbsServerHook | None = None,
        start_time: int = 0,
        on_end: Callable[[PbsJob], None] | None = None,
    ) -> None:
        backfill = policy.backfill
        self.has_ranks = isinstance(backfill, Pbs) and (
            backfill.site.server.job_sort_formula == RANK
        )
        if self.has_ranks and isinstance(backfill, Pbs):
            policy = replace(policy, backfill=Pbs(_sorted_by(backfill.site, _BY_PRIORITY)))
        super().__init__(setup.processors, policy, start_time, setup.reservations, setup.machine)
        self._tell_end = on_end
        self._setup = setup
        self._hook = hook
        self._tasks: dict[int, int] = {}
        self._by_name: dict[str, int] = {}
        stamps = Stamps()
        self._accounting = DayLog(setup.accounting_dir, stamps)
        self._server_log = DayLog(setup.server_logs_dir, stamps)
        backfill = self._engine.policy.backfill
        self.hosts: HostReplies | None = None
        if isinstance(backfill, Pbs) and len(backfill.site.able) > 1:
            self.hosts = HostReplies(backfill.site, self._engine)
        self._replies = PbsReplies(self)

    @property
    def vnode(self) -> str:
        """Name of its one host: that of the site that it schedules as, if there is one."""
        backfill = self._engine.policy.backfill
        return backfill.site.able[0].name if isinstance(backfill, Pbs) else "node1"

    def site(self) -> PbsSite:
        """Give the site that it schedules as, with what fair share has charged by now.

        Raises
        ------
        InputError
            If it schedules as no site's PBS.
        """
        site = self._engine.pbs_site()
        if site is None:
            raise InputError(f"the policy {self._engine.policy} is no site's PBS: give Pbs(site)")
        return _sorted_by(site, RANK) if self.has_ranks else site

    # The clock ------------------------------------------------------------------------------

    def advance(self, until: int) -> None:
        """Bring the clock to ``until`` (epoch seconds); jobs submitted next take part in its pass.

        What ends at ``until`` has ended; what could start at ``until`` has not been looked at.
        """
        self._step_to(until)
        self._take(self._engine.advance(until))
        self.now = until
        self._flush()

    def finish(self) -> None:
        """Run until the queue is empty and the last job has ended."""
        self._step_to(None)
        self._take(self._engine.finish())
        self.now = max(self.now, self._end_times[-1] if self._end_times else self.now)
        self._flush()

    def _step_to(self, until: int | None) -> None:
        """Go from event to event, so that the hook sees each job as it starts."""
        engine = self._engine
        while True:
            next_time = engine.next_event_time
            if next_time is None or (until is not None and next_time >= until):
                return
            moves = engine.advance(next_time)
            self.now = next_time
            self._take(moves)
            self._take(engine.settle())

    def _on_start(self, index: int, job: PbsJob) -> None:
        if self._hook is not None:
            reply = self._hook.runjob(self.attributes(index), job.start_time)
            self._log(reply, job.start_time)
            before = job.planned
            if reply.accepted:
                self._apply(job.resources, reply)
            if why := refusal(job.resources):
                raise SchedulerError(f"runjob left job {job.name} with what PBS refuses: {why}")
            if job.planned != before:
                self._engine.update(index, scheduled_time=JobTimesUpdate(drain=job.planned))
        _check_survived(job.name, job.resources)
        self._account(job.start_time, "S", job, self._started(job))

    def _on_end(self, index: int, job: PbsJob, ending: Ending) -> None:
        if ending is Ending.NEVER_STARTED:
            self._account(job.end_time, "D", job, f"requestor={MANAGER}@{SERVER}")
            return
        ran = job.end_time - job.start_time
        ended = ended_message(
            self._started(job), job.end_time, ran, job.submission.processors, ending
        )
        self._account(job.end_time, "E", job, ended)
        if self._tell_end is not None:
            self._tell_end(job)

    def _ending(self, job: PbsJob) -> Ending:
        return job.submission.ending

    def running_times(self) -> Int64Array:
        """Give what each job was planned with since it started, seconds, by submission."""
        return np.array([job.planned for job in self._jobs], dtype=np.int64)

    # What users do --------------------------------------------------------------------------

    def submit(self, submission: PbsSubmission) -> str:
        """Submit a job now, as `qsub` does, and give its identifier.

        Raises
        ------
        SchedulerError
            If PBS rejects it: too large a job, a soft_walltime of the user's own, one that the hook
            left in a state that PBS refuses, or the hook.
        """
        if submission.processors > self._setup.processors:
            raise SchedulerError(
                f"qsub: Job exceeds queue and/or server resource limits: {submission.processors} "
                f"processors of {self._setup.processors}"
            )
        if "soft_walltime" in submission.resources:
            raise SchedulerError(f"qsub: {_NOT_YOURS}soft_walltime")
        resources: dict[str, int | str] = {
            "select": f"1:ncpus={submission.processors}",
            **submission.resources,
        }
        if submission.requested_time is not None:
            resources["walltime"] = submission.requested_time
        job = PbsJob(
            submission=submission, submit_time=self.now, name=self._new_name(submission),
            resources=resources,
        )  # fmt: skip
        requestor = submission.user or NOBODY
        asker = f"{requestor}@{SERVER}"
        if self._hook is not None:
            self._note(f"0100;Server@{SERVER};Req;;Type 1 request received from {asker}, sock=18")
            reply = self._hook.queuejob(self._request(job), requestor, self.now)
            self._log(reply, self.now)
            if not reply.accepted:
                raise SchedulerError(f"qsub: {reply.message}")
            self._apply(resources, reply)
        self._set_defaults(job)
        if why := refusal(resources):
            raise SchedulerError(f"qsub: {why}")
        job.kill_limit = job.limit
        index = self._enqueue(
            job,
            processors=submission.processors,
            actual_runtime=submission.actual_runtime,
            requested_time=job.limit,
            planned=job.planned,
            resources=submission.of_nodes,
            user=submission.user,
            project=submission.account,
        )
        self._by_name[job.name] = index
        self._account(self.now, "Q", job, self._queued(job))
        self._note(
            f"0008;Server@{SERVER};Job;{job.name};Job Queued at request of {asker}, "
            f"owner = {asker}, job name = STDIN, queue = {submission.queue or _DEFAULT_QUEUE}"
        )
        return job.name

    def _new_name(self, submission: PbsSubmission) -> str:
        array = submission.array_id
        if array is None:
            return f"{len(self._jobs) + _FIRST_JOB_ID}.{SERVER}"
        task = self._tasks.get(array, 0)
        self._tasks[array] = task + 1
        return f"{_ARRAY_NUMBERS + array}[{task}].{SERVER}"

    def _set_defaults(self, job: PbsJob) -> None:
        """Fill in what the request lacks, as the server does after the hook."""
        defaults = self._setup.default_walltime_s
        for holder in (job.submission.queue or _DEFAULT_QUEUE, ""):
            if holder in defaults:
                job.resources.setdefault("walltime", defaults[holder])
        job.resources["ncpus"] = job.submission.processors

    @staticmethod
    def _apply(resources: dict[str, int | str], reply: PbsReply) -> None:
        for name, value in reply.changes.items():
            if name != "Resource_List.soft_walltime":
                raise InputError(f"the hook set {name}, which a replay has no use for")
            if value is None:
                resources.pop("soft_walltime", None)
            else:
                resources["soft_walltime"] = parse_pbs_duration(str(value))

    def _request(self, job: PbsJob) -> dict[str, Any]:
        """Give a job as `queuejob` is shown it: no name, no owner yet."""
        submission = job.submission
        request: dict[str, Any] = {"Resource_List": dict(job.resources)}
        if submission.account is not None:
            request["Account_Name"] = submission.account
        if submission.queue is not None:
            request["queue"] = submission.queue
        return request

    def attributes(self, index: int) -> dict[str, Any]:
        """Give a job's attributes as the server has them, by PBS's names; epoch seconds."""
        job = self._jobs[index]
        user = job.submission.user or NOBODY
        return {
            **self._request(job),
            "id": job.name,
            "Job_Owner": f"{user}@{SERVER}",
            "euser": user,
            "queue": job.submission.queue or _DEFAULT_QUEUE,
            "job_state": "R" if job.phase is Phase.RUNNING else "Q",
            "ctime": job.submit_time,
        }

    def delete(self, name: str) -> None:
        """Delete a waiting job, as `qdel` does."""
        index = self.index_of(name)
        if self._jobs[index].phase is not Phase.WAITING:
            raise SchedulerError(f"qdel: job {name}: the mock deletes waiting jobs only")
        self._cancel_waiting(index)
        self._flush()

    def alter(
        self, name: str, resources: Mapping[str, int | None], requestor: str = MANAGER
    ) -> None:
        """Change a job's walltime, soft_walltime or rank, as ``qalter -l`` does.

        Values are seconds. ``None`` takes one away; a default walltime then comes back.

        Raises
        ------
        SchedulerError
            If PBS refuses: only managers set soft_walltime and ranks, and raise the walltime of a
            running job; a soft_walltime may not exceed the walltime, nor stand beside
            ``min_walltime``.
        """
        index = self.index_of(name)
        job = self._jobs[index]
        if job.phase is Phase.ENDED:
            raise SchedulerError(f"qalter: Job has finished {job.name}")
        for resource in resources:
            known = ("walltime", "soft_walltime", *([RANK] if self.has_ranks else []))
            if resource not in known:
                raise SchedulerError(f"qalter: Unknown resource {resource} {job.name}")
        if RANK in resources and job.phase is Phase.RUNNING:
            said = f"Cannot modify attribute while job running  Resource_List.{RANK}"
            raise SchedulerError(f"qalter: {said} {job.name}")
        if requestor != MANAGER:
            for managed in resources.keys() & {"soft_walltime", RANK}:
                raise SchedulerError(f"qalter: {_NOT_YOURS}{managed} {job.name}")
            if job.phase is Phase.RUNNING and (resources.get("walltime") or 0) > job.walltime:
                raise SchedulerError(f"qalter: Unauthorized Request  {job.name}")
        merged = {**job.resources, **resources}
        wanted = {resource: value for resource, value in merged.items() if value is not None}
        if self._hook is not None:
            listed = {
                resource: "" if value is None else value for resource, value in resources.items()
            }
            request = {"Resource_List": listed}
            shown = self.attributes(index)
            reply = self._hook.modifyjob(request, shown, requestor, self.now)
            self._log(reply, self.now)
            if not reply.accepted:
                raise SchedulerError(f"qalter: {reply.message} {job.name}")
            self._apply(wanted, reply)
        # What a hook adds is judged as if its user had asked for it (OpenPBS, req_modify.c).
        before = job.resources.get("soft_walltime")
        raised = before is not None and int(wanted.get("soft_walltime", 0)) > int(before)
        if requestor != MANAGER and job.phase is Phase.RUNNING and raised:
            raise SchedulerError(f"qalter: Unauthorized Request  {job.name}")
        if why := refusal(wanted):
            raise SchedulerError(f"qalter: {why} {job.name}")
        if job.phase is Phase.RUNNING:
            _check_survived(job.name, wanted)
        job.resources = wanted
        self._set_defaults(job)
        job.kill_limit = job.limit
        self._engine.update(
            index,
            requested_time=job.limit,
            scheduled_time=job.planned,
            time_limit=job.kill_limit,
            priority=int(job.resources.get(RANK, 0)),
        )

    def planned_start(self, index: int) -> int | None:
        """Say when a top job of its site's PBS is planned to start; ``None`` of other jobs."""
        if not isinstance(self._engine.policy.backfill, Pbs):
            return None
        return self._engine.planned_start(index)

    # What the sidecar's client runs ---------------------------------------------------------

    def run(self, argv: Sequence[str]) -> str:
        """Answer one of PBS's commands with what it prints.

        Raises
        ------
        SchedulerError
            For a command that the mock does not know, or a change that PBS would refuse.
        """
        self._flush()
        return self._replies.run(argv)

    def index_of(self, name: str) -> int:
        """Find a job by its identifier, with or without the server.

        Raises
        ------
        SchedulerError
            If there is none.
        """
        match = _JOB_NAME.fullmatch(name)
        index = self._by_name.get(f"{match[1]}{match[2] or ''}.{SERVER}") if match else None
        if index is None:
            raise SchedulerError(f"Unknown Job Id {name}")
        return index

    @property
    def processors(self) -> int:
        """Size of the machine."""
        return self._setup.processors

    @property
    def reservations(self) -> list[AdvanceReservation]:
        """Reservations that have not ended."""
        return [claim for claim in self._setup.reservations if claim.end > self.now]

    @property
    def free_processors(self) -> int:
        """Processors that no job uses."""
        return self._engine.free_processors

    def job_at(self, index: int) -> PbsJob:
        """Give a job by its index, the order of submission."""
        return self._jobs[index]

    def present(self) -> list[int]:
        """Give the jobs that run or wait."""
        return self._queued_jobs()

    def over(self) -> list[int]:
        """Give the jobs that have ended, in the order of their ends."""
        return list(self._ended)

    # Logs -----------------------------------------------------------------------------------

    def _account(self, time: int, kind: str, job: PbsJob, message: str) -> None:
        if self._setup.accounting_dir is not None:
            self._accounting.write(time, f";{kind};{job.name};{message}")

    def _queued(self, job: PbsJob) -> str:
        if self._setup.accounting_dir is None:
            return ""
        submission = job.submission
        names = (
            name_words("user", submission.user)
            + name_words("account", submission.account)
            + name_words("queue", submission.queue or _DEFAULT_QUEUE)
        )
        soft = job.resources.get("soft_walltime")
        resources = resource_words(
            submission.processors, job.walltime, None if soft is None else int(soft)
        )
        return queued_message(names, job.submit_time, resources)

    def _started(self, job: PbsJob) -> str:
        return started_message(self._queued(job), job.start_time)

    def _log(self, reply: PbsReply, time: int) -> None:
        for line in reply.log:
            self.hook_errors += line.event_class == _EVENT_ERROR
            self._note(
                f"{line.event_class:04x};Server@{SERVER};Hook;Server@{SERVER};{line.text}", time
            )

    def _note(self, what: str, time: int | None = None) -> None:
        if self._setup.server_logs_dir is not None:
            self._server_log.write(self.now if time is None else time, ";" + what)

    def _flush(self) -> None:
        self._accounting.flush()
        self._server_log.flush()


def _sorted_by(site: PbsSite, formula: str) -> PbsSite:
    return replace(site, server=replace(site.server, job_sort_formula=formula))


def _check_survived(name: str, resources: Mapping[str, Any]) -> None:
    if why := fatal(resources):
        raise InputError(f"job {name} runs with {why}")
