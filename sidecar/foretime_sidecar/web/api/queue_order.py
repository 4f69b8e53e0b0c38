"""What the daemon answers about the order that it keeps the queue in."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import Depends, FastAPI, Query
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.ordering.order_switches import qualities_of
from foretime_sidecar.ordering.order_words import why_chosen
from foretime_sidecar.store.order_switches import OrderSwitch
from foretime_sidecar.web.api.described_answers import answers
from foretime_sidecar.web.api.forecasts import ForecastDesk
from foretime_sidecar.web.api.operator_types import (
    ExplainedSwitch,
    OrderSwitchesAnswer,
    OrderTry,
    QueueOrderAnswer,
)
from foretime_sidecar.web.api.parameters import Since
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of, operators_only

MOST_SWITCHES = 10_000

Asker = Annotated[Caller, Depends(caller_of)]


def add_queue_order(app: FastAPI, desk: ForecastDesk) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""

    @app.get("/v1/queue-order", **answers(QueueOrderAnswer))
    def queue_order(caller: Asker) -> QueueOrderAnswer:
        """Say which order the queue is kept in, since when, and why."""
        return queue_order_answer(desk, caller)

    @app.get("/v1/queue-order/switches", **answers(OrderSwitchesAnswer, 404))
    def switches(
        caller: Asker,
        since: Since = 0,
        limit: Annotated[
            int, Query(ge=1, le=MOST_SWITCHES, description="The latest so many.")
        ] = 1000,
    ) -> OrderSwitchesAnswer:
        """Give the log of dynP's decisions."""
        operators_only(caller)
        switched = desk.sidecar.switched_order
        if switched is None:
            raise ApiError(
                404,
                "the queue's order is not switched here",
                "queue_order.order",
                'set it to "dynp" in the daemon\'s settings',
            )
        found = switched.log.since(since, limit)
        return {"switches": [_switch(one) for one in found]}


def queue_order_answer(desk: ForecastDesk, caller: Caller) -> QueueOrderAnswer:
    """Answer which order the queue is kept in; figures for those who may know them alone."""
    sidecar = desk.sidecar
    settings, switched = sidecar.settings.queue_order, sidecar.switched_order
    starts = sidecar.scheduler.starts
    answer: QueueOrderAnswer = {
        "set": settings.order,
        "order": settings.order if settings.keeps_order else None,
        "since": None,
        "instead_of": None,
        "why": None,
        "switches_of_a_day": None,
        "refused": sidecar.order_refused or None,
        "going_first": sidecar.going_first,
        "last_try": None,
        "raised": None if starts is None else starts.raised,
        "missed": None if starts is None else starts.missed,
    }
    if switched is None:
        return answer
    present = switched.now_in
    answer["order"] = None
    if present is None or answer["refused"] is not None:
        return answer
    last_day = switched.log.since(desk.now() - DAY_S, MOST_SWITCHES)
    answer["order"] = present.order
    answer["since"] = present.happened_at
    answer["instead_of"] = present.instead_of
    answer["switches_of_a_day"] = sum(one.instead_of is not None for one in last_day)
    if caller.sees_everybody or desk.why_coarse(caller) is None:
        answer["why"] = _why(present)
        answer["last_try"] = _last_try(sidecar)
    return answer


def _why(switch: OrderSwitch) -> str:
    return why_chosen(
        switch.order,
        switch.instead_of,
        switch.quality,
        switch.qualities,
        switch.waiting_jobs,
        switch.case,
    )


def _switch(switch: OrderSwitch) -> ExplainedSwitch:
    return ExplainedSwitch(**dataclasses.asdict(switch), why=_why(switch))


def _last_try(sidecar: Sidecar) -> OrderTry | None:
    switched = sidecar.switched_order
    if switched is None or switched.last is None:
        return None
    last, tuning = switched.last, switched.last.tuning
    return {
        "tried_at": last.tried_at,
        "kept": last.kept or None,
        "took_s": round(last.took_s, 3),
        "waiting_jobs": None if tuning is None else tuning.waiting,
        "case": None if tuning is None else tuning.case,
        "best": None if tuning is None else tuning.best.value,
        "quality": sidecar.settings.queue_order.quality,
        "qualities": None if tuning is None else qualities_of(tuning),
    }
