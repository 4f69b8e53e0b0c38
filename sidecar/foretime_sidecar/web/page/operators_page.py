"""The page at ``/operators``: the answer of ``/v1/operators`` for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse

from foretime_sidecar.forecasts.forecast_reliability import DayScores
from foretime_sidecar.web.api.operator_types import OperatorsAnswer
from foretime_sidecar.web.api.operators import OperatorsDesk
from foretime_sidecar.web.api.verdicts import Verdict
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of
from foretime_sidecar.web.page.page_templates import page_templates, zone_shown
from foretime_sidecar.web.page.record import record_days
from foretime_sidecar.wording.clocks import in_zone, spoken_clock

_WIDTH, _HEIGHT = 300, 100


def add_operators_page(app: FastAPI, desk: OperatorsDesk) -> None:
    """Add the page to the application."""
    templates = page_templates()

    @app.get("/operators", response_class=HTMLResponse, include_in_schema=False)
    def operators(
        caller: Annotated[Caller, Depends(caller_of)], zone: str | None = None
    ) -> HTMLResponse:
        """Show the page; to others than operators only whom it is for."""
        status = 200
        with in_zone(zone):
            shown: dict[str, Any] = {"refused": None, "told": None, **zone_shown()}
            try:
                shown["told"] = _shown(desk.answer(caller))
            except ApiError as error:
                status = error.status
                shown["refused"] = {"what": _capital(error.what), "remedy": _capital(error.remedy)}
        return HTMLResponse(templates.get_template("operators.html").render(shown), status)


def _shown(answer: OperatorsAnswer) -> dict[str, Any]:
    """Lay the answer out."""
    now, days = answer["made_at"], answer["forecast_days"]
    return {
        **answer,
        "class_of": {verdict: verdict.name.lower() for verdict in Verdict},
        "clock": spoken_clock(now, now),
        "since": spoken_clock(answer["started_at"], now),
        "days": record_days(days, now),
        "held": _line(days),
        "estimators": [
            {
                **row,
                "jobs": f"{row['jobs']:,}",
                "accuracy": _figure(row["accuracy"], ".3f"),
                "under_predicted": _figure(row["under_predicted"], ".1%"),
            }
            for row in answer["estimators"]
        ],
    }


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _line(days: Sequence[DayScores]) -> list[tuple[float, float]]:
    """Give places of a line through the shares of bounds that held, of two days at least."""
    if len(days) < 2:
        return []
    first, last = days[0].day, days[-1].day
    return [
        (
            round(_WIDTH * (each.day - first) / (last - first), 1),
            round(_HEIGHT * (1 - each.within_95), 1),
        )
        for each in days
    ]


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
