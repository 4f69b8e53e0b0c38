"""Options that all simulated runs share: of the policy, the repeats and the scores."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.families import Compression
from foretime_sim.policies.policy import EventOrder
from foretime_sim.workloads.job_log import count_jobs

from foretime_sidecar.wording.durations import parse_duration

HeadOption = Annotated[int | None, typer.Option(help="Run the first jobs only.")]
CorrectionStepsOption = Annotated[
    int | None,
    typer.Option(
        metavar="K",
        help="With correction incremental or doubling: a job that has been corrected so often is "
        "planned with its request.",
    ),
]
RolesOption = Annotated[
    str | None,
    typer.Option(metavar="QBD", help="Where t_sched is used: queue, backfill, drain (111)."),
]
GuardOption = Annotated[
    str,
    typer.Option(
        metavar="TIME|off",
        help="Plan on t_req while the head job waits longer than this over its t_req plan.",
    ),
]
DepthOption = Annotated[int, typer.Option(help="Reservations held at once by easy and easy-sjbf.")]
CompressionOption = Annotated[
    Compression, typer.Option(help="How conservative backfilling moves reservations forward.")
]
ReservationsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Advance reservations: CSV with start (seconds since the log's start), duration "
        "(seconds) and processors.",
    ),
]
SchedulingIntervalOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Let scheduling passes come so far apart (0:10 for 10 s), not after every event.",
    ),
]
EventOrderOption = Annotated[
    EventOrder, typer.Option(help="Event order; per-event is what other simulators do.")
]
WarmUpOption = Annotated[
    str, typer.Option(metavar="TIME", help="Jobs of this first time are not scored.")
]
RepeatOption = Annotated[
    int, typer.Option(help="Runs with jittered submissions and shuffled ties; 1: as logged.")
]
WorkersOption = Annotated[int, typer.Option(help="Processes for the repeats.")]
TauOption = Annotated[int, typer.Option(min=1, help="Bound of the bounded slowdown, seconds.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the generated workload and the repeats.")]
CheckOption = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Check the conservation laws after each run: no start before submission, no processor "
        "used twice or lost, kills at the limit only.",
    ),
]
ClassesOption = Annotated[
    str | None,
    typer.Option(metavar="METRIC", help="Show this metric by job size and length, too."),
]


def parse_guard(text: str) -> int | None:
    """Read ``--guard``: seconds, ``None`` for ``off``."""
    return None if text == "off" else parse_duration(text, "--guard", zero=True)


def check_head(head: int | None) -> None:
    """Refuse a ``--head`` that leaves no job."""
    if head is not None and head < 1:
        raise InputError(f"--head {head}: give at least 1 job")


def head_note(head: int, jobs: int) -> str:
    """Say how many of the jobs ``--head`` runs."""
    return f"--head {head}: the first {min(head, jobs):,} of {count_jobs(jobs)} run."


def check_classes(metric: str | None) -> None:
    """Refuse a metric that is not told by class."""
    if metric is None:
        return
    from foretime_sim.scores.job_classes import CLASS_METRICS  # pandas is slow to load

    if metric not in CLASS_METRICS:
        raise InputError(f"--classes {metric}: take one of {', '.join(CLASS_METRICS)}")


def peak_memory_bytes() -> int:
    """Largest resident size of this process and of any that ran a repeat."""
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in processes) * 1024
