"""Options of a policy beside its queue order and its backfilling: guard, corrections, slack."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.guard import GuardBy
from foretime_sim.policies.policy import Correction, EventOrder
from foretime_sim.policies.policy_values import LEARNED, OFF, slack_weights
from foretime_sim.policies.slack import Overruns

from foretime_sidecar.cli.frame.option_groups import OptionGroup
from foretime_sidecar.wording.durations import parse_duration


@dataclass(frozen=True)
class PolicyDetails(OptionGroup):
    """How a scheduler works in detail."""

    panel: ClassVar[str] = "The scheduler"
    rarely_needed: ClassVar[frozenset[str]] = frozenset(
        {
            "guard_by", "guard_share", "ageing", "average_wait", "slack_weights",
            "correction", "correction_steps", "roles", "event_order", "scheduling_interval",
            "reservations",
        }
    )  # fmt: skip

    guard: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Starvation guard: plan on requested times while the head job is later than this, "
            "or off. Default: off; in a replay 6:00:00 where only the head job is protected.",
        ),
    ] = None
    guard_by: Annotated[
        GuardBy | None,
        typer.Option(
            help="What the guard compares the head job's wait with: its plan on requested times, "
            "or its start in a plain EASY (docs/backfilling.md). Default: requested-plan."
        ),
    ] = None
    guard_share: Annotated[
        float | None,
        typer.Option(
            help="With a guard by a plain EASY: share of a job's wait there that makes the bound "
            "smaller. Default: 0."
        ),
    ] = None
    ageing: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Let candidates of easy-sjbf and easy-wspt age: their time counts as time / (1 + "
            "wait / TIME). Default: off.",
        ),
    ] = None
    correction: Annotated[
        Correction | None,
        typer.Option(
            help="New estimate of a job that outlives t_sched. Default: requested; in a replay "
            "that of --mechanism."
        ),
    ] = None
    correction_steps: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="With correction incremental or doubling: after K corrections a job is planned "
            "with its request. Default: no bound.",
        ),
    ] = None
    roles: Annotated[
        str | None,
        typer.Option(
            metavar="QBD",
            help="Where t_sched is used, three digits of 0 and 1: queue, backfill, drain. "
            "Default: 111; in a replay that of --mechanism.",
        ),
    ] = None
    average_wait: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="For slack: the average wait; learned is the mean of the jobs started so far. "
            "Default: learned.",
        ),
    ] = None
    slack_weights: Annotated[
        str | None,
        typer.Option(
            metavar="U,T,P,F",
            help="For slack: weights of utilization, time, priority and fairness, each from 0 to "
            "1. Default: 1,1,1,1.",
        ),
    ] = None
    event_order: Annotated[
        EventOrder | None,
        typer.Option(
            help="Order of events of the same second. Other simulators do per-event. Default: "
            "per-timestep."
        ),
    ] = None
    scheduling_interval: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time between scheduling passes, e.g. 0:10 for 10 s. Default: a pass after every "
            "event.",
        ),
    ] = None
    reservations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Advance reservations: CSV with start (seconds since the log's start), duration "
            "(seconds) and processors.",
        ),
    ] = None

    @property
    def values(self) -> dict[str, Any]:
        """What is given, by the keys of a policy file."""
        for option, value in (("--guard-by", self.guard_by), ("--guard-share", self.guard_share)):
            if self.guard == OFF and value is not None:
                raise InputError(
                    f"{option} {value}: there is no guard under --guard off; give --guard a time,"
                    f" or leave {option} out"
                )
        given = {
            "guard_s": _seconds("--guard", self.guard, OFF, zero=True),
            "guard_by": self.guard_by,
            "guard_share": self.guard_share,
            "ageing_s": _seconds("--ageing", self.ageing, OFF),
            "average_wait_s": _seconds("--average-wait", self.average_wait, LEARNED, zero=True),
            "slack_weights": self._checked_weights,
            "correction": self.correction,
            "correction_steps": self.correction_steps,
            "roles": self.roles,
            "event_order": self.event_order,
            "scheduling_interval_s": _seconds(
                "--scheduling-interval", self.scheduling_interval, OFF
            ),
        }
        named = (Correction, EventOrder, GuardBy)
        return {
            key: str(value) if isinstance(value, named) else value
            for key, value in given.items()
            if value is not None
        }

    @property
    def _checked_weights(self) -> str | None:
        if self.slack_weights is not None:
            try:
                slack_weights(self.slack_weights)
            except InputError as error:
                raise InputError(f"--slack-weights {self.slack_weights}: {error}") from None
        return self.slack_weights


@dataclass(frozen=True)
class SimulatedPolicyDetails(PolicyDetails):
    """The same, with what no real scheduler does."""

    rarely_needed: ClassVar[frozenset[str]] = PolicyDetails.rarely_needed | {"overruns"}

    overruns: Annotated[
        Overruns | None,
        typer.Option(
            help="For slack: what happens to a job whose requested time is up. Values other than "
            "kill need --keep-overruns. Default: kill."
        ),
    ] = None

    @property
    def values(self) -> dict[str, Any]:
        """What is given, by the keys of a policy file."""
        of_all = super().values
        return of_all if self.overruns is None else of_all | {"overruns": str(self.overruns)}


def _seconds(option: str, given: str | None, word: str, *, zero: bool = False) -> int | str | None:
    """Read a time; ``None`` if none is given, or the word that stands for none."""
    return given if given in (None, word) else parse_duration(given or "", option, zero=zero)
