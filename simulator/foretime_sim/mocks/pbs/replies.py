"""What the mock PBS's commands print, in the words of OpenPBS."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending

from foretime_sim.files.pbs_durations import format_pbs_duration, parse_pbs_duration
from foretime_sim.logs.pbs_accounting_writer import SERVER
from foretime_sim.logs.pbs_records import EXIT_OF_ENDING, NO_PROJECT, array_of
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.mock_scheduler import Phase
from foretime_sim.mocks.pbs.host_replies import HostReplies
from foretime_sim.mocks.pbs.pbs_job import PbsJob

VERSION = "23.06.06"
_STATES = {Phase.WAITING: "Q", Phase.RUNNING: "R", Phase.ENDED: "F"}
_FINISHED_SUBSTATE, _DELETED_SUBSTATE = 92, 91
_DURATIONS = ("walltime", "soft_walltime", "min_walltime", "max_walltime")


class ServedPbs(Protocol):
    """The mock as its commands see it (`foretime_sim.mocks.pbs.mock_pbs.MockPbs`)."""

    now: int
    hosts: HostReplies | None

    @property
    def processors(self) -> int:
        """Size of the machine."""

    @property
    def vnode(self) -> str:
        """Name of its one host."""

    @property
    def free_processors(self) -> int:
        """Processors that no job has."""

    @property
    def reservations(self) -> Sequence[AdvanceReservation]:
        """Those that have not ended."""

    def __len__(self) -> int:
        """Give the number of all jobs."""

    def present(self) -> Sequence[int]:
        """Give the indices of jobs that wait or run."""

    def over(self) -> Sequence[int]:
        """Give the indices of jobs that have ended."""

    def job_at(self, index: int) -> PbsJob:
        """Give a job."""

    def attributes(self, index: int) -> dict[str, Any]:
        """Give a job's attributes."""

    def planned_start(self, index: int) -> int | None:
        """Say when a top job is planned to start."""

    def alter(self, name: str, resources: Mapping[str, int | None]) -> None:
        """Change a job as qalter does."""


