"""The model of user estimates: its own statistics, and that no job outruns its estimate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.models import lublin2003
from foretime_sim.models.description import describe
from foretime_sim.models.tsafrir2005 import (
    COMMON_S,
    POPULARITY_BY_TIME,
    Tsafrir2005,
    distinct_estimates,
    with_estimates,
)
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.small_workloads import workloads

HOUR_S = 3_600
CTC = Tsafrir2005(18 * HOUR_S)


def test_popular_times_are_the_longest_common_and_round_ones() -> None:
    """The longest, the fourteen common ones below, and round ones from the longest down."""
    found = CTC.popular_times()
    assert found[0] == 18 * HOUR_S
    assert found[1:] == sorted(found[1:])
    below = {seconds for seconds in COMMON_S if seconds < 18 * HOUR_S}
    # Multiples of 10 and 5 h are common or popular already, but 15; then those of 2 h, then 17 h.
    assert set(found[1:]) - below == {h * HOUR_S for h in (15, 16, 14, 17, 13)}
    assert len(found) == 20


def test_popular_times_of_a_large_limit_are_coarse() -> None:
    found = set(Tsafrir2005(160 * HOUR_S).popular_times())
    assert found - set(COMMON_S) == {160 * HOUR_S, *(h * HOUR_S for h in (100, 150, 50, 140))}


def test_an_hour_leaves_no_room_for_twenty() -> None:
    found = Tsafrir2005(HOUR_S).popular_times()
    assert found == [HOUR_S, *range(300, HOUR_S, 300)]
    times, counts = Tsafrir2005(HOUR_S).estimates(100, np.random.default_rng(1))
    assert counts.sum() == 100
    assert times.max() == HOUR_S


def test_the_shares_of_the_popular_fall_by_the_formula() -> None:
    shares = CTC.popular_shares(20)
    assert shares.sum() == pytest.approx(0.89)
    assert (np.diff(shares) < 0).all()
    # a e^(2 b) + c = 14.0491 e^-0.355062 + 0.462513 percent
    assert shares[1] == pytest.approx(0.10313, abs=1e-5)
    given_share = Tsafrir2005(18 * HOUR_S, 0.4).popular_shares(20)
    assert given_share[0] == 0.4
    assert given_share.sum() == pytest.approx(0.89)
    assert given_share[2] / given_share[1] == pytest.approx(shares[2] / shares[1])


@pytest.mark.parametrize(
    ("jobs", "distinct"),
    [(1, 1), (20, 10), (110, 15), (1_000, 35), (10_000, 90), (40_000, 215), (1_000_000, 565)],
)
def test_the_distinct_estimates_are_as_many_as_the_formula_says(jobs: int, distinct: int) -> None:
    assert distinct_estimates(jobs) == distinct


@pytest.mark.parametrize("seed", range(5))
def test_generated_estimates_have_the_models_statistics(seed: int) -> None:
    times, counts = CTC.estimates(10_000, np.random.default_rng(seed))
    assert counts.sum() == 10_000
    assert len(np.unique(times)) == len(times) == 90
    assert (times > 0).all()
    assert times[-1] == 18 * HOUR_S
    assert counts.argmax() == len(times) - 1  # the longest is the most popular
    popular = np.sort(counts)[::-1]
    assert popular[:20].sum() == pytest.approx(8_900, abs=5)
    assert popular[:20] == pytest.approx(CTC.popular_shares(20) * 10_000, abs=1)
    tail = popular[20:] / popular[20]
    ranks = np.arange(21.0, 91.0)
    assert tail == pytest.approx((ranks / 21) ** -2.267, abs=0.02)
    assert set(CTC.popular_times()) <= set(times.tolist())


def test_ranks_go_to_places_that_they_had_in_the_logs() -> None:
    """A rank stands where it did in one of the logs, or later; none is left when its time is up."""
    last = {rank: max(i for i, row in enumerate(POPULARITY_BY_TIME) if rank in row)
            for rank in range(1, 21)}  # fmt: skip
    seen = set()
    for seed in range(20):
        times, counts = CTC.estimates(1_000_000, np.random.default_rng(seed))
        of_time = dict(zip(times.tolist(), counts.tolist(), strict=True))
        in_head = [of_time[seconds] for seconds in CTC.popular_times()]
        order = np.argsort(np.argsort([-count for count in in_head])) + 1
        assert sorted(order.tolist()) == list(range(1, 21))
        assert order[0] == 1
        for place, rank in enumerate(order.tolist()):
            left = order[place:].tolist()
            assert rank in {other for row in POPULARITY_BY_TIME[: place + 1] for other in row}
            if place and (due := [other for other in left if last[other] <= place]):
                assert rank == min(due)
        seen.add(tuple(order.tolist()))
    assert len(seen) == 20


@settings(max_examples=60, deadline=None)
@given(workloads(16), st.integers(0, 9))
def test_no_job_outruns_its_estimate(workload: Workload, seed: int) -> None:
    made, again = with_estimates(workload, seed=seed), with_estimates(workload, seed=seed)
    assert np.array_equal(made.requested_time, again.requested_time)
    assert (made.requested_time >= made.actual_runtime).all()
    for column in ("submit_time", "processors", "actual_runtime"):  # nothing was too long
        assert np.array_equal(getattr(made, column), getattr(workload, column))
    assert made.requested_time.max() == HOUR_S
    assert made.notes[-1].startswith("requested times instead by the model of Tsafrir")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=200), st.integers(0, 3))
def test_all_estimates_are_given_and_runtimes_beyond_the_longest_cut(
    runtimes: list[int], seed: int
) -> None:
    jobs = len(runtimes)
    workload = dataclasses.replace(
        lublin2003.generate(jobs), actual_runtime=np.array(runtimes, dtype=np.int64)
    )
    model = Tsafrir2005(10_000, 0.5)
    try:
        made = with_estimates(workload, model, seed=seed)
    except InputError as error:
        assert "fewer estimates as long" in str(error)  # noqa: PT017 - either is right
        longest = np.sort(np.minimum(runtimes, 10_000))[::-1]
        # Half of the jobs have the longest, so only more long runs than those can be the reason.
        assert longest[max(jobs // 2 - 1, 0)] > 300
        return
    assert (made.actual_runtime == np.minimum(runtimes, 10_000)).all()
    assert (made.requested_time >= made.actual_runtime).all()
    assert made.requested_time.max() == 10_000
    assert ("runtimes cut" in made.notes[-1]) == (max(runtimes) > 10_000)


def test_draws_are_even_among_estimates_that_are_long_enough() -> None:
    """Jobs of a second: every estimate is as likely for the first as for the last of them."""
    workload = dataclasses.replace(
        lublin2003.generate(2_000), actual_runtime=np.ones(2_000, dtype=np.int64)
    )
    made = with_estimates(workload, CTC)
    halves = [made.requested_time[:1_000].mean(), made.requested_time[1_000:].mean()]
    assert halves[0] == pytest.approx(halves[1], rel=0.15)
    assert np.corrcoef(np.arange(2_000), made.requested_time)[0, 1] == pytest.approx(0, abs=0.07)


def test_lublins_jobs_get_estimates_like_those_of_sites() -> None:
    workload = with_estimates(lublin2003.generate(10_000))
    figures = describe(workload)
    assert 60 <= figures.requests <= 90
    assert figures.popular_requests == pytest.approx(0.89, abs=0.01)
    assert figures.accuracy.mean < 0.5
    assert workload.endings is None
    assert workload.users is not None


@pytest.mark.traces
def test_estimates_of_ctc_are_like_its_own(trace: Callable[[str], Path]) -> None:
    """The accuracy histogram, and what the twenty most popular are: without its own requests."""
    log, _ = workload_of_log(read_log(trace("CTC-SP2-1996-3.1-cln.swf.gz")))
    theirs, ours = describe(log), describe(with_estimates(log, CTC))
    assert ours.popular_requests == pytest.approx(theirs.popular_requests, abs=0.01)
    assert ours.requested_time_s.mean == pytest.approx(theirs.requested_time_s.mean, rel=0.05)
    assert ours.accuracy.mean == pytest.approx(theirs.accuracy.mean, abs=0.05)
    edges = [0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.01]
    shares = [
        np.histogram(w.actual_runtime / w.requested_time, bins=edges)[0] / len(w)
        for w in (log, with_estimates(log, CTC))
    ]
    # Jobs killed at their limit (9%) are what the model, in which nobody asks for too little,
    # does not have.
    assert np.abs(shares[0] - shares[1])[:-1].max() < 0.04
    own = Tsafrir2005.of(log)
    assert own.longest_s == 64_800
    assert own.longest_share == pytest.approx(0.24, abs=0.01)


@pytest.mark.parametrize(
    ("longest_s", "share", "says"),
    [(3_599, None, "at least an hour"), (7_200, 0.0, "longest_share"), (7_200, 0.9, "0.89")],
)
def test_bad_parameters_are_refused(longest_s: int, share: float | None, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Tsafrir2005(longest_s, share)


def test_too_many_long_jobs_are_refused() -> None:
    def long_ones(count: int) -> Workload:
        runtimes = np.where(np.arange(100) < count, 3 * HOUR_S, 60).astype(np.int64)
        return dataclasses.replace(lublin2003.generate(100), actual_runtime=runtimes)

    # 100 jobs have no rare estimates, so 0.217 / 0.89 have the longest; no other is long enough.
    strict = Tsafrir2005(3 * HOUR_S, float(CTC.popular_shares(20)[0]))
    with pytest.raises(InputError, match="25 jobs run for 10,800 s or more, and the model has few"):
        with_estimates(long_ones(40), strict)
    # Unless a share is given, the first is taken under which all get an estimate.
    made = with_estimates(long_ones(40), Tsafrir2005(3 * HOUR_S))
    assert made.requested_time.max() == 3 * HOUR_S
    assert np.mean(made.requested_time == 3 * HOUR_S) == pytest.approx(0.4 / 0.89, abs=0.01)
    assert "at most 10,800 s (40% of jobs)" in made.notes[-1]
    # Without a limit, first longer ones are tried, then larger shares; there may be none.
    assert with_estimates(long_ones(40)).requested_time.max() > 4 * HOUR_S
    assert with_estimates(long_ones(20)).requested_time.max() == 4 * HOUR_S
    made = with_estimates(long_ones(80))
    assert made.requested_time.max() == 4 * HOUR_S
    assert "(70% of jobs)" in made.notes[-1]  # of the head; 0.7 / 0.89 of all, and some have 3 h
    with pytest.raises(InputError, match="with a longest one of 14,400 s"):
        with_estimates(long_ones(100))
    with pytest.raises(InputError, match="seed -1"):
        with_estimates(long_ones(20), seed=-1)
