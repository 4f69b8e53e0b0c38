"""What the daemon answers of its estimators: to operators, and without anybody's name."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import Depends, FastAPI

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.scoreboard.estimator_switches import better
from foretime_sidecar.scoreboard.scoreboard import ShadowScoreboard
from foretime_sidecar.web.api.described_answers import answers
from foretime_sidecar.web.api.operator_types import EstimatorsAnswer, EstimatorSwitchesAnswer
from foretime_sidecar.web.api.parameters import Since
from foretime_sidecar.web.auth.callers import ApiError, Caller, caller_of, operators_only

Asker = Annotated[Caller, Depends(caller_of)]


def add_estimators(app: FastAPI, sidecar: Sidecar) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""

    @app.get("/v1/estimators", **answers(EstimatorsAnswer, 404))
    def estimators(caller: Asker) -> EstimatorsAnswer:
        """Give the scores of all estimators on the site's jobs."""
        operators_only(caller)
        board = _scoreboard(sidecar).board
        if board is None:
            raise ApiError(
                503,
                "no job has been scored yet",
                "/v1/estimators",
                "ask again in some minutes: the daemon has just begun",
                {"Retry-After": str(sidecar.pause.seconds)},
            )
        best = better(board)
        parts = {field.name: getattr(board, field.name) for field in dataclasses.fields(board)}
        return EstimatorsAnswer(
            **parts,
            more_accurate=None if best is None else best.name,
            scheme=sidecar.settings.accuracy.scheme,
        )

    @app.get("/v1/estimators/switches", **answers(EstimatorSwitchesAnswer, 404))
    def switches(caller: Asker, since: Since = 0) -> EstimatorSwitchesAnswer:
        """Give which estimator was in use since when, and which was found to be better."""
        operators_only(caller)
        return {"switches": _scoreboard(sidecar).switches.all(since)}


def _scoreboard(sidecar: Sidecar) -> ShadowScoreboard:
    if sidecar.scoreboard is None:
        raise ApiError(
            404,
            "the estimators do not run in the shadow",
            "estimators.shadow",
            "set estimators.shadow = true, and start the daemon again",
        )
    return sidecar.scoreboard