class PbsReplies:
    """Answers commands about a mock PBS.

    Parameters
    ----------
    pbs
        The mock.
    """

    def __init__(self, pbs: ServedPbs) -> None:
        self._pbs = pbs

    def run(self, argv: Sequence[str]) -> str:
        """Answer a command; see `foretime_sim.mocks.pbs.mock_pbs.MockPbs.run`."""
        match list(argv):
            case ["qstat", "-B", "-f", "-F", "json"]:
                return self._json("Server", {SERVER: self._server()})
            case ["qstat", "-t", "-f", "-F", "json"]:
                return self._json("Jobs", self._jobs(self._pbs.present()))
            case ["qstat", "-x", "-t", "-f", "-F", "json"]:
                pbs = self._pbs
                return self._json("Jobs", self._jobs([*pbs.over(), *pbs.present()]))
            case ["pbsnodes", "-a", "-F", "json"]:
                hosts = self._pbs.hosts
                one = {self._pbs.vnode: self._node()}
                return self._json("nodes", one if hosts is None else hosts.nodes())
            case ["pbs_rstat", "-f"]:
                return "".join(map(_reservation, self._pbs.reservations))
            case ["qalter", "-l", resources, *names]:
                self._alter(resources, names)
                return ""
            case ["qmgr", "-c", "set server scheduling = True"]:
                return ""  # the engine looks at its queue after each change anyway
            case _:
                raise SchedulerError(f"the mock PBS does not know: {' '.join(argv)}")

    def _json(self, section: str, entries: dict[str, Any]) -> str:
        reply: dict[str, Any] = {
            "timestamp": self._pbs.now,
            "pbs_version": VERSION,
            "pbs_server": SERVER,
        }
        if entries:
            reply[section] = entries
        return json.dumps(reply, indent="\t")

    def _server(self) -> dict[str, Any]:
        return {
            "server_state": "Active",
            "server_host": SERVER,
            "scheduling": "True",
            "default_queue": "workq",
            "total_jobs": len(self._pbs),
            "resources_assigned": {"ncpus": self._pbs.processors - self._pbs.free_processors},
            "eligible_time_enable": "False",
            "job_history_enable": "True",
            "pbs_version": VERSION,
        }

    def _node(self) -> dict[str, Any]:
        free = self._pbs.free_processors
        return {
            "Mom": self._pbs.vnode,
            "ntype": "PBS",
            "state": "free" if free else "job-busy",
            "pcpus": self._pbs.processors,
            "resources_available": {"host": self._pbs.vnode, "ncpus": self._pbs.processors},
            "resources_assigned": {"ncpus": self._pbs.processors - free},
            "resv_enable": "True",
        }

    def _jobs(self, indices: Sequence[int]) -> dict[str, Any]:
        """Give jobs by name; the waiting sub-jobs of an array also as the array."""
        found: dict[str, Any] = {}
        waiting: dict[str, list[int]] = {}
        hosts = self._pbs.hosts
        of_hosts = {} if hosts is None else hosts.jobs(indices)
        for index in indices:
            job = self._pbs.job_at(index)
            array = array_of(job.name)
            if array is not None and job.phase is Phase.WAITING:
                waiting.setdefault(array, []).append(index)
            found[job.name] = self._job(index, of_hosts.get(index, {}))
        for array, tasks in waiting.items():
            first = found[self._pbs.job_at(tasks[0]).name]
            remaining = ",".join(
                self._pbs.job_at(index).name.partition("[")[2].partition("]")[0] for index in tasks
            )
            found[array] = {**first, "array": "True", "array_indices_remaining": remaining}
        return found

    def _job(self, index: int, of_hosts: Mapping[str, Any]) -> dict[str, Any]:
        job = self._pbs.job_at(index)
        attributes = self._pbs.attributes(index)
        shown: dict[str, Any] = {
            "Job_Name": "STDIN",
            "Job_Owner": attributes["Job_Owner"],
            "job_state": _STATES[job.phase],
            "queue": attributes["queue"],
            "server": SERVER,
            "ctime": _ctime(job.submit_time),
            "qtime": _ctime(job.submit_time),
            "etime": _ctime(job.submit_time),
            "Hold_Types": "n",
            "project": job.submission.account or NO_PROJECT,
            "Priority": 0,
            "schedselect": f"{job.submission.processors}:ncpus=1",
            "Resource_List": {
                name: format_pbs_duration(int(value)) if name in _DURATIONS else value
                for name, value in job.resources.items()
            },
        }
        if job.submission.user is None:
            shown["Job_Owner"] = ""
        else:
            shown["euser"] = job.submission.user
        if job.submission.account is not None:
            shown["Account_Name"] = job.submission.account
        if job.start_time:
            shown["stime"] = _ctime(job.start_time)
            ran = (job.end_time or self._pbs.now) - job.start_time
            shown["resources_used"] = {
                "ncpus": job.submission.processors,
                "walltime": format_pbs_duration(ran),
            }
        if (estimated := job.estimated_soft_walltime(self._pbs.now)) is not None:
            shown["estimated"] = {"soft_walltime": format_pbs_duration(estimated)}
        if job.phase is Phase.WAITING and (start := self._pbs.planned_start(index)) is not None:
            shown["estimated"] = {"start_time": _ctime(start)}
        if job.phase is Phase.RUNNING:
            shown["exec_vnode"] = f"({self._pbs.vnode}:ncpus={job.submission.processors})"
        for name, value in of_hosts.items():
            (shown["Resource_List"] if name == "place" else shown)[name] = value
        if job.phase is Phase.ENDED:
            shown |= _history(job)
        return shown

    def _alter(self, words: str, names: Sequence[str]) -> None:
        """Change jobs as qalter does: what is refused does not keep the rest from being done."""
        resources: dict[str, int | None] = {}
        for word in words.split(","):
            name, _, value = word.partition("=")
            try:
                resources[name] = parse_pbs_duration(value) if value else None
            except ValueError:
                raise SchedulerError(
                    f"qalter: Illegal attribute or resource value Resource_List.{name}"
                ) from None
        refused = []
        for name in names:
            try:
                self._pbs.alter(name, resources)
            except SchedulerError as error:
                refused.append(str(error))
        if refused:
            raise SchedulerError(f"qalter failed with exit code 1: {'; '.join(refused)}")


def _history(job: PbsJob) -> dict[str, Any]:
    deleted = job.ending in (Ending.CANCELLED, Ending.NEVER_STARTED)
    return {
        "substate": _DELETED_SUBSTATE if deleted else _FINISHED_SUBSTATE,
        "Exit_status": EXIT_OF_ENDING[job.ending or Ending.COMPLETED],
        "obittime": _ctime(job.end_time),
        "history_timestamp": job.end_time,
    }


def _reservation(claim: AdvanceReservation) -> str:
    name = f"R{claim.start}-{claim.processors}.{SERVER}"
    return (
        f"Resv ID: {name}\nreserve_state = RESV_CONFIRMED\n"
        f"reserve_start = {_ctime(claim.start)}\nreserve_end = {_ctime(claim.end)}\n"
        f"reserve_duration = {claim.duration}\nResource_List.ncpus = {claim.processors}\n\n"
    )


def _ctime(moment: int) -> str:
    return time.asctime(time.gmtime(moment))
