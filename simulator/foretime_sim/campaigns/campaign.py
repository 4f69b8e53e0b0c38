"""What a campaign declares: one TOML file of logs and of what is tried on them.

docs/campaigns.md has every key; `foretime_sim.campaigns.reference_page` writes that part of it.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.registry import ESTIMATORS
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import WEEK_S
from pydantic import BaseModel, ConfigDict, Field

from foretime_sim.campaigns.values import (
    Axis,
    EstimatorName,
    Lines,
    MetricName,
    MissingRequestValue,
    Name,
    Seeds,
    Share,
)
from foretime_sim.logs.log_files import LogFormat
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.models.workload_models import EstimateModel, WorkloadModel
from foretime_sim.policies.policy_table import PolicyTable
from foretime_sim.policies.policy_values import (
    AnyOrderName,
    AverageWait,
    BackfillName,
    CompressionName,
    CorrectionName,
    CorrectionSteps,
    Depth,
    EventOrderName,
    GuardByName,
    InsertionOrderName,
    NotNegative,
    Number,
    PositiveSecondsOrOff,
    RolesName,
    SecondsOrOff,
)
from foretime_sim.policies.unknown_users import UnknownUsersChoice
from foretime_sim.scores.metrics import ScoreSettings
from foretime_sim.sites.site_file import Site

CONDITION_AXES = ("log", "interarrival_factor", "seed")
"""Axes that say what a policy is tried on; the others together are the policy."""
NONE = "none"
"""What the axes ``reservations`` and ``site`` call no reservations, and no site."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class LogSource(_Table):
    """A job log, or a generated workload; one [[logs]] for each."""

    path: str | None = Field(
        default=None,
        description="SWF, sacct or CSV file, plain, gz or xz; from the campaign file's folder on. "
        "`${NAME}` stands for an environment variable.",
    )
    generate: WorkloadModel | None = Field(
        default=None, description="Model that generates the workload, in place of `path`."
    )
    name: Name | None = Field(
        default=None, description="What tables and rules call it; the log's own name if not given."
    )
    processors: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Size of the machine; the log's own if not given, or 256 "
        "(intrepid-like: 40,960; pc2: 96) if generated.",
    )
    jobs: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="How many jobs to generate; the model's own number if not given "
        "(docs/workloads.md).",
    )
    load: Annotated[Number, Field(gt=0, le=10)] | None = Field(
        default=None,
        description="Offered load of what is generated; 0.7 (intrepid-like, pc2: their own) if not "
        "given.",
    )
    seed: Annotated[int, Field(ge=0)] = Field(
        default=1, description="Seed of what is generated (`grid.seeds` vary it as they vary logs)."
    )
    estimates: EstimateModel | None = Field(
        default=None,
        description="Model of user estimates to draw all requested times by, of logs, too.",
    )
    longest_estimate_s: Annotated[int, Field(ge=3_600)] | None = Field(
        default=None,
        description="With `estimates`: the longest one; the shortest usual limit that will do if "
        "not given.",
    )
    format: LogFormat | None = Field(
        default=None, description="Kind of log; told by its content if not given."
    )
    columns: str | None = Field(
        default=None, description="Mapping or preset for sacct and CSV, as for `foretime replay`."
    )
    time_zone: str | None = Field(
        default=None, description="Site's time zone, for sacct and CSV; UTC if not given."
    )
    lenient: bool = Field(default=False, description="Leave malformed lines out.")
    overruns: Literal["cut", "keep"] = Field(
        default="cut", description="What becomes of runtimes beyond the requested time."
    )
    missing_request: MissingRequestValue = Field(
        default="drop",
        description='What jobs without requested time get: "drop", "runtime", or seconds.',
    )
    occupied: Literal["requested", "allocated"] = Field(
        default="requested", description="Which processors a job occupies."
    )
    split: Number | datetime.date | datetime.datetime | None = Field(
        default=None,
        description="Date, or days since the log's start: jobs before are history for the "
        "estimators, the rest is simulated.",
    )
    head: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Simulate the first jobs only."
    )


def _default(key: str) -> tuple[Any, ...]:
    """Give the default of an axis that is a policy's key."""
    return (PolicyTable.model_fields[key].default,)


def _meaning(key: str) -> str | None:
    """Give the meaning of an axis that is a policy's key."""
    return PolicyTable.model_fields[key].description


