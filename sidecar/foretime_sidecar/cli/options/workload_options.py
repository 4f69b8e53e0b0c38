"""Options that say which jobs run, and on which machine: a log, or a generated workload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.log_files import LogFormat
from foretime_sim.models.workload_models import EstimateModel, WorkloadModel

from foretime_sidecar.cli.frame.option_groups import OptionGroup

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
    typer.Option(help="Generate a workload with this model instead of reading LOG."),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-n",
        help="Number of jobs to generate. Default: the model's own (docs/workloads.md).",
    ),
]
LoadOption = Annotated[
    float | None,
    typer.Option(
        help="Offered load of the generated workload. Default: 0.7; intrepid-like and pc2 have "
        "their own."
    ),
]
EstimatesOption = Annotated[
    EstimateModel | None,
    typer.Option(
        help="Draw all requested times with this model of user estimates (docs/workloads.md)."
    ),
]
LongestEstimateOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Largest request that --estimates may draw, e.g. 18:00:00. Default: the smallest "
        "common limit that covers every job.",
    ),
]
LenientOption = Annotated[
    bool, typer.Option("--lenient", help="Skip malformed lines and count them.")
]
FormatOption = Annotated[
    LogFormat | None,
    typer.Option("--format", help="Format of the log. Default: detected from its content."),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        help="For sacct without header: its fields. For CSV: fact=column:unit,... or a preset "
        "(xdmod, nrel-eagle).",
    ),
]
TimeZoneOption = Annotated[
    str | None,
    typer.Option(
        help="Time zone of the site (Europe/Stockholm), for sacct, CSV and PBS. Default: UTC."
    ),
]
ProcessorsOption = Annotated[
    int | None, typer.Option(help="Size of the machine. Default: as the log says.")
]
MachineOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Run on the machine in this file instead of a flat pool: nodes and "
        "partitions, or (simulate) a Blue Gene; intrepid is built in. Jobs that fit nowhere "
        "are left out.",
    ),
]
ProcessorsPerNodeOption = Annotated[
    int | None,
    typer.Option(
        help="On a Blue Gene: processors of the log in a node. Default: as the log's header says."
    ),
]
MissingRequestOption = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="What to do with jobs without a requested time: drop them, give them their runtime, "
        "or a limit such as 12:00:00. One of drop, runtime, TIME.",
    ),
]
KeepOverrunsOption = Annotated[
    bool,
    typer.Option(
        help="Keep runtimes beyond the requested time. The jobs are killed at the requested time."
    ),
]
HeadOption = Annotated[int | None, typer.Option(help="Run only the first N jobs.")]


@dataclass(frozen=True)
class WorkloadOptions(OptionGroup):
    """Which jobs run."""

    panel: ClassVar[str] = "The log"
    rarely_needed: ClassVar[frozenset[str]] = frozenset(
        {
            "machine", "log_format", "jobs", "load", "columns", "time_zone", "lenient",
            "missing_request", "estimates", "longest_estimate", "keep_overruns",
        }
    )  # fmt: skip

    log: OptionalLogArgument = None
    generate: GenerateOption = None
    head: HeadOption = None
    processors: ProcessorsOption = None
    machine: MachineOption = None
    log_format: FormatOption = None
    jobs: JobsOption = None
    load: LoadOption = None
    columns: ColumnsOption = None
    time_zone: TimeZoneOption = None
    lenient: LenientOption = False
    missing_request: MissingRequestOption = "drop"
    estimates: EstimatesOption = None
    longest_estimate: LongestEstimateOption = None
    keep_overruns: KeepOverrunsOption = False

    @property
    def inputs(self) -> dict[str, Path | None]:
        """The files that are read, by what messages call them."""
        return {"the log": self.log, "--machine": self.machine}

    @property
    def described(self) -> dict[str, str]:
        """What a report says of them beside the workload's own notes."""
        return {} if self.machine is None else {"machine": str(self.machine)}


@dataclass(frozen=True)
class AnyMachineOptions(WorkloadOptions):
    """Which jobs run, on a Blue Gene too."""

    rarely_needed: ClassVar[frozenset[str]] = WorkloadOptions.rarely_needed | {
        "processors_per_node"
    }

    processors_per_node: ProcessorsPerNodeOption = None


def check_head(head: int | None) -> None:
    """Refuse a ``--head`` that leaves no job."""
    if head is not None and head < 1:
        raise InputError(f"--head {head}: give at least 1 job")
