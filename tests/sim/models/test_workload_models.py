"""What every workload model promises, by its name."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.models.request_model import ROUND_REQUESTS_S
from foretime_sim.models.workload_models import DEFAULTS, WorkloadModel, generate
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

MODELS: tuple[WorkloadModel, ...] = get_args(WorkloadModel)
ANY_MACHINE: tuple[WorkloadModel, ...] = ("lublin2003", "downey1997")


def check(workload: Workload, jobs: int) -> None:
    assert len(workload) == jobs
    assert (np.diff(workload.submit_time) >= 0).all()
    assert workload.submit_time[0] >= 0
    assert workload.processors.min() >= 1
    assert workload.processors.max() <= workload.machine_processors
    assert (workload.actual_runtime >= 1).all()
    assert (workload.actual_runtime <= workload.requested_time).all()
    assert "generated" in workload.name
    assert "generated, not real" in workload.notes[0]


@pytest.mark.parametrize("model", ANY_MACHINE)
@settings(max_examples=25)
@given(st.integers(1, 400), st.integers(2, 1_000), st.integers(0, 5), st.floats(0.1, 2))
def test_any_arguments_give_a_sound_workload(
    model: WorkloadModel, jobs: int, processors: int, seed: int, load: float
) -> None:
    workload, again = (
        generate(model, jobs=jobs, processors=processors, seed=seed, load=load) for _ in range(2)
    )
    check(workload, jobs)
    assert workload.machine_processors == processors
    assert np.isin(workload.requested_time, ROUND_REQUESTS_S).all()
    for column in ("submit_time", "actual_runtime", "requested_time"):
        assert np.array_equal(getattr(workload, column), getattr(again, column))


@pytest.mark.parametrize("model", MODELS)
def test_defaults_are_those_that_are_documented(model: WorkloadModel) -> None:
    workload = generate(model)
    check(workload, DEFAULTS[model].jobs)
    assert workload.machine_processors == DEFAULTS[model].processors


@pytest.mark.parametrize("model", MODELS)
def test_estimates_replace_the_models_own(model: WorkloadModel) -> None:
    own = generate(model, jobs=500, overruns="keep")
    drawn = generate(model, jobs=500, estimates="tsafrir", longest_estimate_s=30 * 86_400)
    check(drawn, 500)
    assert drawn.requested_time.max() == 30 * 86_400
    # Jobs are the model's own, and none is cut at a request that is thrown away.
    assert (np.sort(drawn.actual_runtime) >= np.sort(own.actual_runtime)).all()
    with pytest.raises(InputError, match="name a model of estimates"):
        generate(model, jobs=500, longest_estimate_s=86_400)


@pytest.mark.parametrize("model", sorted(set(MODELS) - set(ANY_MACHINE)))
def test_a_model_of_one_machine_is_for_no_other(model: WorkloadModel) -> None:
    with pytest.raises(InputError, match=f"--processors 7: {model} is for a machine of"):
        generate(model, processors=7)
    assert len(generate(model, jobs=20, processors=DEFAULTS[model].processors)) == 20
