"""What the daemon answers of what Foretime has brought: to users of their own jobs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Query
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.plain_beside.account import By
from foretime_sidecar.web.api.answer_types import BroughtAnswer, LateStanding
from foretime_sidecar.web.api.described_answers import answers
from foretime_sidecar.web.api.parameters import LATEST
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of

SINCE_DAYS = 28

Asker = Annotated[Caller, Depends(caller_of)]


def add_brought(app: FastAPI, sidecar: Sidecar, clock: Callable[[], float]) -> None:
    """Add the path to the application; it is described in ``docs/api.md``."""

    @app.get("/v1/brought", **answers(BroughtAnswer, 404))
    def brought(
        caller: Asker,
        since: Annotated[
            int | None,
            Query(
                ge=0,
                le=LATEST,
                description="Of jobs that could start since then, epoch seconds; four weeks ago.",
            ),
        ] = None,
        by: Annotated[By, Query(description="What rows are by.")] = "week",
    ) -> BroughtAnswer:
        """Give the hours of waiting that Foretime has saved, or would."""
        beside = sidecar.beside
        if beside is None:
            raise ApiError(
                404,
                "the plain scheduler is not run beside here",
                "beside.enabled",
                "set beside.enabled = true, and start the daemon again",
            )
        user = None if caller.sees_everybody else caller.named()
        now = math.floor(clock())
        if since is None:
            since = max(now - SINCE_DAYS * DAY_S, 0)
        account = beside.account(since, by, user)
        standing = LateStanding(
            **dataclasses.asdict(beside.standing),
            late_jobs=beside.late.count(now),
            behind_s=round(beside.late.behind_s),
            is_behind=beside.late.is_behind,
        )
        return {
            "user": user,
            "since": account.since,
            "by": account.by,
            "brought": account.brought,
            "brought_rows": account.brought_rows,
            "would_bring": account.would_bring,
            "would_bring_rows": account.would_bring_rows,
            "model": account.model,
            "left_out_jobs": account.left_out_jobs,
            "standing": standing,
        }
