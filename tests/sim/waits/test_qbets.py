"""QBETS: hand-worked bounds, change points, clusters, and coverage as published."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.binomial_bounds import (
    MOST_EXACT,
    fewest_observations,
    lower_rank,
    upper_rank,
)
from foretime_sim.waits.forecaster import LEVELS, MEDIAN
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.qbets import FEWEST, Qbets
from foretime_sim.waits.rare_runs import lag_one_autocorrelation, rare_run
from foretime_sim.waits.wait_clusters import cell_of, clusters

AT_95 = LEVELS.index(0.95)


def test_ranks_worked_out_by_hand() -> None:
    # P(Bin(10, 1/2) <= 7) = 1 - 56/1024 = 0.945, P(<= 8) = 1 - 11/1024 = 0.989: the 9th smallest.
    assert upper_rank(10, 0.5, 0.95) == 9
    assert lower_rank(10, 0.5, 0.95) == 2
    # 0.95**59 = 0.0485 <= 0.05 < 0.95**58 = 0.0510: from 59 observations on the largest will do.
    assert fewest_observations(0.95, 0.95) == 59
    assert upper_rank(59, 0.95, 0.95) == 59
    assert upper_rank(58, 0.95, 0.95) is None
    assert upper_rank(0, 0.5, 0.95) is None
    assert lower_rank(0, 0.5, 0.95) is None


@pytest.mark.parametrize("count", [1, 4, 5, 20, 93, 300])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.75, 0.95])
def test_ranks_are_the_least_that_the_definition_allows(count: int, level: float) -> None:
    def below(rank: int) -> float:  # P(fewer than `rank` observations are below the quantile)
        return sum(math.comb(count, k) * level**k * (1 - level) ** (count - k) for k in range(rank))

    enough = [rank for rank in range(1, count + 1) if below(rank) >= 0.95]
    assert upper_rank(count, level, 0.95) == (enough[0] if enough else None)


def test_many_observations_are_taken_as_normal() -> None:
    for level in (0.05, 0.5, 0.95):
        exact, normal = (upper_rank(count, level, 0.95) for count in (MOST_EXACT, MOST_EXACT + 1))
        assert exact is not None
        assert normal is not None
        assert exact - 1 <= normal <= exact + 2


def test_impossible_levels_are_refused() -> None:
    with pytest.raises(InputError, match="level is 1"):
        upper_rank(10, 1, 0.95)


def test_rare_runs_against_a_simulation() -> None:
    assert rare_run(0) == 3
    assert rare_run(-20) == 3
    rng = np.random.default_rng(1)
    for hundredths in (30, 60):
        rho, run = hundredths / 100, rare_run(hundredths)
        values = rng.standard_normal(4_000_000)
        chain = np.empty((400, 10_000))  # that many series side by side
        chain[0] = values[:10_000]
        for step in range(1, 400):
            fresh = values[step * 10_000 : (step + 1) * 10_000]
            chain[step] = rho * chain[step - 1] + math.sqrt(1 - rho**2) * fresh
        above = chain > 1.6448536
        shares = []
        for length in (run - 1, run):
            windows = np.lib.stride_tricks.sliding_window_view(above, length, axis=0)
            shares.append(windows.all(axis=-1).mean())
        assert shares[1] <= 1.1 * 0.05**3 < 1.2 * shares[0]


def test_the_autocorrelation_is_of_neighbours() -> None:
    # Mean 2; products of neighbours (-1)(0) + (0)(1) = 0, squares 2. Then 1, 3: (-1)(1) / 2.
    assert lag_one_autocorrelation(np.array([1.0, 2.0, 3.0])) == 0
    assert lag_one_autocorrelation(np.array([1.0, 3.0])) == -0.5
    assert lag_one_autocorrelation(np.array([4.0, 4.0])) == 0


def test_clusters_keep_unlike_waits_apart_and_like_ones_together() -> None:
    waits = {(0, 0): (500, 500 * 60.0), (0, 1): (400, 400 * 63.0), (3, 0): (300, 300 * 20_000.0)}
    assert clusters(waits) == [[(0, 0), (0, 1)], [(3, 0)]]
    # Two waits in a cell are no evidence that it is another kind.
    assert clusters({(0, 0): (500, 500 * 60.0), (1, 0): (2, 2 * 100.0)}) == [[(0, 0), (1, 0)]]
    assert clusters({}) == []


def request(number: int, submit_time: int, processors: int = 1, hours: int = 1) -> JobRequest:
    return JobRequest(str(number), "ann", None, processors, hours * 3_600, submit_time)


def test_a_job_is_in_the_cell_of_its_size_and_time() -> None:
    assert cell_of(request(0, 0, processors=4, hours=1)) == (0, 0)
    assert cell_of(request(0, 0, processors=5, hours=2)) == (1, 1)
    assert cell_of(request(0, 0, processors=65, hours=13)) == (3, 3)


def moment_of(job: JobRequest, now: int) -> Moment:
    empty = np.zeros(0, dtype=np.int64)
    pending = PendingJobs(
        np.array([job.submit_time]), np.array([job.processors]), np.array([job.requested_time])
    )
    snapshot = Snapshot(now, 1_000, RunningJobs(empty, empty, empty), pending)
    return Moment(snapshot, Policy(), [job], np.array([0]))


def run(waits: np.ndarray, every_s: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Give the 95% bound and the median that each job was told; each wait is known by the next."""
    model, bounds, medians = Qbets(), [], []
    for number, wait in enumerate(waits.tolist()):
        job = request(number, number * every_s)
        model.submitted(job)
        told = model.forecast(moment_of(job, job.submit_time))
        bounds.append(told.wait_s[0, AT_95])
        medians.append(told.wait_s[0, MEDIAN])
        model.started(job, job.submit_time + wait)
    return np.array(bounds), np.array(medians)


