"""The client that reads the queue through pyslurm, Slurm's C library from Python.

pyslurm saves starting a command and decoding its JSON at each look. What it can't do is left to
Slurm's commands: it keeps one run of a requeued job only, so finished jobs come from sacct; it
reads no site factors; and it makes a request for each change. Written for pyslurm 25.11.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_estimators.time_units import MINUTE_S

from foretime_sidecar.clients.child_process import said_by, spawn
from foretime_sidecar.clients.client import (
    UNLIMITED_S,
    ControllerLoad,
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    QueuedJob,
    QueueState,
    Reservation,
    SchedulerClient,
    SchedulerConfiguration,
    SiteLimits,
)
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.clients.slurm.queue_json import (
    OPT_OUT,
    QUEUE_STATES,
    count_tasks,
    pending_tasks,
)
from foretime_sidecar.clients.slurm.release import slurm_release

# Slurm's library reads slurm.conf as it is loaded, and ends the process if it can't use it.
_TRIAL = """
try:
    import pyslurm
except ImportError:
    pass
"""
_TRIAL_S = 60
_UP = ("IDLE", "MIXED", "ALLOCATED", "COMPLETING")


def import_pyslurm() -> Any:  # noqa: ANN401 - it is optional, and ships no types
    """Give the pyslurm module.

    Raises
    ------
    InputError
        If it is not installed, was built for another Slurm than this machine's, or can't use its
        slurm.conf.
    """
    _try_import()
    try:
        return importlib.import_module("pyslurm")
    except ModuleNotFoundError as error:
        raise InputError(
            'scheduler.client = "pyslurm": pyslurm is not installed: install the release of the '
            "site's Slurm (pip install foretime[pyslurm], with SLURM_INCLUDE_DIR and "
            'SLURM_LIB_DIR), or set "commands"'
        ) from error
    except ImportError as error:
        raise InputError(
            f'scheduler.client = "pyslurm": pyslurm does not load here: {error}; install the '
            'release of the site\'s Slurm, or set "commands"'
        ) from error


def _try_import() -> None:
    """Import pyslurm in a process of its own, which may end of it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        trial = spawn([sys.executable, "-c", _TRIAL], _TRIAL_S, environment)
        failure = said_by(trial) if trial.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        failure = str(error)
    if failure:
        raise InputError(
            f'scheduler.client = "pyslurm": Slurm\'s library does not load: {failure}; check '
            "slurm.conf and that its SlurmUser is a user of this machine, install the pyslurm of "
            'the site\'s Slurm, or set "commands"'
        )


