"""What the daemon answers to operators who ask whether Foretime helps or hurts."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import Depends, FastAPI
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_metrics import is_set_to_work
from foretime_sidecar.forecasts.forecast_reliability import DayScores
from foretime_sidecar.forecasts.wait_forecasting import RELIABILITY_DAYS
from foretime_sidecar.plain_beside.account import Account
from foretime_sidecar.safety.ab_report import AbReport, ab_report
from foretime_sidecar.safety.hook_record import HookFigures
from foretime_sidecar.safety.reasons import REASONS
from foretime_sidecar.web.api.brought import SINCE_DAYS
from foretime_sidecar.web.api.described_answers import answers
from foretime_sidecar.web.api.operator_types import (
    EstimatorFigures,
    ExplainedJobs,
    Helps,
    OperatorsAnswer,
)
from foretime_sidecar.web.api.state_lines import age_lines, prediction_lines, refusal_lines
from foretime_sidecar.web.api.verdicts import Line, Verdict, worst
from foretime_sidecar.web.api.work_lines import ab_line, brought_line, work_lines
from foretime_sidecar.web.auth.callers import Caller, caller_of, operators_only

_AB_AGAIN_S = 900

Asker = Annotated[Caller, Depends(caller_of)]


class OperatorsDesk:
    """Puts the operators' view together; what the store can't tell is left out.

    Parameters
    ----------
    sidecar, health
        What is told of.
    clock
        Epoch seconds.
    """

    def __init__(self, sidecar: Sidecar, health: Health, clock: Callable[[], float]) -> None:
        self._sidecar = sidecar
        self._health = health
        self._clock = clock
        self._ab_lock = threading.Lock()
        self._ab: tuple[int, AbReport] | None = None

    def answer(self, caller: Caller) -> OperatorsAnswer:
        """Give all of it, as ``/v1/operators`` does.

        Raises
        ------
        ApiError
            403 for whoever is no operator.
        """
        operators_only(caller)
        sidecar, health, now = self._sidecar, self._health, math.floor(self._clock())
        figures = sidecar.oversight.record.figures(now)
        account = self._account(now)
        brought = brought_line(sidecar, account)
        report = None
        if brought is None:
            report = self._ab_report(now)
            brought = ab_line(report)
        groups = (
            ("work", "What it does to jobs", work_lines(sidecar, figures, now)),
            ("brought", "What it has brought in four weeks", [brought]),
            ("prediction", "How well it predicts", prediction_lines(sidecar)),
            ("ages", "How old everything is", age_lines(sidecar, health, figures, now)),
            ("refusals", "What is refused, and what fails", refusal_lines(sidecar, health)),
        )
        lines = [line for _, _, of_group in groups for line in of_group]
        helps, text = self._conclusion(brought)
        return {
            "made_at": now,
            "started_at": health.started_at,
            "helps": helps,
            "text": text,
            "verdict": worst(lines),
            "groups": [
                {"name": name, "title": title, "verdict": worst(of_group), "lines": of_group}
                for name, title, of_group in groups
            ],
            "brought": account,
            "ab": report,
            "forecast_days": self._forecast_days(now),
            "estimators": self._estimators(),
            "decided": _decided(figures),
            "refused_requests": {str(k): v for k, v in sorted(health.refused.items()) if v},
        }

    def _conclusion(self, brought: Line) -> tuple[Helps, str]:
        """Say in a word and in a sentence whether Foretime helps."""
        if self._sidecar.oversight.record.trip is not None:
            return "stopped", "It has hurt, or seemed to, so the circuit breaker has stopped it."
        if not is_set_to_work(self._sidecar.settings):
            return "off", "It neither helps nor hurts: it is set to change nothing."
        said: dict[Verdict, tuple[Helps, str]] = {
            Verdict.WELL: ("yes", "It helps: jobs have waited less than without it."),
            Verdict.ACT: ("no", "It hurts: jobs have waited longer than without it."),
            Verdict.LOOK: ("unclear", "Whether it helps is not clear: no difference is shown."),
        }
        return said.get(brought.verdict, ("early", "It is too early to tell whether it helps."))

    def _account(self, now: int) -> Account | None:
        """Give what was brought in four weeks, as of the latest run if that is known."""
        beside = self._sidecar.beside
        if beside is None:
            return None
        # Of few users nothing is kept, and as few jobs are soon added up.
        with contextlib.suppress(StateError):
            return beside.latest_account or beside.account(max(now - SINCE_DAYS * DAY_S, 0), "week")
        return None

    def _ab_report(self, now: int) -> AbReport | None:
        """Give the report as of a few minutes ago: it goes over all jobs of four weeks."""
        with self._ab_lock, contextlib.suppress(StateError):
            if self._ab is None or not 0 <= now - self._ab[0] < _AB_AGAIN_S:
                with self._sidecar.lock:
                    since = max(now - SINCE_DAYS * DAY_S, 0)
                    self._ab = now, ab_report(self._sidecar.store, since)
            return self._ab[1]
        return None

    def _forecast_days(self, now: int) -> Sequence[DayScores]:
        """Give how forecasts did, day by day."""
        forecasting, done = self._sidecar.forecasting, None
        if forecasting is not None:
            with contextlib.suppress(StateError):
                done = forecasting.reliability_of(now, RELIABILITY_DAYS)
        return () if done is None else done.by_day

    def _estimators(self) -> list[EstimatorFigures]:
        """Give the figures of the estimators that have any."""
        scoreboard = self._sidecar.scoreboard
        board = None if scoreboard is None else scoreboard.board
        return [
            {
                "name": row.name,
                "in_use": row.in_use,
                "jobs": row.jobs,
                "accuracy": row.accuracy,
                "under_predicted": row.under_predicted,
                "set_aside": row.set_aside,
            }
            for row in (() if board is None else board.rows)
            if row.accuracy is not None or row.set_aside
        ]


def _decided(figures: HookFigures | None) -> list[ExplainedJobs]:
    return [
        ExplainedJobs(**dataclasses.asdict(row), why=REASONS.get(row.reason, row.reason))
        for row in (() if figures is None else figures.decided)
    ]


def add_operators(app: FastAPI, desk: OperatorsDesk) -> None:
    """Add the path to the application; it is described in ``docs/api.md``."""

    @app.get("/v1/operators", **answers(OperatorsAnswer))
    def operators(caller: Asker) -> OperatorsAnswer:
        """Say whether Foretime helps or hurts, and what should be looked at."""
        return desk.answer(caller)
