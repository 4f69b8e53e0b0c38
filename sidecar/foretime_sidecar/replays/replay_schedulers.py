"""The mock schedulers of a replay, each with its hook and the client that the sidecar asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.estimator_hook import EstimatorHook
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.mock_scheduler import MockScheduler
from foretime_sim.mocks.pbs.hook import PbsHook
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.mocks.slurm.hook import LuaHook
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.said_to_sites import said_by
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.clients.client import SchedulerClient
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.clients.slurm.commands import SlurmCommands


@dataclass(frozen=True, slots=True)
class MockedScheduler:
    """A mock, and what a replay does with it.

    Attributes
    ----------
    mock
        The scheduler.
    client
        What the sidecar asks.
    submit
        Submits the job at a position of the workload.
    progress_step
        Jobs after which progress is told.
    """

    mock: MockScheduler[Any]
    client: SchedulerClient
    submit: Callable[[int], object]
    progress_step: int


def mocked_slurm(
    workload: Workload,
    policy: Policy,
    mechanism: Mechanism,
    begin: int,
    table: Path,
    *,
    lua_version: str,
    setup: SlurmSetup | None = None,
    reservations: tuple[AdvanceReservation, ...] = (),
) -> MockedScheduler:
    """Give a mock Slurm with the shipped hook.

    Parameters
    ----------
    workload
        What will be submitted.
    policy, mechanism
        How it schedules, and how t_sched reaches it.
    begin
        Epoch seconds that its clock starts with.
    table
        The file that the hook reads.
    lua_version
        Which Lua runs the hook.
    setup
        Its slurm.conf; processors, mechanism and reservations are set here.
    reservations
        Advance reservations, in epoch seconds.
    """
    hook = LuaHook(lua_version=lua_version, table=table)
    setup = replace(
        setup or SlurmSetup(workload.machine_processors),
        processors=workload.machine_processors,
        mechanism=mechanism,
        machine=_nodes_of(workload),
        reservations=reservations,
    )
    mock = MockSlurm(setup, policy, hook, begin)
    columns = _Columns(workload)

    def submit(job: int) -> int:
        return mock.submit(
            Submission(
                **columns.of_job(job),
                slurm_partition=columns.queues[job],
                resources=_of_nodes(workload, job),
                said=said_by(workload, policy, job),
            )
        )

    client = SlurmCommands(mock.run, overlap_s=0)
    return MockedScheduler(mock, client, submit, _progress_step(workload))


def mocked_pbs(
    workload: Workload,
    policy: Policy,
    begin: int,
    folder: Path,
    *,
    table: Path,
    readjust_after_s: int = 3600,
    keep_decisions: bool = False,
    reservations: tuple[AdvanceReservation, ...] = (),
) -> MockedScheduler:
    """Give a mock PBS with the shipped hook.

    Parameters
    ----------
    workload, policy, begin
        As in `mocked_slurm`.
    folder
        Where its accounting and server logs, and the hook's configuration, are written.
    table
        The file that the hook reads.
    readjust_after_s
        The hook's setting: a job that has waited so long is judged anew as it starts.
    keep_decisions
        Whether the server log is written, so that the store gets the hook's decisions.
    reservations
        As in `mocked_slurm`.
    """
    config = folder / "foretime_hook.CF"
    words = {
        "table": str(table),
        "disable_file": None,
        "readjust_after_s": readjust_after_s,
        # A replay's machine may be busy; a job left alone for that would be chance.
        "deadline_s": 60,
    }
    config.write_text(json.dumps(words), encoding="utf-8")
    setup = PbsSetup(
        workload.machine_processors,
        accounting_dir=folder / "accounting",
        server_logs_dir=folder / "server_logs" if keep_decisions else None,
        reservations=reservations,
        machine=_nodes_of(workload),
    )
    return _pbs_with(workload, MockPbs(setup, policy, PbsHook(config=config), begin), setup)


def pbs_by_estimator(
    workload: Workload,
    policy: Policy,
    begin: int,
    hook: EstimatorHook,
    *,
    learn: bool = True,
    reservations: tuple[AdvanceReservation, ...] = (),
) -> MockedScheduler:
    """Give a mock PBS with an estimator in the place of the hook.

    Parameters
    ----------
    workload, policy, begin
        As in `mocked_slurm`.
    hook
        The estimator.
    learn
        Whether it learns the jobs as they end.
    reservations
        As in `mocked_slurm`.
    """
    setup = PbsSetup(
        workload.machine_processors, reservations=reservations, machine=_nodes_of(workload)
    )
    mock = MockPbs(setup, policy, hook, begin, hook.learn if learn else None)
    return _pbs_with(workload, mock, setup)


def _pbs_with(workload: Workload, mock: MockPbs, setup: PbsSetup) -> MockedScheduler:
    columns = _Columns(workload)

    def submit(job: int) -> str:
        return mock.submit(
            PbsSubmission(
                **columns.of_job(job),
                queue=columns.queues[job],
                of_nodes=_of_nodes(workload, job),
            )
        )

    client = PbsCommands(
        mock.run,
        setup.accounting_dir,
        setup.server_logs_dir,
        overlap_s=0,
        clock=lambda: mock.now,
    )
    return MockedScheduler(mock, client, submit, _progress_step(workload))


def _nodes_of(workload: Workload) -> Machine | None:
    if isinstance(workload.machine, BgpMachine):
        raise InputError(
            f"{workload.machine.name} is a Blue Gene, which neither Slurm nor PBS runs: use"
            " foretime simulate, which needs no hook"
        )
    return workload.machine


def _of_nodes(workload: Workload, job: int) -> JobResources | None:
    return job_resources(workload, job) if isinstance(workload.machine, Machine) else None


def _progress_step(workload: Workload) -> int:
    return max(len(workload) // 100, 1)


class _LoggedJob(TypedDict):
    """What both mocks are told of a job, in their words."""

    user: str | None
    account: str | None
    processors: int
    requested_time: int
    actual_runtime: int
    ending: Ending
    array_id: int | None


class _Columns:
    """A workload's columns as lists of Python values."""

    def __init__(self, workload: Workload) -> None:
        self._ending = workload.ending
        self.users, self.projects, self.queues = (
            [None] * len(workload) if labels is None else labels.by_job()
            for labels in (workload.users, workload.projects, workload.queues)
        )
        self.runtimes: list[int] = workload.actual_runtime.tolist()
        self.requested: list[int] = workload.requested_time.tolist()
        self.processors: list[int] = workload.processors.tolist()
        arrays = workload.array_ids
        codes = [-1] * len(workload) if arrays is None else arrays.codes.tolist()
        self.arrays = [None if code < 0 else code + 1 for code in codes]

    def of_job(self, job: int) -> _LoggedJob:
        """Give the job at a position."""
        return {
            "user": self.users[job],
            "account": self.projects[job],
            "processors": self.processors[job],
            "requested_time": self.requested[job],
            "actual_runtime": self.runtimes[job],
            "ending": self._ending(job) or Ending.COMPLETED,
            "array_id": self.arrays[job],
        }