class PySlurm:
    """A `SchedulerClient` over pyslurm.

    Parameters
    ----------
    pyslurm
        The module.
    commands
        Slurm's commands, for what pyslurm can't.
    request_time
        Counts how long questions wait for their answers.

    Raises
    ------
    SchedulerError
        By each method, if pyslurm was not made for Slurm's release.
    """

    def __init__(
        self,
        pyslurm: Any,  # noqa: ANN401
        commands: SchedulerClient,
        request_time: RequestTime | None = None,
    ) -> None:
        self._pyslurm = pyslurm
        self._commands = commands
        self._request_time = request_time or RequestTime()
        self._fits = False

    def configuration(self) -> SchedulerConfiguration:
        """Read how Slurm is set up."""
        return self._commands.configuration()

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        """Read the jobs that ended since the cursor (less the overlap), and the new cursor."""
        return self._commands.finished_since(cursor, until)

    def queue(self) -> Queue:
        """Read what runs and what waits."""
        self._check_release()
        try:
            with self._request_time.request():
                nodes = self._pyslurm.Nodes.load().values()
                jobs = self._pyslurm.Jobs.load(preload_passwd_info=True).values()
            processors = sum(map(_processors, nodes))
            queued = [found for found in map(_queued, jobs) if found is not None]
        except self._pyslurm.PyslurmError as error:
            raise SchedulerError(f"pyslurm: {error}; check slurmctld") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise SchedulerError(
                f"pyslurm {self._pyslurm.__version__} gave a job in an unknown shape "
                f"({type(error).__name__}: {error}); Foretime knows pyslurm 25.11"
            ) from error
        queued.sort(key=lambda job: job.request.submit_time)
        return Queue(processors, tuple(queued))

    def cluster(self) -> None:
        """Give nothing: what running jobs have of each node is not read."""
        return

    def reservations(self) -> list[Reservation]:
        """Read the reservations, current and to come."""
        return self._commands.reservations()

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        """Read MaxTime and nodes of the slurm_partitions, and what accounting limits."""
        return self._commands.limits(configuration)

    def update(self, changes: Sequence[JobChange]) -> None:
        """Make changes, all in one scontrol."""
        self._commands.update(changes)

    def load(self) -> ControllerLoad:
        """Read how busy slurmctld is."""
        self._check_release()
        try:
            with self._request_time.request():
                statistics = self._pyslurm.slurmctld.diag()
        except self._pyslurm.PyslurmError as error:
            raise SchedulerError(f"pyslurm: {error}; check slurmctld") from error
        return ControllerLoad(
            statistics.server_thread_count,
            statistics.agent_queue_size,
            statistics.dbd_agent_queue_size,
            statistics.schedule_cycle_last / 1e6,
        )

    def site_factors(self) -> Mapping[str, int]:
        """Read the site factor of every pending job that slurmctld weighs."""
        return self._commands.site_factors()

    def qos_priorities(self) -> Mapping[str, int]:
        """Read the priority of each QOS."""
        return self._commands.qos_priorities()

    def _check_release(self) -> None:
        """Refuse a pyslurm for another Slurm, which would read its messages wrongly."""
        if self._fits:
            return
        ours = str(self._pyslurm.__version__)
        slurm = self._commands.configuration().version
        made_for = slurm_release(ours)[:2]
        if made_for != slurm_release(slurm)[:2]:
            raise SchedulerError(
                f"pyslurm {ours} is for Slurm {'.'.join(map(str, made_for))}, but slurmctld is "
                f'{slurm}; install the one of that release, or set scheduler.client = "commands"'
            )
        self._fits = True


def _processors(node: Any) -> int:  # noqa: ANN401
    """Processors allocated or idle; of a node that is to take no new jobs those of its jobs."""
    state = str(node.state).upper()
    if state.startswith(_UP) and not any(word in state for word in ("DRAIN", "DOWN", "FAIL", "*")):
        return int(node.total_cpus)
    return int(node.allocated_cpus)


def _queued(job: Any) -> QueuedJob | None:  # noqa: ANN401
    state = QUEUE_STATES.get(job.state)
    if state is None:
        return None
    array_id, task = job.array_id or None, job.array_task_id
    job_id, tasks, pending = str(job.id), 1, ""
    if array_id is not None:
        if task is not None:
            job_id = f"{array_id}_{task}"
        else:
            expression = job.array_tasks_waiting or ""
            tasks, pending = count_tasks(expression), pending_tasks(expression)
    running = state is not QueueState.PENDING
    reason = job.state_reason or ""
    request = JobRequest(
        job_id,
        job.user_name or None,
        job.account or None,
        max(int(job.cpus or 1), 1),
        job.time_limit * MINUTE_S if job.time_limit else UNLIMITED_S,
        job.submit_time or 0,
        job.partition or None,
        None if array_id is None else str(array_id),
    )
    return QueuedJob(
        request,
        state,
        tasks,
        pending,
        start_time=job.start_time or None,
        eligible_time=job.eligible_time or None,
        time_min=job.time_limit_min * MINUTE_S if job.time_limit_min else None,
        suspended_time=_suspended(job) if running else 0,
        held=not running and (reason.startswith("JobHeld") or job.priority == 0),
        dependent=reason.startswith("Dependency") or bool(job.dependencies),
        deadline=bool(job.deadline),
        heterogeneous=bool(job.heterogeneous_id),
        opted_out=OPT_OUT in (job.comment or ""),
        reason="" if reason == "None" else reason,
        qos=job.qos or None,
        reservation=job.reservation or None,
        admin_comment=job.admin_comment or "",
        priority=job.priority or 0,
    )


def _suspended(job: Any) -> int:  # noqa: ANN401
    start, suspended_at = job.start_time or 0, job.suspend_time or 0
    if not start or suspended_at <= start:
        return 0
    return max(suspended_at - start - (job.pre_suspension_time or 0), 0)
