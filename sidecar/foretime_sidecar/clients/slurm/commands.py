"""The client that runs Slurm's own commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.child_process import Advice, AnyRead, ChildProcesses, as_text
from foretime_sidecar.clients.client import (
    ControllerLoad,
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    Reservation,
    SchedulerConfiguration,
    SiteLimits,
)
from foretime_sidecar.clients.cluster import Cluster
from foretime_sidecar.clients.garbage import uncollected
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.clients.slurm.control_texts import (
    SITE_FACTORS,
    parse_configuration,
    parse_federation,
    parse_load,
    parse_numbers,
    parse_processors,
    parse_reservations,
    parse_site_factors,
)
from foretime_sidecar.clients.slurm.json import ENDINGS, parse_finished
from foretime_sidecar.clients.slurm.nodes import parse_cluster
from foretime_sidecar.clients.slurm.queue_json import KnownJobs, parse_queue, read_in_pieces
from foretime_sidecar.clients.slurm.site import (
    ASSOCIATION_FIELDS,
    QOS_FIELDS,
    parse_limits,
    parse_partitions,
)
from foretime_sidecar.wording.durations import whole_minutes

# Slurm takes no earlier time (uts1000000); it is of 1970.
EARLIEST = 1_000_000
# Of 2100, for "until now": Slurm refuses an end before the start, which may lie ahead of its clock.
LATEST = 4_102_444_800


class CommandRunner(Protocol):
    """Runs one command: a subprocess on a real system, a call of the mock Slurm in a replay."""

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        """Run a command and give what it prints: text, or bytes if ``--json`` is in it.

        A mock may give the JSON decoded. Raises `SchedulerError` if the command fails.
        """


_ADVICE = Advice(
    "install Slurm's client commands",
    "check slurmctld and slurmdbd",
    {
        "establish a configuration source": "there is no slurm.conf on this machine: run this where"
        " Slurm's own commands work, or name the file in SLURM_CONF"
    },
)
_ACCOUNTING = frozenset({"sacct", "sacctmgr"})
"""What slurmdbd answers."""


class SubprocessRunner:
    """Runs Slurm's commands as child processes; the parameters are those of `ChildProcesses`."""

    def __init__(
        self,
        commands_dir: str = "",
        timeout_s: int = 60,
        attempts: int = 4,
        request_time: RequestTime | None = None,
    ) -> None:
        self._children = ChildProcesses(_ADVICE, commands_dir, timeout_s, attempts, request_time)

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        """Run a command; see `CommandRunner`."""
        # What is sent in may have been done in part, so it is not sent twice.
        printed = self._children.output(
            argv, _environment(argv), stdin, once=bool(stdin), accounting=argv[0] in _ACCOUNTING
        )
        return printed if "--json" in argv else as_text(printed)

    def read(self, argv: Sequence[str], read: Callable[[Iterable[bytes]], AnyRead]) -> AnyRead:
        """Run a command that prints much, and give what is read of it; see `ChildProcesses`."""
        return self._children.read(argv, _environment(argv), read)


def _environment(argv: Sequence[str]) -> dict[str, str]:
    environment = {**os.environ, "SLURM_BITSTR_LEN": "0"}
    # sacct --json of Slurm 22.05 can't read its own times in any format but its own.
    environment.pop("SLURM_TIME_FORMAT", None)
    if "--json" not in argv:
        environment["SLURM_TIME_FORMAT"] = "%s"
    return environment


