"""The daemon asked about waits; what it answers is read by the models that it is made of.

These are imported once it has answered, as their making takes time, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from foretime_sidecar.answers.daemon_client import DaemonError, SiteDaemon

if TYPE_CHECKING:
    from pydantic import BaseModel

    from foretime_sidecar.forecast_answer.advice import Advice
    from foretime_sidecar.forecast_answer.forecast import ForecastAnswer

    Model = TypeVar("Model", bound=BaseModel)


def ask_forecast(listen: str, path: str, parameters: Mapping[str, Any]) -> ForecastAnswer:
    """Ask for a forecast; see `SiteDaemon`."""
    answer = SiteDaemon(listen).ask(path, parameters)
    from foretime_sidecar.forecast_answer.forecast import ForecastAnswer

    return _read(ForecastAnswer, answer, listen)


def ask_advice(listen: str, parameters: Mapping[str, Any]) -> Advice:
    """Ask for the same work in other shapes; see `SiteDaemon`."""
    answer = SiteDaemon(listen).ask("/v1/advice", parameters)
    from foretime_sidecar.forecast_answer.advice import Advice

    return _read(Advice, answer, listen)


def _read(model: type[Model], answer: dict[str, Any], listen: str) -> Model:
    from pydantic import ValidationError

    try:
        return model.model_validate(answer)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        place = ".".join(map(str, wrong["loc"]))
        raise DaemonError(
            f"the foretime daemon at {listen} answers otherwise than expected: {place}: "
            f"{wrong['msg']}; is it of the same version as this command?"
        ) from error
