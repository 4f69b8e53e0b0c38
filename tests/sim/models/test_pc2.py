"""The PC2-like workload against the published statistics (Streit 2002, tables 2, 3 and 5)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.models import pc2
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy

MANY = pc2.generate(1_000_000, seed=3)


def test_it_has_the_published_statistics() -> None:
    assert MANY.machine_processors == 96
    assert MANY.processors.max() == 96
    assert MANY.processors.mean() == pytest.approx(6.34, rel=0.01)
    assert MANY.requested_time.mean() == pytest.approx(11_716, rel=0.02)
    assert (MANY.requested_time.min(), MANY.requested_time.max()) == (1, 1_209_600)
    assert MANY.actual_runtime.mean() == pytest.approx(4_346, rel=0.02)
    assert (MANY.actual_runtime.min(), MANY.actual_runtime.max()) == (1, 604_800)
    assert (MANY.actual_runtime <= MANY.requested_time).all()
    for seconds in (600, 1_800, 7_200):
        assert np.mean(MANY.requested_time == seconds) == pytest.approx(0.52 / 3, abs=0.002)
    # 42.49% of 96 processors over 10,000 gaps of 1,013 s, against 6.48 x 4,442 s a job.
    work = float((MANY.processors * MANY.actual_runtime).mean())
    factor = work / float(MANY.processors.mean() * MANY.actual_runtime.mean())
    assert factor == pytest.approx(0.4249 * 96 * 1_013 / (6.48 * 4_442), rel=0.02)
    assert np.mean(MANY.actual_runtime == MANY.requested_time) == pytest.approx(0.31, abs=0.01)
    assert np.mean(MANY.actual_runtime <= 300) == pytest.approx(0.57, abs=0.01)


def test_the_interarrival_time_is_the_published_weibull() -> None:
    gaps = np.diff(MANY.submit_time)
    assert gaps.mean() == pytest.approx(pc2.INTERARRIVAL.mean_s, rel=0.03)
    for gap in (0, 10, 1_000, 30_000):  # whole seconds, rounded down once
        assert np.mean(gaps <= gap) == pytest.approx(
            float(pc2.INTERARRIVAL.cdf(gap + 0.5)), abs=0.03
        )


def test_a_set_of_the_papers_size_is_like_its_set() -> None:
    """Table 3's own means lie within the sampling error of ten sets of 10,000 jobs."""
    sets = [pc2.generate(seed=seed) for seed in range(1, 11)]
    for published, of_sets in (
        (6.48, [float(s.processors.mean()) for s in sets]),
        (11_516, [float(s.requested_time.mean()) for s in sets]),
        (4_442, [float(s.actual_runtime.mean()) for s in sets]),
        (1_013, [float(np.diff(s.submit_time).mean()) for s in sets]),
    ):
        deviation = float(np.std(of_sets, ddof=1))
        assert abs(published - float(np.mean(of_sets))) < 3 * deviation
    assert all(len(s) == 10_000 for s in sets)


def test_waits_are_near_the_published_ones() -> None:
    """Table 4: 43,124 s where FCFS starts most jobs, 31,493 s where SJF does (medians of ten)."""
    found = []
    for order in (Order.FCFS, Order.SJF):
        response = []
        for seed in range(1, 11):
            workload = pc2.generate(seed=seed)
            schedule = simulate(workload, Policy(order=order, backfill=Backfill.PLANNING))
            turnaround = schedule.start_time - workload.submit_time + workload.actual_runtime
            response.append(np.average(turnaround, weights=workload.processors))
        found.append(float(np.median(response)))
    assert found[0] == pytest.approx(43_124, rel=0.15)
    assert found[1] == pytest.approx(31_493, rel=0.15)


def test_the_same_seed_gives_the_same_jobs_at_any_shrinking_factor() -> None:
    plain, again, shrunk = (pc2.generate(500, seed=2, shrink=x) for x in (1.0, 1.0, 0.4))
    assert np.array_equal(plain.submit_time, again.submit_time)
    assert np.array_equal(plain.requested_time, shrunk.requested_time)
    assert np.array_equal(shrunk.submit_time, np.rint(plain.submit_time * 0.4))
    assert not np.array_equal(plain.submit_time, pc2.generate(500, seed=3).submit_time)
    assert "shrinking factor 0.4" in shrunk.notes[0]


def test_shares_have_the_mean_that_is_asked_for() -> None:
    assert float(pc2.width_shares() @ pc2.WIDTHS) == pytest.approx(6.34)
    assert pc2.width_shares().sum() == pytest.approx(1)
    shares = pc2.shares_of_mean(pc2.WIDTHS, 6.34)
    assert shares.sum() == pytest.approx(1)
    assert float(shares @ pc2.WIDTHS) == pytest.approx(6.34)
    steps = np.diff(np.log(shares)) / np.diff(np.log(pc2.WIDTHS))
    assert steps == pytest.approx(np.full(len(steps), steps[0]))
    assert pc2.request_shares()[1].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"jobs": 0}, "0 jobs"), ({"seed": -1}, "seed -1"), ({"shrink": math.inf}, "factor inf")],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        pc2.generate(**arguments)  # type: ignore[arg-type]  # wrong on purpose