def test_no_answer_before_59_waits_and_then_the_largest() -> None:
    waits = np.arange(1, FEWEST + 2)
    bounds, medians = run(waits)
    assert np.isnan(bounds[:FEWEST]).all()
    assert bounds[FEWEST] == FEWEST
    assert medians[FEWEST] == upper_rank(FEWEST, 0.5, 0.95)


def test_bounds_hold_as_published_on_stationary_waits() -> None:
    rng = np.random.default_rng(5)
    waits = np.rint(np.exp(6 + 1.5 * rng.standard_normal(4_000))).astype(np.int64)
    bounds, medians = run(waits)
    told = ~np.isnan(bounds)
    assert 0.95 <= np.mean(waits[told] <= bounds[told]) <= 0.97
    assert 0.5 <= np.mean(waits[told] <= medians[told]) <= 0.56


def test_a_change_is_noticed_and_the_past_forgotten() -> None:
    rng = np.random.default_rng(6)
    levels = np.repeat([4.0, 9.0, 4.0, 9.0], 1_500)
    waits = np.rint(np.exp(levels + rng.standard_normal(6_000))).astype(np.int64)
    bounds, _ = run(waits)
    told = ~np.isnan(bounds)
    assert np.mean(waits[told] <= bounds[told]) >= 0.95
    # Right after the first step up, waits are compared with the new level's.
    settled = slice(1_500 + 2 * FEWEST, 3_000)
    assert np.mean(waits[settled] <= bounds[settled]) >= 0.93
    assert np.median(bounds[settled]) > 20 * np.median(bounds[1_000:1_500])


def test_a_wait_as_long_as_its_bound_is_no_miss() -> None:
    model = Qbets()
    for number in range(250):
        job = request(number, number * 1_000)
        model.submitted(job)
        model.started(job, job.submit_time + (500 if number == 0 else 100))
    # From 93 waits on the second longest is the bound, which no wait has passed: none is forgotten.
    assert upper_rank(250, 0.95, 0.95) < 250  # type: ignore[operator]
    job = request(999, 300_000)
    assert model.forecast(moment_of(job, 300_000)).wait_s[0, -1] == 500


def test_what_a_change_leaves_of_a_cluster_is_the_latest_of_all_its_classes() -> None:
    """Two classes take turns, and are one cluster; of late the waits of one were half as long."""
    model = Qbets()
    waits = [50 if number >= 940 and number % 2 == 0 else 100 for number in range(1_000)]
    for number, wait in enumerate([*waits, 10_000, 10_000, 10_000]):
        job = request(number, number * 20_000, processors=1 if number % 2 == 0 else 5)
        model.submitted(job)
        model.started(job, job.submit_time + wait)
    job = request(9_999, 99_000_000)
    told = model.forecast(moment_of(job, job.submit_time)).wait_s[0]
    # Left are 56 of before, half of them of each class, and the three that told of the change.
    left = sorted([*waits[-56:], 10_000, 10_000, 10_000])
    for level in (0.25, 0.3, 0.4):
        rank = lower_rank(59, level, 0.95)
        assert rank is not None
        assert told[LEVELS.index(level)] == left[rank - 1]
    assert told[LEVELS.index(0.25)] == 50


def test_classes_have_bounds_of_their_own() -> None:
    rng = np.random.default_rng(7)
    model = Qbets()
    for number in range(2_000):
        large = number % 2 == 1
        job = request(number, number, processors=128 if large else 1)
        model.submitted(job)
        model.started(job, number + int(rng.exponential(50_000 if large else 50)))
    small, big = (
        model.forecast(moment_of(request(9_999, 5_000, processors=size), 5_000)).wait_s[0]
        for size in (1, 128)
    )
    assert small[AT_95] < 400 < 40_000 < big[AT_95]


def test_what_is_left_of_a_wait() -> None:
    model = Qbets()
    for number in range(1_000):
        job = request(number, number)
        model.submitted(job)
        model.started(job, number + number * 617 % 1_000)  # waits 0 to 999
    job = request(5_000, 5_000)
    first = model.forecast(moment_of(job, 5_000))
    later = model.forecast(moment_of(job, 5_900))
    assert first.starts_now[0] == 1 / 1_000
    # Of 100 waits from 900 to 999 at most 99 s are left; the median's bound is the 59th smallest.
    assert later.wait_s[0, MEDIAN] == upper_rank(100, 0.5, 0.95) - 1  # type: ignore[operator]
    assert later.wait_s[0].max() <= 99
    assert model.forecast(moment_of(job, 50_000)).wait_s[0].max() == 0
