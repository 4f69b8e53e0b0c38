"""The client that asks slurmrestd.

Tested with Slurm 22.05 (API v0.0.38) and 26.05 (v0.0.42 and v0.0.45). What an API can't tell or do
is left to Slurm's commands: slurm.conf before v0.0.45, changes before v0.0.39, whose slurmrestd
can't clear time_min, the federation, and the limits of slurm_partitions, associations and QOS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import (
    ControllerLoad,
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    Reservation,
    SchedulerClient,
    SchedulerConfiguration,
    SiteLimits,
)
from foretime_sidecar.clients.cluster import Cluster
from foretime_sidecar.clients.slurm.commands import EARLIEST, LATEST, SlurmCommands
from foretime_sidecar.clients.slurm.json import parse_finished
from foretime_sidecar.clients.slurm.queue_json import KnownJobs, parse_queue
from foretime_sidecar.clients.slurm.rest_connection import RestCaller
from foretime_sidecar.clients.slurm.rest_json import (
    parse_rest_configuration,
    parse_rest_load,
    parse_rest_processors,
    parse_rest_reservations,
    task_numbers,
)
from foretime_sidecar.wording.durations import whole_minutes

# Newest first: 22.05 has 36 to 38, 26.05 has 42 to 45.
API_VERSIONS = tuple(f"v0.0.{number}" for number in range(49, 35, -1))
_NEWER = 39  # than that of 22.05: v0.0.N


class SlurmRest(SchedulerClient):
    """A `SchedulerClient` over slurmrestd.

    Parameters
    ----------
    caller
        Asks slurmrestd.
    commands
        Slurm's commands, for what slurmrestd can't.
    overlap_s
        How far before the cursor finished jobs are read again; see `SlurmCommands`.
    """

    def __init__(self, caller: RestCaller, commands: SlurmCommands, overlap_s: int = 3600) -> None:
        self._caller = caller
        self._commands = commands
        self._overlap_s = overlap_s
        self._api = ""
        self._known = KnownJobs()

    def api(self) -> str:
        """Give the newest API version that both sides know, found by asking.

        Raises
        ------
        SchedulerError
            If there is none.
        """
        if not self._api:
            for version in API_VERSIONS:
                if self._caller.get(f"slurm/{version}/ping") is not None:
                    self._api = version
                    break
            else:
                raise SchedulerError(
                    f"slurmrestd knows none of the APIs {API_VERSIONS[-1]} to {API_VERSIONS[0]}; "
                    "Foretime needs the one of Slurm 22.05 or newer"
                )
        return self._api

    def configuration(self) -> SchedulerConfiguration:
        """Read how Slurm is set up; by scontrol where slurmrestd does not tell."""
        reply = self._caller.get(f"slurm/{self.api()}/conf")
        if reply is None:
            return self._commands.configuration()
        return parse_rest_configuration(reply, self._commands.federation())

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        """Read the jobs that ended since the cursor (less the overlap), and the new cursor."""
        since = max(cursor.end_time - self._overlap_s, EARLIEST)
        # It gives what was eligible before that end. A job can be eligible, start and end in one
        # second.
        query = {
            "start_time": f"uts{since}",
            "end_time": f"uts{LATEST if until is None else until + 1}",
            "skip_steps": "true",
        }
        if self._is_newer():
            query["show_duplicates"] = "true"
        reply = self._get(f"slurmdb/{self.api()}/jobs", **query)
        # It gives all that ran or waited in that time.
        records = [
            record
            for record in parse_finished(reply, "slurmrestd")
            if record.job.end_time >= since and (until is None or record.job.end_time <= until)
        ]
        latest = records[-1].job.end_time if records else 0
        return records, Cursor(max(cursor.end_time, latest, until or 0))

    def queue(self) -> Queue:
        """Read what runs and what waits."""
        jobs = parse_queue(self._get(f"slurm/{self.api()}/jobs"), "slurmrestd", self._known)
        return Queue(parse_rest_processors(self._get(f"slurm/{self.api()}/nodes")), jobs)

    def cluster(self) -> Cluster | None:
        """Read the nodes and slurm_partitions, by scontrol."""
        return self._commands.cluster()

    def reservations(self) -> list[Reservation]:
        """Read the reservations, current and to come."""
        return parse_rest_reservations(self._get(f"slurm/{self.api()}/reservations"))

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        """Read MaxTime and nodes of the slurm_partitions, and what accounting limits."""
        return self._commands.limits(configuration)

    def update(self, changes: Sequence[JobChange]) -> None:
        """Make changes, one request each; a task of an array by its own number."""
        refused = [
            f"{change.job_id}: slurmrestd sets no site factor"
            for change in changes
            if change.site_factor is not None
        ]
        if not self._is_newer():
            self._commands.update([replace(change, site_factor=None) for change in changes])
            changes = []
        # slurmrestd knows jobs by their numbers alone.
        several = [change for change in changes if "[" in change.job_id]
        if several:
            self._commands.update(several)
            changes = [change for change in changes if "[" not in change.job_id]
        tasks: Mapping[str, str] = {}
        if any("_" in change.job_id for change in changes):
            tasks = task_numbers(self._get(f"slurm/{self.api()}/jobs"))
        for change in changes:
            body = _body(change)
            if not body:
                continue
            number = tasks.get(change.job_id, change.job_id)
            if not re.fullmatch(r"\d+", number, re.ASCII):
                refused.append(f"{change.job_id}: no such job waits or runs")
                continue
            try:
                self._caller.post(f"slurm/{self.api()}/job/{number}", body)
            except SchedulerError as error:
                refused.append(f"{change.job_id}: {error}")
        if refused:
            raise SchedulerError("; ".join(refused))

    def load(self) -> ControllerLoad:
        """Read how busy slurmctld is."""
        return parse_rest_load(self._get(f"slurm/{self.api()}/diag"))

    def site_factors(self) -> Mapping[str, int]:
        """Refuse: slurmrestd shows no site factors, and 26.05's sets them off by 2^31."""
        raise SchedulerError(
            "slurmrestd does not tell site factors: the queue can be put in order with "
            'scheduler.client = "commands" alone'
        )

    def _is_newer(self) -> bool:
        """Say whether the API is newer than 22.05's."""
        return int(self.api().rpartition(".")[2]) >= _NEWER

    def _get(self, path: str, **query: str) -> Mapping[str, Any]:
        reply = self._caller.get(path, **query)
        if reply is None:
            # It may be another slurmrestd than before: negotiate anew the next time.
            api, self._api = self._api, ""
            raise SchedulerError(
                f"slurmrestd has no /{path}: load the openapi plugins of slurm and slurmdbd in a "
                f"version newer than {api} (slurmrestd -s)"
            )
        return reply


def _body(change: JobChange) -> dict[str, int]:
    body = {}
    if change.time_limit is not None:
        body["time_limit"] = whole_minutes(change.time_limit)
    if change.time_min is not None:
        body["time_minimum"] = whole_minutes(change.time_min)
    return body
