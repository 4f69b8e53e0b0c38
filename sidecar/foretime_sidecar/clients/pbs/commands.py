"""The client that runs PBS's own commands and reads its logs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from foretime_estimators.jobs.errors import SchedulerError
from foretime_sim.sites.pbs.formula import RANK

from foretime_sidecar.clients.child_process import Advice, ChildProcesses, as_text
from foretime_sidecar.clients.client import (
    UNLIMITED_S,
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    QueueState,
    Reservation,
    SchedulerClient,
    SchedulerConfiguration,
    SiteLimits,
)
from foretime_sidecar.clients.pbs.dedicated_time import read_dedicated_times
from foretime_sidecar.clients.pbs.finished_record import finished_record
from foretime_sidecar.clients.pbs.job_changes import JobChanger, QalterProcesses
from foretime_sidecar.clients.pbs.json import (
    parse_configuration,
    parse_history,
    parse_queue,
    parse_reservations,
    parse_vnodes,
)
from foretime_sidecar.clients.pbs.logs import AccountingTail, DecisionTail
from foretime_sidecar.clients.pbs.start_rank import CYCLE_DIRECTIVE
from foretime_sidecar.clients.request_time import RequestTime

logger = logging.getLogger("foretime")

_ADVICE = Advice("install PBS's client commands (often in /opt/pbs/bin)", "check pbs_server")


class PbsRunner(Protocol):
    """Runs one command: a subprocess on a real system, a call of the mock PBS in a replay."""

    def __call__(self, argv: Sequence[str]) -> str:
        """Run a command and give what it printed; `SchedulerError` if it fails."""


class PbsProcesses:
    """Runs PBS's commands as child processes; the parameters are those of `ChildProcesses`."""

    def __init__(
        self,
        commands_dir: str = "",
        timeout_s: int = 60,
        attempts: int = 4,
        request_time: RequestTime | None = None,
    ) -> None:
        self._children = ChildProcesses(_ADVICE, commands_dir, timeout_s, attempts, request_time)

    def __call__(self, argv: Sequence[str]) -> str:
        """Run a command; see `PbsRunner`."""
        # The commands turn epoch seconds into local time: this way it is always UTC.
        environment = {**os.environ, "TZ": "UTC0", "LC_ALL": "C"}
        # A change that was refused would be refused again.
        once = argv[0] in ("qalter", "qmgr")
        return as_text(self._children.output(argv, environment, once=once))


