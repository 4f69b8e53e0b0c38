"""The workload that a command runs: a log, read and filtered, or one that is generated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import Filters, MissingRequest, Occupied, workload_of_log
from foretime_sim.logs.log_files import LogFormat, read_log
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.machine import Machine
from foretime_sim.models.workload_models import (
    EstimateModel,
    WorkloadModel,
    generate,
    with_estimates,
)
from foretime_sim.workloads.job_log import JobLog
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.wording.durations import parse_duration

LogArgument = Annotated[
    Path, typer.Argument(metavar="LOG", help="SWF, sacct, CSV or PBS accounting log (folder).")
]
LogsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="LOG...", help="SWF, sacct, CSV or PBS accounting logs (folders)."),
]
OptionalLogArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[LOG]", help="SWF, sacct, CSV or PBS accounting log (folder)."),
]
GenerateOption = Annotated[
    WorkloadModel | None,
    typer.Option(help="Generate a workload by this model in place of LOG."),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-n",
        help="How many jobs to generate; the model's own number if not given (docs/workloads.md).",
    ),
]
LoadOption = Annotated[
    float | None,
    typer.Option(
        help="Offered load of what is generated; 0.7 (intrepid-like, pc2: their own) if not given."
    ),
]
EstimatesOption = Annotated[
    EstimateModel | None,
    typer.Option(
        help="Draw all requested times by this model of user estimates (docs/workloads.md)."
    ),
]
LongestEstimateOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="With --estimates: the longest one (18:00:00); the shortest usual limit that will do "
        "if not given.",
    ),
]
LenientOption = Annotated[
    bool, typer.Option("--lenient", help="Leave malformed lines out and count them.")
]
FormatOption = Annotated[
    LogFormat | None,
    typer.Option("--format", help="Kind of log; told by its content if not given."),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        help="sacct without header: its fields. CSV: fact=column:unit,... Or a preset "
        "(xdmod, nrel-eagle).",
    ),
]
TimeZoneOption = Annotated[
    str | None,
    typer.Option(
        help="Site's time zone (Europe/Stockholm), for sacct, CSV and PBS; UTC if not given."
    ),
]
ProcessorsOption = Annotated[
    int | None, typer.Option(help="Size of the machine; the log's own if not given.")
]
MachineOption = Annotated[
    Path | None,
    typer.Option(
        metavar="intrepid|FILE",
        help="Run on what this file describes, not on a flat pool: nodes and slurm_partitions, or "
        "(foretime simulate) a Blue Gene. Jobs that could never run there are left out.",
    ),
]
ProcessorsPerNodeOption = Annotated[
    int | None,
    typer.Option(
        help="On a Blue Gene, how many of the log's processors are a node; told by the log's "
        "header if not given."
    ),
]
MissingRequestOption = Annotated[
    str,
    typer.Option(
        metavar="drop|runtime|TIME",
        help="What jobs without requested time get: dropped, their runtime, or a limit.",
    ),
]
KeepOverrunsOption = Annotated[
    bool, typer.Option(help="Keep runtimes beyond the requested time; jobs are killed at it.")
]


@dataclass(frozen=True, slots=True)
class WorkloadSource:
    """Where a command's workload comes from, as its options say.

    Attributes
    ----------
    log, generate
        The file, or the model to generate by; one of the two.
    jobs, load, seed
        Of what is generated.
    processors
        Size of the machine; the log's own if not given.
    log_format, columns, time_zone, lenient
        How the log is read.
    missing_request, keep_overruns
        How it is filtered.
    machine
        A description of nodes or of a Blue Gene, or the name of one, in place of a flat pool.
    processors_per_node
        On a Blue Gene, how many of the log's processors are a node.
    estimates, longest_estimate
        A model of user estimates to draw all requested times by, and its longest estimate.
    history
        Another log, read by the same options.
    """

    log: Path | None
    generate: WorkloadModel | None
    jobs: int | None
    load: float | None
    seed: int
    processors: int | None
    log_format: LogFormat | None
    columns: str | None
    time_zone: str | None
    lenient: bool
    missing_request: str
    keep_overruns: bool
    machine: Path | None = None
    processors_per_node: int | None = None
    estimates: EstimateModel | None = None
    longest_estimate: str | None = None
    history: Path | None = None

    def __post_init__(self) -> None:
        if self.longest_estimate is not None and self.estimates is None:
            raise InputError("--longest-estimate is for --estimates: give both")
        if self.generate is not None and self.log is None and self.history is None:
            self._refuse_log_options(self.generate)

    def _refuse_log_options(self, model: WorkloadModel) -> None:
        """Refuse what says how a log is read, where none is."""
        for option, given in (
            ("--format", self.log_format is not None),
            ("--columns", self.columns is not None),
            ("--time-zone", self.time_zone is not None),
            ("--lenient", self.lenient),
            ("--missing-request", self.missing_request != "drop"),
        ):
            if given:
                raise InputError(
                    f"{option} says how a log is read, and {model} reads none; leave it out"
                )

    @property
    def longest_estimate_s(self) -> int | None:
        """The longest estimate, seconds."""
        if self.longest_estimate is None:
            return None
        try:
            return parse_duration(self.longest_estimate)
        except InputError as error:
            raise InputError(
                f"--longest-estimate {self.longest_estimate}: use a time like 18:00:00"
            ) from error

    def read(self) -> tuple[Workload, tuple[str, ...]]:
        """Give the workload, and notes on what was done to it.

        Raises
        ------
        InputError
            If the options don't go together, or the log can't be read or used.
        """
        described = None
        if self.machine is not None:
            from foretime_sim.machines.load import read_any_machine  # most runs are on a flat pool

            if self.processors is not None:
                raise InputError("--machine says how large the machine is: leave --processors out")
            described = read_any_machine(self.machine)
        if not isinstance(described, Machine | None):
            return self._read_for_blue_gene(described)
        if self.processors_per_node is not None:
            raise InputError("--processors-per-node is for a Blue Gene: give its --machine, too")
        if described is None:
            return self._read()
        from foretime_sim.workloads.resource_requests import with_machine

        workload, notes = replace(self, processors=described.cpus)._read()
        placed = with_machine(workload, described, leave_out=True)
        return placed, (*notes, *placed.notes[len(workload.notes) :])

    def _read_for_blue_gene(self, machine: BgpMachine) -> tuple[Workload, tuple[str, ...]]:
        """Jobs have the nodes that they were given; models count in nodes."""
        from foretime_sim.workloads.bgp_jobs import processors_per_node, with_bgp_machine

        given = self.processors_per_node
        if given is not None and given < 1:
            raise InputError(f"--processors-per-node {given}: give at least 1")
        if self.log is None:
            per_node = 1 if given is None else given
            source = replace(self, processors=machine.nodes * per_node)
            workload, notes = source._read()
        else:
            job_log = self._job_log(self.log)
            per_node = processors_per_node(job_log, machine) if given is None else given
            source = replace(self, processors=machine.nodes * per_node)
            logged, text = source._workload_of(job_log, occupied="allocated")
            workload = self.with_estimates(logged)
            notes = (text, *workload.notes[len(logged.notes) :])
        placed = with_bgp_machine(workload, machine, processors_per_node=per_node, leave_out=True)
        counted = f"{per_node} of the log's processors are a node of {machine.name}."
        added = placed.notes[len(workload.notes) :]
        return placed, (*notes, *([counted] if per_node > 1 else []), *added)

    def _read(self) -> tuple[Workload, tuple[str, ...]]:
        if (self.log is None) == (self.generate is None):
            raise InputError("give a log, or --generate MODEL, and not both")
        if self.log is not None:
            if self.jobs is not None:
                raise InputError(
                    "--jobs is for --generate; to replay a log's first jobs give --head"
                )
            if self.load is not None:
                raise InputError("--load is for --generate; a log has the load that it has")
            workload, text = self.read_log(self.log)
            drawn = self.with_estimates(workload)
            return drawn, (text, *drawn.notes[len(workload.notes) :])
        workload = generate(
            self.generate or "lublin2003",
            jobs=self.jobs,
            processors=self.processors,
            seed=self.seed,
            load=self.load,
            overruns="keep" if self.keep_overruns else "cut",
            estimates=self.estimates,
            longest_estimate_s=self.longest_estimate_s,
        )
        return workload, workload.notes

    def read_log(self, path: Path) -> tuple[Workload, str]:
        """Read a log as the options say: its workload, and a sentence on what was done to it.

        With a model of estimates no job is left out, or cut, for its requested time; `read` draws.
        """
        return self._workload_of(self._job_log(path))

    def _job_log(self, path: Path) -> JobLog:
        return read_log(
            path,
            lenient=self.lenient,
            format=self.log_format,
            columns=self.columns,
            time_zone=self.time_zone,
        )

    def _workload_of(
        self, job_log: JobLog, occupied: Occupied = "requested"
    ) -> tuple[Workload, str]:
        filters = Filters(
            overruns="keep" if self.keep_overruns else "cut",
            missing_request=parse_missing_request(self.missing_request),
            occupied=occupied,
        )
        if self.estimates is not None:
            filters = filters.without_requests()
        workload, report = workload_of_log(job_log, processors=self.processors, filters=filters)
        return workload, report.text

    def with_estimates(self, workload: Workload) -> Workload:
        """Draw a log's requested times by the model of estimates that the options name, if any."""
        longest_s = self.longest_estimate_s
        if self.estimates is None:
            return workload
        return with_estimates(workload, self.estimates, longest_s=longest_s, seed=self.seed)


def parse_missing_request(word: str) -> MissingRequest:
    """Read the option of that name: ``drop``, ``runtime``, or a time as for ``sbatch``."""
    if word == "drop":
        return "drop"
    if word == "runtime":
        return "runtime"
    try:
        return parse_duration(word)
    except InputError as error:
        raise InputError(
            f"--missing-request {word}: use drop, runtime, or a time like 12:00:00"
        ) from error
