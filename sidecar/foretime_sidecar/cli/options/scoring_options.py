"""Options of the repeats, and of what is scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.scores.metrics import ScoredSpan, ScoreSettings, scored_span
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.frame.option_groups import OptionGroup
from foretime_sidecar.wording.durations import parse_duration

WarmUpOption = Annotated[
    str, typer.Option(metavar="TIME", help="Do not score jobs submitted in this first time.")
]


@dataclass(frozen=True)
class ScoringOptions(OptionGroup):
    """How often a log is run, and what is scored."""

    panel: ClassVar[str] = "Scoring"
    rarely_needed: ClassVar[frozenset[str]] = frozenset({"tau", "check", "classes"})

    warm_up: WarmUpOption = "0"
    repeat: Annotated[
        int,
        typer.Option(
            help="Number of runs, with jittered submissions and shuffled ties; 1 runs the log as "
            "it is."
        ),
    ] = 1
    workers: Annotated[int, typer.Option(help="Number of processes for the runs.")] = 1
    seed: Annotated[int, typer.Option(help="Seed of the generated workload and the runs.")] = 1
    tau: Annotated[int, typer.Option(min=1, help="Bound of the bounded slowdown, seconds.")] = 10
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Check the conservation laws after each run: no start before submission, no "
            "processor used twice or lost, kills only at the limit.",
        ),
    ] = False
    classes: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="Also show this metric by job size and length."),
    ] = None

    def verify(self) -> None:
        """Refuse a metric that is not told by class."""
        if self.classes is None:
            return
        from foretime_sim.scores.job_classes import CLASS_METRICS  # pandas is slow to load

        if self.classes not in CLASS_METRICS:
            raise InputError(f"--classes {self.classes}: take one of {', '.join(CLASS_METRICS)}")

    @property
    def settings(self) -> ScoreSettings:
        """The bounds of the metrics."""
        return ScoreSettings(tau_s=self.tau)

    def span(self, workload: Workload) -> ScoredSpan:
        """Give the jobs that are scored; refuse to have none, before any of them is run."""
        warm_up_s = parse_duration(self.warm_up, "--warm-up", zero=True)
        span = scored_span(workload, warm_up_s=warm_up_s)
        span.select(workload)
        return span


@dataclass(frozen=True)
class ReplayScoringOptions(ScoringOptions):
    """The same, with a week in which the daemon learns."""

    warm_up: WarmUpOption = "7-00:00:00"