class Grid(_Table):
    """What is crossed with every log: each key is one value or a list of values.

    `policy = "FILE.toml"` (or a name, such as "planning") takes the keys of a policy file that the
    table does not name itself; so it does in [[include]], [[exclude]] and the baseline, too.
    """

    order: Axis[AnyOrderName] = Field(default=_default("order"), description=_meaning("order"))
    backfill: Axis[BackfillName] = Field(
        default=_default("backfill"), description=_meaning("backfill")
    )
    depth: Axis[Depth] = Field(default=_default("depth"), description=_meaning("depth"))
    compression: Axis[CompressionName] = Field(
        default=_default("compression"), description=_meaning("compression")
    )
    slack_factor: Axis[NotNegative] = Field(
        default=_default("slack_factor"), description=_meaning("slack_factor")
    )
    average_wait_s: Axis[AverageWait] = Field(
        default=_default("average_wait_s"), description=_meaning("average_wait_s")
    )
    insertion_order: Axis[InsertionOrderName] = Field(
        default=_default("insertion_order"), description=_meaning("insertion_order")
    )
    reservations: Axis[Name] = Field(
        default=(NONE,),
        description='Advance reservations: "none", or a CSV file with start (seconds since the '
        "log's start), duration (seconds) and processors, from the campaign file's folder on.",
    )
    site: Axis[Name] = Field(
        default=(NONE,),
        description="A site's file (`foretime site import`), from the campaign file's folder on: "
        "its scheduler, on its nodes, takes the place of order, backfill and all of their "
        'settings. "none": these count.',
    )
    estimator: Axis[EstimatorName] = Field(
        default=("requested",),
        description=f"What t_sched comes from: {', '.join(e.spelling for e in ESTIMATORS)}.",
    )
    accuracy_rule: Axis[Name] = Field(
        default=("production",),
        description="How past accuracy becomes t_sched, for the estimators user, project and "
        "combined: production, tang2010, or an [accuracy.NAME] of the file.",
    )
    learn: Axis[bool] = Field(
        default=(True,), description="Whether jobs are learned as they finish."
    )
    correction: Axis[CorrectionName] = Field(
        default=_default("correction"), description=_meaning("correction")
    )
    correction_steps: Axis[CorrectionSteps] = Field(
        default=_default("correction_steps"), description=_meaning("correction_steps")
    )
    roles: Axis[RolesName] = Field(default=_default("roles"), description=_meaning("roles"))
    guard_s: Axis[SecondsOrOff] = Field(
        default=_default("guard_s"), description=_meaning("guard_s")
    )
    guard_by: Axis[GuardByName] = Field(
        default=_default("guard_by"), description=_meaning("guard_by")
    )
    guard_share: Axis[NotNegative] = Field(
        default=_default("guard_share"), description=_meaning("guard_share")
    )
    ageing_s: Axis[PositiveSecondsOrOff] = Field(
        default=_default("ageing_s"), description=_meaning("ageing_s")
    )
    event_order: Axis[EventOrderName] = Field(
        default=_default("event_order"), description=_meaning("event_order")
    )
    interarrival_factor: Axis[Annotated[Number, Field(gt=0, le=1000)]] = Field(
        default=(1.0,),
        description="Factor on the times between submissions (the shrinking factor of Streit "
        "2002); below 1 the load grows.",
    )
    seeds: Seeds = Field(
        default=(0,),
        description="Number of runs with jittered submissions and shuffled ties, or a list of "
        "seeds. 0 is the log as it is.",
    )


class Scoring(_Table):
    """Which jobs are scored, and by which bounds (docs/outputs.md)."""

    warm_up_s: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Jobs submitted in this first time are not scored; counted before "
        "`interarrival_factor` shrinks it.",
    )
    warm_up_share: Share | None = Field(
        default=None, description="The same as a share of the jobs."
    )
    cool_down_s: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Jobs submitted in this last time are not scored."
    )
    cool_down_share: Share | None = Field(
        default=None, description="The same as a share of the jobs."
    )
    jitter_s: Annotated[int, Field(ge=0)] = Field(
        default=60, description="How far a seed moves submissions, seconds, either way."
    )
    tau_s: Annotated[int, Field(ge=1)] = Field(
        default=10, description="Bound of the bounded slowdown, seconds."
    )
    starved_wait_s: Annotated[int, Field(ge=0)] = Field(
        default=WEEK_S, description="A job starved when it waited longer than this, and"
    )
    starved_wait_over_requested: Annotated[Number, Field(ge=0)] = Field(
        default=10.0, description="longer than this many times its requested time."
    )
    top_share: Annotated[Number, Field(gt=0, le=1)] = Field(
        default=0.001, description="Largest jobs whose part of a mean is told, as a share of all."
    )
    check: bool = Field(
        default=False, description="Check the laws of conservation on every schedule."
    )

    @property
    def settings(self) -> ScoreSettings:
        """Give the bounds in the metrics' own type."""
        return ScoreSettings(
            self.tau_s, self.starved_wait_s, self.starved_wait_over_requested, self.top_share
        )


class Report(_Table):
    """What the report shows."""

    baseline: dict[str, Any] = Field(
        default={},
        description="Policy that gains are counted against, as a table of axes and values; the "
        "first value of each axis that it leaves out.",
    )
    metrics: Axis[MetricName] = Field(
        default=("wait_mean_s", "bounded_slowdown_mean", "wait_p99_s", "utilization_makespan"),
        description="Metrics in tables; the first two are drawn. The data files have all.",
    )
    level: Annotated[Number, Field(gt=0, lt=1)] = Field(
        default=0.95, description="Level of the intervals."
    )


