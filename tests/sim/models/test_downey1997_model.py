"""Downey's workload model against its own distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.distributions.uniform_log import fit_uniform_log
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.models.downey1997 import Downey1997, generate
from foretime_sim.models.speedup import Speedup, speedups
from hypothesis import given, settings
from hypothesis import strategies as st

JOBS = 100_000


def test_parallelism_is_uniform_in_the_logarithm() -> None:
    sizes, _ = Downey1997().jobs(JOBS, 400, np.random.default_rng(1))
    assert (sizes.min(), sizes.max()) == (1, 400)
    for processors in (2, 10, 50, 200):
        share = math.log(processors + 0.5) / math.log(400)
        assert np.mean(sizes <= processors) == pytest.approx(share, abs=0.005)


def test_work_is_uniform_in_the_logarithm_where_speedup_is_linear() -> None:
    model = Downey1997(least_work_s=1_000.0, most_work_s=1e8, most_variation=0.0)
    sizes, runtimes = model.jobs(JOBS, 8, np.random.default_rng(2))
    fit = fit_uniform_log(sizes * runtimes)
    assert fit is not None
    assert fit.t_min == pytest.approx(1_000, rel=0.1)
    assert fit.t_max == pytest.approx(1e8, rel=0.1)
    # Work does not depend on parallelism, so wider jobs are shorter.
    logs = np.log(runtimes)
    assert np.corrcoef(logs, np.log(sizes))[0, 1] == pytest.approx(
        -np.log(sizes).std() / logs.std(), abs=0.02
    )


def test_variation_costs_speed() -> None:
    work = {"least_work_s": 1e6, "most_work_s": 1e8}
    model = Downey1997(most_variation=0.0, **work)
    sizes, even = model.jobs(JOBS, 256, np.random.default_rng(3))
    _, varied = Downey1997(most_variation=2.0, **work).jobs(JOBS, 256, np.random.default_rng(3))
    assert (varied >= even).all()
    # A large program on A processors takes 1 + sigma/2 as long up to sigma = 1, then
    # 2 - 1/(sigma + 1): on average over 0 to 2, (1.25 + 2 - ln 1.5) / 2.
    longer = (varied / even)[sizes > 64]
    assert longer.mean() == pytest.approx((3.25 - math.log(1.5)) / 2, abs=0.01)


@settings(max_examples=50)
@given(st.floats(1, 300), st.floats(0, 3), st.integers(1, 600))
def test_speedups_of_many_are_those_of_each(a: float, sigma: float, n: int) -> None:
    arrays = speedups(np.array([a, 7.0]), np.array([sigma, 0.5]), np.array([n, 3]))
    assert arrays.tolist() == [float(Speedup(a, sigma)(n)), float(Speedup(7.0, 0.5)(3))]
    assert 1 - 1e-9 <= arrays[0] <= min(a, n) + 1e-9


def test_jobs_come_by_day() -> None:
    arrivals = Downey1997().arrivals(20_000, np.random.default_rng(4), span_s=200 * 86_400)
    hours = np.bincount(arrivals // 3_600 % 24, minlength=24)
    assert hours[:8].sum() + hours[20:].sum() == 0
    assert hours[8:20] == pytest.approx(np.full(12, 20_000 / 12), rel=0.1)
    assert arrivals[-1] == pytest.approx(200 * 86_400, abs=86_400 / 2 + 1)
    by_night = Downey1997(night_rate=1.0).arrivals(20_000, np.random.default_rng(4))
    assert np.diff(by_night).mean() == pytest.approx(600, rel=0.03)
    assert np.diff(by_night).std() == pytest.approx(600, rel=0.05)  # Poisson


def test_the_load_asked_for() -> None:
    workload = generate(20_000, load=0.6)
    work = float(workload.processors @ workload.actual_runtime)
    assert work / (256 * workload.submit_time[-1]) == pytest.approx(0.6, rel=0.01)


@pytest.mark.traces
def test_the_defaults_are_those_of_the_paragon(trace: Callable[[str], Path]) -> None:
    log = read_log(trace("SDSC-Par-1996-3.1-cln.swf.gz"))
    workload, _ = workload_of_log(log, filters=Filters(missing_request="runtime"))
    fitted = Downey1997.of(workload)
    assert fitted.least_work_s == pytest.approx(Downey1997().least_work_s, rel=0.01)
    assert fitted.most_work_s == pytest.approx(Downey1997().most_work_s, rel=0.001)
    # Its cdf of processors ends at 63 of 400; the model lets it end at the machine's size.
    assert fitted.most_parallelism == pytest.approx(63.3, abs=0.1)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"least_work_s": 0.0}, "work from 0"),
        ({"most_parallelism": 0.5}, "most_parallelism"),
        ({"most_variation": -1.0}, "most_variation"),
        ({"night_rate": 1.5}, "night_rate"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Downey1997(**parameters)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"jobs": 0}, "0 jobs"), ({"processors": 1}, "1 processors"), ({"load": 0.0}, "load 0")],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        generate(**arguments)  # type: ignore[arg-type]  # wrong on purpose