class SlurmCommands:
    """A `SchedulerClient` over squeue, sacct, scontrol and sinfo.

    Parameters
    ----------
    run
        Runs one command.
    overlap_s
        How far before the cursor finished jobs are read again: slurmctld may tell slurmdbd of a
        job's end late, and such a job must not be missed.
    cluster
        The cluster to ask, of those that slurmdbd knows (``-M``); "": the one of slurm.conf.
    """

    def __init__(self, run: CommandRunner, overlap_s: int = 3600, cluster: str = "") -> None:
        self._runner = run
        self._overlap_s = overlap_s
        self._cluster = ["-M", cluster] if cluster else []
        # 26.05 else prints CLUSTER: NAME before the JSON.
        self._without_header = ["--noheader"] if cluster else []
        self._known = KnownJobs()
        self._configuration = ""

    def configuration(self) -> SchedulerConfiguration:
        """Read how Slurm is set up."""
        self._configuration = self._text(["scontrol", "show", "config"])
        return parse_configuration(self._configuration, self.federation())

    def federation(self) -> str:
        """Read the name of the federation that the cluster is in, "" if in none."""
        return parse_federation(self._text(["scontrol", "show", "federation"]))

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        """Read the jobs that ended since the cursor (less the overlap), and the new cursor."""
        since = max(cursor.end_time - self._overlap_s, EARLIEST)
        reply = self._ask(
            [
                "sacct",
                "--json",
                "--allocations",
                "--allusers",
                "--duplicates",
                f"--starttime=uts{since}",
                f"--endtime=uts{LATEST if until is None else until}",
                "--state=" + ",".join(ENDINGS),
            ]
        )
        records = parse_finished(reply)
        latest = records[-1].job.end_time if records else 0
        return records, Cursor(max(cursor.end_time, latest, until or 0))

    def queue(self) -> Queue:
        """Read what runs and what waits, in hidden slurm_partitions, too."""
        command = ["squeue", *self._cluster, "--all", "--json", *self._without_header]
        with uncollected():  # many objects come, and all of them stay
            if isinstance(self._runner, SubprocessRunner):
                told: object = self._runner.read(
                    command, partial(read_in_pieces, known=self._known)
                )
            else:
                told = self._runner(command)
            jobs = parse_queue(told, known=self._known)
        return Queue(parse_processors(self._text(["sinfo", "--noheader", "--format=%C"])), jobs)

    def cluster(self) -> Cluster:
        """Read the nodes and slurm_partitions, by the configuration as it was read last."""
        return parse_cluster(
            self._text(["scontrol", "show", "node", "--all", "--oneliner"]),
            self._text(["scontrol", "show", "partition", "--all", "--oneliner"]),
            self._configuration or self._text(["scontrol", "show", "config"]),
        )

    def reservations(self) -> list[Reservation]:
        """Read the reservations, current and to come."""
        return parse_reservations(self._text(["scontrol", "show", "reservation", "--oneliner"]))

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        """Read MaxTime and nodes of the slurm_partitions, and what accounting limits."""
        partitions = parse_partitions(
            self._text(["scontrol", "show", "partition", "--all", "--oneliner"])
        )
        if not configuration.accounting_enforce & {"limits", "safe", "qos"}:
            return SiteLimits(partitions)
        # Without what is inherited: by an account's limit its users would be limited everywhere.
        associations = ["show", "assoc", f"cluster={configuration.cluster}", "WOPLimits"]
        shown = ["sacctmgr", "--noheader", "--parsable2"]
        return parse_limits(
            partitions,
            self._text([*shown, *associations, "format=" + ",".join(ASSOCIATION_FIELDS)]),
            self._text([*shown, "show", "qos", "format=" + ",".join(QOS_FIELDS)]),
        )

    def update(self, changes: Sequence[JobChange]) -> None:
        """Make changes through one scontrol: over a thousand a second."""
        lines = [line for line in map(_update_line, changes) if line]
        if lines:
            self._ask(["scontrol"], stdin="\n".join([*lines, "quit", ""]))

    def load(self) -> ControllerLoad:
        """Read how busy slurmctld is."""
        return parse_load(self._text(["sdiag"]))

    def site_factors(self) -> Mapping[str, int]:
        """Read the site factor of every pending job that slurmctld weighs."""
        return parse_site_factors(self._text(["sprio", "--noheader", SITE_FACTORS]))

    def qos_priorities(self) -> Mapping[str, int]:
        """Read the priority of each QOS from slurmdbd; there is none without it."""
        command = ["sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name,priority"]
        return parse_numbers(self._text(command), "sacctmgr show qos")

    def _ask(self, argv: Sequence[str], stdin: str | None = None) -> object:
        # sacctmgr is slurmdbd's, and that one serves them all.
        cluster = self._cluster if argv[0] != "sacctmgr" else []
        return self._runner([argv[0], *cluster, *argv[1:]], stdin)

    def _text(self, argv: Sequence[str]) -> str:
        reply = self._ask(argv)
        if not isinstance(reply, str):
            raise SchedulerError(f"{' '.join(argv)} answered {type(reply).__name__}, not text")
        return reply


def _update_line(change: JobChange) -> str | None:
    fields = []
    if change.time_limit is not None:
        fields.append(f"TimeLimit={whole_minutes(change.time_limit)}")
    if change.time_min is not None:
        fields.append(f"TimeMin={whole_minutes(change.time_min)}")
    if change.site_factor is not None:
        fields.append(f"SiteFactor={change.site_factor}")
    return f"update JobId={change.job_id} {' '.join(fields)}" if fields else None
