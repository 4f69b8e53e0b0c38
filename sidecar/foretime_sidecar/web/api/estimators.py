"""What the daemon answers of its estimators: to operators, and without anybody's name."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.scoreboard.estimator_switches import better
from foretime_sidecar.scoreboard.scoreboard import ShadowScoreboard
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of, operators_only

Asker = Annotated[Caller, Depends(caller_of)]


def add_estimators(app: FastAPI, sidecar: Sidecar) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""

    @app.get("/v1/estimators")
    def estimators(caller: Asker) -> dict[str, Any]:
        """Give the scores of all estimators on the site's jobs."""
        operators_only(caller)
        board = _scoreboard(sidecar).board
        if board is None:
            raise ApiError(
                503,
                "no job has been scored yet",
                "/v1/estimators",
                "ask again in some minutes: the daemon has just begun",
            )
        best = better(board)
        return {
            **dataclasses.asdict(board),
            "more_accurate": None if best is None else best.name,
            "scheme": sidecar.settings.accuracy.scheme,
        }

    @app.get("/v1/estimators/switches")
    def switches(caller: Asker, since: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
        """Give which estimator was in use since when, and which was found to be better."""
        operators_only(caller)
        found = _scoreboard(sidecar).switches.all(since)
        return {"switches": [dataclasses.asdict(switch) for switch in found]}


def _scoreboard(sidecar: Sidecar) -> ShadowScoreboard:
    if sidecar.scoreboard is None:
        raise ApiError(
            404,
            "the estimators do not run in the shadow",
            "estimators.shadow",
            "set estimators.shadow = true, and start the daemon again",
        )
    return sidecar.scoreboard
