"""Options of a simulation that say what runtimes are planned with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import typer
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.registry import ESTIMATORS

from foretime_sidecar.cli.frame.option_groups import OptionGroup


@dataclass(frozen=True)
class EstimatorOptions(OptionGroup):
    """What runtimes are planned with."""

    panel: ClassVar[str] = "Learning"
    rarely_needed: ClassVar[frozenset[str]] = frozenset({"rule"})

    estimator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Estimator of runtimes (docs/estimators.md): "
            f"{', '.join(entry.spelling for entry in ESTIMATORS)}. Several are separated by "
            "commas. Default: requested.",
        ),
    ] = None
    rule: Annotated[
        Literal["production", "tang2010"],
        typer.Option(
            help="How past accuracy becomes t_sched, for the estimators user, project and combined."
        ),
    ] = "production"

    @property
    def accuracy(self) -> AccuracySettings | None:
        """The accuracy rule; ``None`` for the default."""
        return AccuracySettings.tang2010() if self.rule == "tang2010" else None