class PbsCommands(SchedulerClient):
    """A `SchedulerClient` over qstat, pbsnodes, pbs_rstat, qalter and the accounting logs.

    Parameters
    ----------
    run
        Runs one command.
    accounting_dir
        ``PBS_HOME/server_priv/accounting``; ``None`` asks the server's own history of finished
        jobs in its place (``qstat -x``; its ``job_history_enable`` must be on).
    server_logs_dir
        ``PBS_HOME/server_logs``, where the hook's decisions stand; ``None`` does without them.
    overlap_s
        How far before the cursor finished jobs are read again, for those recorded late.
    clock
        Epoch seconds.
    change
        Changes jobs; ``None`` does so with qalter.
    dedicated_time
        ``PBS_HOME/sched_priv/dedicated_time``; "" does without.
    """

    def __init__(
        self,
        run: PbsRunner,
        accounting_dir: Path | None = None,
        server_logs_dir: Path | None = None,
        overlap_s: int = 3600,
        clock: Callable[[], float] = time.time,
        change: JobChanger | None = None,
        dedicated_time: str = "",
    ) -> None:
        self._run = run
        self._change = change or QalterProcesses(run)
        self._dedicated_time = dedicated_time
        self._told_of_dedicated_time = ""
        self._accounting = None if accounting_dir is None else AccountingTail(accounting_dir)
        self._decisions = None if server_logs_dir is None else DecisionTail(server_logs_dir)
        self._overlap_s = overlap_s
        self._clock = clock
        self._told = ""  # of the server logs
        self._history: tuple[int, list[FinishedRecord]] = (0, [])  # and when it was asked for

    def configuration(self) -> SchedulerConfiguration:
        """Read how PBS is set up."""
        return parse_configuration(self._run(["qstat", "-B", "-f", "-F", "json"]))

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        """Read the jobs that ended since the cursor (less the overlap), and the new cursor."""
        since = max(cursor.end_time - self._overlap_s, 1)
        if self._accounting is None:
            records = [
                record
                for record in self._remembered(until)
                if since <= record.job.end_time and (until is None or record.job.end_time <= until)
            ]
        else:
            ended = self._accounting.ended_since(since, until)
            decided = self._follow_decisions()
            records = [
                record
                for job in ended
                if (record := finished_record(job, decided.of(job.job_id) if decided else ""))
            ]
        latest = records[-1].job.end_time if records else 0
        return records, Cursor(max(cursor.end_time, latest, until or 0))

    def _follow_decisions(self) -> DecisionTail | None:
        """Read the server logs on; ``None`` if there are none, or they can't be read.

        Jobs are learned and planned without the decisions, too, so the log says so and it goes on.
        """
        if self._decisions is None:
            return None
        try:
            self._decisions.follow(int(self._clock()))
        except SchedulerError as error:
            if str(error) != self._told:
                logger.warning("jobs are stored without the hook's decisions: %s", error)
                self._told = str(error)
            return None
        self._told = ""
        return self._decisions

    def _remembered(self, until: int | None) -> list[FinishedRecord]:
        """Give what the server remembers; once for a long absence made good in slices."""
        asked_at, records = self._history
        if until is None or until >= asked_at:
            asked_at = int(self._clock())
            records = parse_history(self._run(["qstat", "-x", "-t", "-f", "-F", "json"]))
            self._history = asked_at, records
        return records

    def queue(self) -> Queue:
        """Read what runs and what waits."""
        jobs = parse_queue(self._run(["qstat", "-t", "-f", "-F", "json"]))
        if (decided := self._follow_decisions()) is not None:
            jobs = tuple(
                replace(job, admin_comment=said)
                if (said := decided.of(job.request.job_id))
                else job
                for job in jobs
            )
        processors, away = parse_vnodes(self._run(["pbsnodes", "-a", "-F", "json"]))
        return Queue(processors, jobs, away)

    def reservations(self) -> list[Reservation]:
        """Read the reservations and the scheduler's dedicated times, current and to come."""
        return parse_reservations(self._run(["pbs_rstat", "-f"])) + self._dedicated_times()

    def _dedicated_times(self) -> list[Reservation]:
        """Read the dedicated times; what can't be read is logged, as the hook reads them, too."""
        if not self._dedicated_time:
            return []
        try:
            found, problem = read_dedicated_times(Path(self._dedicated_time)), ""
        except SchedulerError as error:
            found, problem = [], str(error)
        if problem and problem != self._told_of_dedicated_time:
            logger.warning("dedicated time announced later is not heeded: %s", problem)
        self._told_of_dedicated_time = problem
        return found

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        """Answer that there are none: PBS judges nothing on soft_walltime."""
        return SiteLimits()

    def update(self, changes: Sequence[JobChange]) -> None:
        """Make changes.

        ``time_min=0`` sets soft_walltime to the whole walltime, which PBS plans with as if there
        were none. It is not unset: the hook may set it again, and setting a resource that was
        emptied has crashed pbs_server (OpenPBS before 22, pull request 2403); nor would unsetting
        keep a default soft_walltime out. ``foretime uninstall`` unsets it, for then no hook is
        left to lower it with the walltime, nor to set it again. For a walltime of 0 it is unset:
        pbs_sched divides by soft_walltime. `queue` gives 0 s as 1 s, so for 1 s it is unset, too,
        and so it is of a job without a walltime.

        A site factor is a job's rank (`RANK`). Once one was given, pbs_sched looks at the queue.
        """
        walltimes: dict[str, int] = {}
        if any(change.time_min == 0 and change.time_limit is None for change in changes):
            walltimes = {
                job.request.job_id: job.request.requested_time for job in self.queue().jobs
            }
        asked: dict[str, dict[str, str]] = {}
        refused = []
        for change in changes:
            limit, soft = change.time_limit, change.time_min
            resources = {} if limit is None else {"walltime": str(limit)}
            if change.site_factor is not None:
                resources[RANK] = str(change.site_factor)
            if soft == 0:
                whole = walltimes.get(change.job_id) if limit is None else limit
                if whole is None:
                    refused.append(f"{change.job_id}: no such job waits or runs")
                else:
                    plans = 1 < whole < UNLIMITED_S
                    resources["soft_walltime"] = str(whole) if plans else ""
            elif soft is not None:
                resources["soft_walltime"] = str(soft)
            if resources:
                asked.setdefault(change.job_id, {}).update(resources)
        refused += self._change(asked)
        if any(change.site_factor for change in changes):
            self._start_cycle()
        if refused:
            raise SchedulerError("; ".join(refused))

    def _start_cycle(self) -> None:
        """Have pbs_sched look at the queue now, unless somebody has switched scheduling off."""
        if self.configuration().parameters.get("scheduling", "").lower() == "true":
            self._run(["qmgr", "-c", CYCLE_DIRECTIVE])

    def site_factors(self) -> Mapping[str, int]:
        """Read the rank of every pending job."""
        return {
            job.request.job_id: job.priority
            for job in self.queue().jobs
            if job.state is QueueState.PENDING
        }
