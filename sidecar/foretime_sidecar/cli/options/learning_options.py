"""Options of a replay that say what is learned, from which jobs, and by which rule."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import typer
from foretime_estimators.accuracy.accuracy import AccuracySettings
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.finished_history import placed_before
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.frame.option_groups import OptionGroup
from foretime_sidecar.cli.options.workload_source import WorkloadSource
from foretime_sidecar.replays.replay import TABLE_SCHEMES, oracle_share
from foretime_sidecar.settings.learned_settings import LearnedSettings
from foretime_sidecar.settings.settings import AccuracySection
from foretime_sidecar.settings.settings_file import read_settings

Rule = Literal["production", "tang2010"]


class Learn(enum.Enum):
    """When finished jobs are learned."""

    CONTINUOUSLY = "continuously"
    HISTORY_ONLY = "history-only"


@dataclass(frozen=True)
class LearningOptions(OptionGroup):
    """What t_sched comes from."""

    panel: ClassVar[str] = "Learning"
    rarely_needed: ClassVar[frozenset[str]] = frozenset(
        {"rule", "percentile", "threshold", "learn"}
    )

    scheme: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEME",
            help="Where t_sched comes from: requested, user, project, combined, learned (with "
            "--estimator), or the true runtimes: actual, blend:a. Default: the scheme of "
            "--settings, or combined.",
        ),
    ] = None
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Estimator for --scheme learned (docs/estimators.md). Default: the estimator of "
            f"--settings, or {LearnedSettings().estimator}.",
        ),
    ] = None
    settings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read the sections [accuracy], [learned], [queue_order] and [beside] from this "
            "settings file.",
        ),
    ] = None
    history: Annotated[
        Path | None,
        typer.Option(help="Learn from the jobs of this log that ended before LOG begins."),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="Learn from the jobs submitted before this date (1997-01-31) or day of the log "
            "(90), and replay the rest.",
        ),
    ] = None
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="How past accuracy becomes t_sched: as at a site, or as in Tang 2010. Default: "
            "production."
        ),
    ] = None
    percentile: Annotated[
        float | None,
        typer.Option(help="Percentile of past accuracy, 0 to 1. Default: that of the rule."),
    ] = None
    threshold: Annotated[
        int | None,
        typer.Option(help="Finished jobs that a history needs. Default: that of the rule."),
    ] = None
    learn: Annotated[
        Learn, typer.Option(help="Learn jobs as they finish, or from the history alone.")
    ] = Learn.CONTINUOUSLY

    @property
    def plans_short(self) -> bool:
        """Whether an option is given that only says how jobs are planned short."""
        return any(
            value is not None for value in (self.scheme, self.rule, self.percentile, self.threshold)
        )

    def accuracy(self) -> AccuracySection:
        """Give the accuracy rule, with what was changed on the command line."""
        if self.settings is not None:
            if self.rule is not None:
                raise InputError("give --rule or --settings, not both: each is a whole rule")
            section = read_settings(self.settings).accuracy
        elif self.rule == "tang2010":
            section = AccuracySection.of_model(AccuracySettings.tang2010())
        else:
            section = AccuracySection()
        model = section.to_model()
        if self.percentile is not None:
            if not 0 < self.percentile <= 1:
                raise InputError(
                    f"--percentile {self.percentile:g}: give a share above 0 and at most 1"
                )
            model = replace(model, percentile=self.percentile)
        if self.threshold is not None:
            if self.threshold < 1:
                raise InputError(f"--threshold {self.threshold}: give at least 1")
            model = replace(model, threshold=self.threshold)
        scheme = section.scheme if self.scheme is None else self.scheme
        if scheme not in TABLE_SCHEMES:
            oracle_share(scheme)
        return AccuracySection.of_model(model).model_copy(update={"scheme": scheme})

    def learned(self, scheme: str) -> LearnedSettings:
        """Give the settings of the scheme ``learned``."""
        if self.settings is None:
            learned = LearnedSettings()
        else:
            learned = read_settings(self.settings).learned
        if self.estimator is None:
            return learned
        if scheme != "learned":
            raise InputError(f"--estimator {self.estimator}: give --scheme learned, too")
        parse_estimator(self.estimator)
        return learned.model_copy(update={"estimator": self.estimator})

    def past(
        self, source: WorkloadSource, workload: Workload, notes: tuple[str, ...]
    ) -> tuple[Workload | None, Workload, tuple[str, ...]]:
        """Give the jobs that are learned first, those that are replayed, and notes on both."""
        past: Workload | None = None
        if self.split is not None:
            if self.history is not None:
                raise InputError("give --history or --split, not both")
            past, workload = workload.split(_split_time(self.split, workload))
            when = self.split if "-" in self.split else f"day {self.split}"
            counted = f"{len(past):,} jobs before {when} are history, {len(workload):,} run."
            notes = (*notes, counted)
        elif self.history is not None:
            past, text = source.read_log(self.history)
            past = placed_before(source.with_estimates(past), workload)
            notes = (*notes, f"history: {text}")
        if self.learn is Learn.HISTORY_ONLY and past is None:
            raise InputError(
                "--learn history-only needs a history: give --history LOG or --split DATE"
            )
        return past, workload, notes


def _split_time(text: str, workload: Workload) -> int:
    """Read ``--split``: a date, or days since the log's start; seconds since its start."""
    try:
        return round(float(text) * 86_400)
    except (ValueError, OverflowError):
        pass
    try:
        date = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"--split {text!r}: give a date such as 1997-01-31, or days since the log's start"
        ) from error
    return workload.seconds_at(date)
