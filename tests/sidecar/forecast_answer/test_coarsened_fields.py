"""Each field of a forecast answer says how it is coarsened, and is told so."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from foretime_sidecar.forecast_answer.coarsening import AS_IS, HIDDEN, Telling, Told, coarsened
from foretime_sidecar.forecast_answer.forecast import Calibration, ForecastAnswer, StartBound
from pydantic import BaseModel

from tests.support.forecasts.told_forecasts import told_forecast

NOW = 1_700_000_000
TELLING = Telling(NOW, "jobs are hidden")


def models_in(model: type[BaseModel]) -> set[type[BaseModel]]:
    """A model, and those of which its fields are made."""
    found: set[type[BaseModel]] = {model}
    parts: list[Any] = [field.annotation for field in model.model_fields.values()]
    while parts:
        part = parts.pop()
        parts += getattr(part, "__args__", ())
        if isinstance(part, type) and issubclass(part, BaseModel):
            found |= models_in(part)
    return found


def test_no_part_of_an_answer_does_without_the_check() -> None:
    found = models_in(ForecastAnswer)
    assert StartBound in found
    assert all(issubclass(model, Told) for model in found)


def test_a_field_that_does_not_say_how_it_is_coarsened_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Leaking\.user must say once how it is coarsened"):

        class Leaking(Told):
            jobs: Annotated[int, AS_IS]
            user: str

    with pytest.raises(TypeError, match=r"Undecided\.user must say once"):

        class Undecided(Told):
            user: Annotated[str, AS_IS, HIDDEN]


def test_a_field_of_a_subclass_must_say_it_too() -> None:
    with pytest.raises(TypeError, match=r"Wider\.others must say once"):

        class Wider(ForecastAnswer):
            others: int


def test_what_is_hidden_is_none_and_what_is_none_stays_so() -> None:
    bound = StartBound(
        time=NOW + 5000, wait_s=5000, planned_start=NOW + 4000, noted_at=NOW, kept_share=None,
        judged=None, days=None,
    )  # fmt: skip
    answer = told_forecast(made_at=NOW, start_no_later_than=bound, left_out={"held": 101})
    coarse = coarsened(answer, TELLING)
    assert coarse.start_no_later_than is not None
    assert coarse.start_no_later_than.planned_start is None
    assert coarse.start_no_later_than.time > bound.time
    assert (coarse.likely_wait_s, coarse.wait_s, coarse.quantiles) == (None, None, None)
    assert coarse.reason.text == "waits for 1 processor"
    assert (coarse.running_jobs, coarse.left_out) == (10, {"held": 200})
    assert answer.running_jobs == 1, "the exact answer is left as it is"


def test_a_bound_that_is_past_stays_past() -> None:
    bound = StartBound(
        time=NOW - 900, wait_s=0, planned_start=NOW - 4000, noted_at=NOW - 5000, kept_share=0.5,
        judged=10, days=30,
    )  # fmt: skip
    coarse = coarsened(bound, Telling(NOW + 86_400, ""))
    assert coarse.wait_s == 0
    assert (coarse.kept_share, coarse.judged, coarse.days) == (0.5, 10, 30)


def test_how_forecasts_have_done_is_told_as_it_is() -> None:
    done = Calibration(forecasts_scored=77, within_95=0.9512, days=30)
    assert coarsened(done, TELLING) == done
