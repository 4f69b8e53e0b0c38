"""The generated workload against the model's own moments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.models.lublin2003 import LARGEST_LOG_RUNTIME, Lublin2003, _gamma_below, generate

JOBS = 200_000
MODEL = Lublin2003()


def test_sizes_have_the_published_shares() -> None:
    sizes = MODEL.sizes(JOBS, 128, np.random.default_rng(1))
    serial = float(np.mean(sizes == 1))
    power = float(np.mean((sizes > 1) & (sizes & (sizes - 1) == 0)))
    assert serial == pytest.approx(0.2927, abs=0.005)
    # The rest is uniform in log2 and hits a power of two only by chance, if rarely.
    assert 0.6686 - 0.005 < power < 0.6686 + 0.02
    assert sizes.max() <= 128
    # Of the parallel jobs 12.5% are drawn from log2 sizes 5 to 7; those of 4.5 to 5 round up to 32.
    large = float(np.mean(sizes[sizes > 1] > 32))
    upper = 0.125 * 0.75  # log2 above 5.5 rounds to 64 or 128
    assert large == pytest.approx(upper, abs=0.01)


def test_runtimes_have_the_moments_of_the_hyper_gamma() -> None:
    nodes = 16
    sizes = np.full(JOBS, nodes, dtype=np.int64)
    runtimes = MODEL.runtimes(sizes, np.random.default_rng(2))
    p = -0.003 * nodes + 0.6986
    # Independent: gamma densities on a grid, cut at the largest runtime that the model allows.
    x = np.linspace(1e-6, LARGEST_LOG_RUNTIME, 200_001)
    density = np.zeros_like(x)
    for share, a, b in ((p, 6.57, 0.823), (1 - p, 639.1, 0.0156)):
        gamma = np.exp((a - 1) * np.log(x) - x / b - math.lgamma(a) - a * math.log(b))
        density += share * gamma / gamma.sum()
    density /= density.sum()
    mean = float(density @ x)
    deviation = math.sqrt(float(density @ (x - mean) ** 2))
    logs = np.log(runtimes)
    assert float(logs.mean()) == pytest.approx(mean, rel=0.01)
    assert float(logs.std()) == pytest.approx(deviation, rel=0.02)


def test_larger_jobs_run_longer() -> None:
    rng = np.random.default_rng(3)
    small = MODEL.runtimes(np.full(20_000, 1, dtype=np.int64), rng)
    large = MODEL.runtimes(np.full(20_000, 128, dtype=np.int64), rng)
    assert np.median(large) > np.median(small)


def test_arrivals_follow_the_daily_cycle() -> None:
    cycle = MODEL.daily_cycle()
    assert cycle.mean() == pytest.approx(1)
    arrivals = MODEL.arrivals(300_000, np.random.default_rng(4), span_s=1_000 * 86_400)
    assert arrivals[-1] == pytest.approx(1_000 * 86_400, abs=2)
    found = np.bincount((arrivals % 86_400) // 1_800, minlength=48) / len(arrivals) * 48
    assert np.corrcoef(found, cycle)[0, 1] > 0.98
    assert 24 <= int(np.argmax(cycle)) <= 32  # the peak is in the afternoon


def test_the_daily_cycle_is_the_published_gamma() -> None:
    """The published program's weights: its cdf from half hour i - 1/2 to i + 1/2, i from 11 to 58,
    at place (i - 1) mod 48."""
    x = np.linspace(0, 60, 600_001)
    density = np.exp((6.1271 - 1) * np.log(np.maximum(x, 1e-300)) - x / 5.2740)
    cdf = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    places = range(11, 59)
    weights = np.zeros(48)
    for i in places:
        weights[(i - 1) % 48] = np.interp(i + 0.5, x, cdf) - np.interp(i - 0.5, x, cdf)
    assert MODEL.daily_cycle() == pytest.approx(weights / weights.mean(), rel=1e-6)


def test_arrivals_are_those_of_the_published_program() -> None:
    """It walks from half hour to half hour, and pays each one's points."""
    arrivals = MODEL.arrivals(3_000, np.random.default_rng(9))
    shape = np.full(3_000, 6.0415 * 1.0519)
    scale = np.full(3_000, 0.8531)
    gaps = np.exp(_gamma_below(shape, scale, 13.0, np.random.default_rng(9)))
    cost = MODEL.daily_cycle().tolist()
    half_hours, bucket, points = 0, 0, 0.0
    for gap, arrival in zip((gaps / 1_800).tolist(), arrivals.tolist(), strict=True):
        points += gap
        while points > cost[bucket]:
            points -= cost[bucket]
            bucket = (bucket + 1) % 48
            half_hours += 1
        assert (half_hours + points / cost[bucket]) * 1_800 == pytest.approx(arrival + 0.5, abs=0.6)


def test_default_has_the_load_and_the_people_asked_for() -> None:
    workload = generate()
    work = float(workload.processors @ workload.actual_runtime)
    assert work / (256 * workload.submit_time[-1]) == pytest.approx(0.7, rel=0.001)
    accuracy = workload.actual_runtime / workload.requested_time
    assert 0.15 < accuracy.mean() < 0.5  # as on real logs: Curie 0.19, KTH 0.48
    assert workload.users is not None
    most = np.sort(np.bincount(workload.users.codes))[::-1]
    assert most[0] > 5 * np.median(most)
    # What a user's last job was like tells more of the next than somebody else's did.
    codes = workload.users.codes
    own = [np.flatnonzero(codes == user) for user in range(len(workload.users.names))]
    same = np.concatenate([np.diff(workload.requested_time[jobs]) == 0 for jobs in own])
    others = np.diff(np.random.default_rng(5).permutation(workload.requested_time)) == 0
    assert same.mean() > 2 * others.mean()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"jobs": 0}, "0 jobs"),
        ({"processors": 1}, "1 processors"),
        ({"seed": -1}, "seed -1"),
        ({"load": 0.0}, "load 0"),
        ({"load": float("nan")}, "load nan"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        generate(**arguments)  # type: ignore[arg-type]  # wrong values on purpose