class JobQueue(_Table):
    """How Dask's workers are submitted to Slurm or PBS (`--dask-jobqueue`)."""

    queue: Name | None = Field(default=None, description="Slurm partition or PBS queue.")
    account: Name | None = Field(default=None, description="Account to charge.")
    cores: Annotated[int, Field(ge=1)] = Field(default=1, description="Cores of a worker's job.")
    memory: Name = Field(default="4 GB", description="Memory of a worker's job.")
    walltime: Name = Field(default="04:00:00", description="Time limit of a worker's job.")
    processes: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Worker processes in a job; one for each core if not given."
    )
    interface: Name | None = Field(
        default=None, description="Network interface that workers and scheduler talk over (ib0)."
    )
    local_directory: Name | None = Field(
        default=None, description="Folder for the workers' own files."
    )
    log_directory: Name | None = Field(
        default=None, description="Folder for the jobs' output; must exist."
    )
    prologue: Lines = Field(
        default=(), description="Lines of shell before a worker starts (module load ...)."
    )
    directives: Lines = Field(
        default=(), description='Further options for the job, such as "--qos=long".'
    )


class Declaration(_Table):
    """The file as it is written."""

    name: Name | None = Field(
        default=None, description="Title of the report; the file's name if not given."
    )
    description: str = Field(default="", description="Told in the report.")
    output: str | None = Field(
        default=None,
        description="Folder for the results, from the campaign file's folder on; "
        "<file name>-results if not given.",
    )
    unknown_users: str = Field(
        default="error",
        description="Jobs of users whom the associations of a site do not name, as for `foretime "
        'simulate`: "error", "refuse", or "account:NAME" (docs/site.md).',
    )
    logs: Annotated[list[LogSource], Field(min_length=1)] = Field(description="See [[logs]].")
    grid: Grid = Field(default_factory=Grid, description="See [grid].")
    exclude: list[dict[str, Any]] = Field(
        default=[],
        description="Combinations of the grid to leave out: axes (and `log`), each with a value "
        "or a list; those that fit all of it are left out.",
    )
    include: list[dict[str, Any]] = Field(
        default=[],
        description="Further combinations: a grid of its own, whose other axes (and `log`) have "
        "the values of [grid].",
    )
    accuracy: dict[str, dict[str, Any]] = Field(
        default={}, description="Accuracy rules by name, see [accuracy.NAME]."
    )
    scoring: Scoring = Field(default_factory=Scoring, description="See [scoring].")
    report: Report = Field(default_factory=Report, description="See [report].")
    jobqueue: JobQueue = Field(default_factory=JobQueue, description="See [jobqueue].")


@dataclass(frozen=True)
class Rule:
    """An [[exclude]] or [[include]]: values of axes (and of ``log``), as the file gives them."""

    number: int
    line: int
    values: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Campaign:
    """A campaign, checked.

    Attributes
    ----------
    path
        The file.
    name, output
        As declared, or by the file's name.
    logs
        By name.
    grid, scoring, report, jobqueue
        As declared.
    exclude, include
        Rules in the order of the file.
    accuracy
        Accuracy rules by name, production and tang2010 among them.
    reservations
        Advance reservations by their name on the axis.
    sites
        Sites by their name on the axis.
    unknown_users
        What becomes of the users whom they do not name.
    """

    path: Path
    name: str
    description: str
    output: Path
    logs: Mapping[str, LogSource]
    grid: Grid
    exclude: tuple[Rule, ...]
    include: tuple[Rule, ...]
    accuracy: Mapping[str, AccuracySettings]
    reservations: Mapping[str, tuple[AdvanceReservation, ...]]
    sites: Mapping[str, Site]
    unknown_users: UnknownUsersChoice
    scoring: Scoring
    report: Report
    jobqueue: JobQueue

    @property
    def folder(self) -> Path:
        """Where relative paths, and modules of the user's own, are looked for."""
        return self.path.parent

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """Values of every axis, the logs first and the seeds last."""
        crossed = {name: getattr(self.grid, name) for name in Grid.model_fields if name != "seeds"}
        return {"log": tuple(self.logs), **crossed, "seed": self.grid.seeds}


def expanded(text: str) -> str:
    """Put environment variables, ``${NAME}``, and the home folder, ``~``, into a path.

    Raises
    ------
    InputError
        If a variable is not set, or somebody's home is not known.
    """

    def value_of(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if not value:
            raise InputError(
                f"the environment variable {match[1]} is not set: export {match[1]}=..."
            )
        return value

    path = re.sub(r"\$\{(\w+)\}", value_of, text)
    try:
        return str(Path(path).expanduser())
    except RuntimeError:
        raise InputError(f"there is no home folder {path.split('/')[0]!r}") from None
