"""The same work in other shapes, each with its forecast."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from foretime_sidecar.forecast_answer.forecast import ForecastAnswer


class Alternative(BaseModel):
    """One other shape of a job."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    change: dict[str, str | int]
    """Parameters of `/v1/forecast` that are others than asked."""
    text: str
    """The change in words, with what is assumed."""
    command: str
    """What submits it so: `sbatch --time=1:00:00`, or `qsub -l walltime=01:00:00`."""
    cost: Literal["more", "same", "less"]
    """Processors x time limit than asked."""
    sooner_s: int | None
    """By how much the likely start is sooner; negative: later."""
    done_sooner_s: int | None
    """By how much the likely end is sooner; negative: later."""
    forecast: ForecastAnswer
    """Of that shape."""


class Advice(BaseModel):
    """A job as asked, and other shapes of it, those first that change least."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    asked: ForecastAnswer
    """Of the job as asked."""
    alternatives: list[Alternative]
    """Other shapes."""
    cheapest: int | None
    """Index of the one that is done sooner and asks for least processor-time; `null`: none is."""
