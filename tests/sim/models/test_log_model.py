"""Workloads like a log: sound whatever the log, and alike in what the model holds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.models.log_model import Arrivals, JobTable, LogModel, Runtimes, split_wide
from foretime_sim.models.week_profile import WeekProfile
from foretime_sim.models.weibull import Weibull
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workloads.small_workloads import workloads

DAY_S = 86_400
MONDAY = 1_704_067_200
"""1 January 2024."""


def log_with_days(jobs: int = 20_000) -> Workload:
    """Give submissions that are ten times as many by day (8:00 to 18:00, Monday to Friday)."""
    rng = np.random.default_rng(3)
    rates = np.full(168, 0.1)
    for day in range(5):
        rates[24 * day + 8 : 24 * day + 18] = 1.0
    profile = WeekProfile(rates / rates.mean())
    spent = np.cumsum(Weibull(0.6, 400.0).draw(jobs, rng))
    submit = np.floor(profile.epoch_time(profile.busy_time(MONDAY) + spent) - MONDAY)
    requested = rng.choice([600, 3_600, 7_200], size=jobs)
    return Workload(
        name="days",
        machine_processors=64,
        unix_start_time=MONDAY,
        job_id=np.arange(1, jobs + 1),
        submit_time=submit.astype(np.int64),
        processors=rng.choice([1, 2, 8, 64], size=jobs),
        actual_runtime=np.minimum(rng.integers(1, 9_000, jobs), requested),
        requested_time=requested,
    )


LOG = log_with_days()


@settings(max_examples=60, deadline=None)
@given(
    workloads(16).filter(lambda w: len(w) >= 10 and w.submit_time[-1] > w.submit_time[0]),
    st.integers(1, 80),
    st.integers(0, 9),
    st.sampled_from(["independent", "modulated"]),
    st.sampled_from(["exact", "in-bins"]),
    st.floats(0.1, 2.0),
)
def test_any_log_gives_a_sound_workload(
    log: Workload, jobs: int, seed: int, arrivals: Arrivals, runtimes: Runtimes, shrink: float
) -> None:
    model = LogModel.of(log)

    def generate(shrink: float) -> Workload:
        return model.generate(jobs, seed=seed, arrivals=arrivals, runtimes=runtimes, shrink=shrink)

    made, again, plain = generate(shrink), generate(shrink), generate(1.0)
    assert len(made) == jobs
    for column in ("submit_time", "processors", "actual_runtime", "requested_time"):
        assert np.array_equal(getattr(made, column), getattr(again, column))
        if column != "submit_time":  # a factor changes the submissions only
            assert np.array_equal(getattr(made, column), getattr(plain, column))
    assert made.submit_time[0] == 0
    assert (np.diff(made.submit_time) >= 0).all()
    assert 1 <= made.processors.min() <= made.processors.max() <= log.machine_processors
    assert (made.actual_runtime >= 1).all()
    assert made.machine_processors == log.machine_processors
    if arrivals == "independent":
        assert np.array_equal(made.submit_time, np.rint(plain.submit_time * shrink))
    # Widths and requests are pairs that the log has; runtimes are killed, or not, as there.
    pairs = set(zip(log.processors.tolist(), log.requested_time.tolist(), strict=True))
    assert set(zip(made.processors.tolist(), made.requested_time.tolist(), strict=True)) <= pairs
    if runtimes == "exact":
        assert set(made.actual_runtime.tolist()) <= set(log.actual_runtime.tolist())
    at_limit = {bool(r >= q) for r, q in zip(log.actual_runtime, log.requested_time, strict=True)}
    assert set((made.actual_runtime >= made.requested_time).tolist()) <= at_limit


def test_the_table_is_the_joint_distribution() -> None:
    table = JobTable.of(LOG)
    assert table.probability.sum() == pytest.approx(1)
    rows = np.column_stack((LOG.processors, LOG.requested_time, LOG.actual_runtime)).tolist()
    count: dict[tuple[int, ...], int] = {}
    for row in rows:
        count[tuple(row)] = count.get(tuple(row), 0) + 1
    cells = zip(table.processors, table.requested_time, table.actual_runtime, strict=True)
    found = dict(zip(((int(p), int(q), int(r)) for p, q, r in cells), table.probability,
                     strict=True))  # fmt: skip
    assert found == {cell: jobs / len(LOG) for cell, jobs in count.items()}


def test_means_are_the_logs_within_their_sampling_error() -> None:
    made = LogModel.of(LOG).generate(10_000, seed=1)
    for column in ("processors", "requested_time", "actual_runtime"):
        ours, theirs = getattr(made, column), getattr(LOG, column)
        error = float(theirs.std()) / math.sqrt(10_000)
        assert abs(ours.mean() - theirs.mean()) < 3 * error, column
    work = [float((w.processors * w.actual_runtime).mean()) for w in (made, LOG)]
    assert work[0] == pytest.approx(work[1], rel=0.05)  # they are drawn together
    gaps = [float(np.diff(w.submit_time).mean()) for w in (made, LOG)]
    assert gaps[0] == pytest.approx(gaps[1], rel=0.1)


def counts_of_hours(workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.bincount(workload.submit_time // 3_600).astype(float)


def autocorrelation(workload: Workload, hours: int) -> float:
    counts = counts_of_hours(workload)
    away = counts - counts.mean()
    return float((away[hours:] * away[:-hours]).mean() / away.var())


def test_modulated_submissions_keep_the_week_and_independent_ones_do_not() -> None:
    model = LogModel.of(LOG)
    modulated = WeekProfile.of(model.generate(20_000, seed=2, arrivals="modulated"))
    independent = WeekProfile.of(model.generate(20_000, seed=2))
    theirs = WeekProfile.of(LOG)
    assert np.corrcoef(modulated.rates, theirs.rates)[0, 1] > 0.9
    assert abs(np.corrcoef(independent.rates, theirs.rates)[0, 1]) < 0.3

    def peak_to_trough(profile: WeekProfile) -> float:
        return float(profile.by_hour_of_day.max() / profile.by_hour_of_day.min())

    assert peak_to_trough(modulated) == pytest.approx(peak_to_trough(theirs), rel=0.25)
    assert peak_to_trough(independent) < peak_to_trough(theirs) / 3
    assert modulated.by_day[5:].mean() == pytest.approx(theirs.by_day[5:].mean(), rel=0.25)
    one, other = (
        model.generate(20_000, seed=2, arrivals=arrivals)
        for arrivals in ("modulated", "independent")
    )
    for hours in (1, 24, 168):
        assert autocorrelation(one, hours) == pytest.approx(autocorrelation(LOG, hours), abs=0.1)
        assert autocorrelation(LOG, hours) > 0.35
    assert abs(autocorrelation(other, 24)) < 0.05


@pytest.mark.traces
@pytest.mark.parametrize(
    "name", ["CTC-SP2-1996-3.1-cln", "KTH-SP2-1996-2.1-cln", "SDSC-SP2-1998-4.2-cln"]
)
def test_sets_like_real_logs_agree_with_them(trace: Callable[[str], Path], name: str) -> None:
    """Table 3 beside table 2 of Streit 2002, and what modulated submissions keep besides."""
    log, _ = workload_of_log(read_log(trace(f"{name}.swf.gz")), filters=Filters(overruns="keep"))
    model = LogModel.of(log)
    made = model.generate(10_000, seed=1)
    for column in ("processors", "requested_time", "actual_runtime"):
        ours, theirs = getattr(made, column), getattr(log, column)
        assert abs(ours.mean() - theirs.mean()) < 3 * theirs.std() / math.sqrt(10_000), column
        assert ours.max() <= theirs.max()
    overran = [float(np.mean(w.actual_runtime > w.requested_time)) for w in (made, log)]
    error = math.sqrt(overran[1] / 10_000)
    assert abs(overran[0] - overran[1]) < 3 * error
    gaps = np.diff(made.submit_time)
    error = model.interarrival.deviation_s / math.sqrt(10_000)
    assert abs(gaps.mean() - np.diff(log.submit_time).mean()) < 3 * error
    whole = model.generate(len(log), seed=1, arrivals="modulated")
    profiles = [WeekProfile.of(workload) for workload in (whole, log)]
    assert np.corrcoef(profiles[0].rates, profiles[1].rates)[0, 1] > 0.9
    busiest, quietest = ([f(p.by_hour_of_day) for p in profiles] for f in (np.max, np.min))
    assert busiest[0] == pytest.approx(busiest[1], rel=0.1)
    assert quietest[0] == pytest.approx(quietest[1], rel=0.3)
    plain = model.generate(len(log), seed=1)
    for hours in (1, 24, 168):
        theirs = autocorrelation(log, hours)
        assert autocorrelation(whole, hours) == pytest.approx(theirs, abs=0.15)
        assert hours == 1 or abs(autocorrelation(plain, hours)) < 0.05 < theirs


def test_a_shrinking_factor_leaves_a_modulated_day_a_day() -> None:
    model = LogModel.of(LOG)
    half = model.generate(20_000, seed=2, arrivals="modulated", shrink=0.5)
    whole = model.generate(20_000, seed=2, arrivals="modulated")
    assert half.submit_time[-1] == pytest.approx(whole.submit_time[-1] / 2, abs=7 * DAY_S)
    ours, theirs = (WeekProfile.of(workload).rates for workload in (half, LOG))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.85


def test_the_busy_clock_only_rises_and_has_an_inverse() -> None:
    profile = WeekProfile.of(LOG)
    moments = MONDAY + np.linspace(-3 * DAY_S, 40 * DAY_S, 5_001)
    busy = profile.busy_time(moments)
    assert (np.diff(busy) > 0).all()
    assert np.allclose(profile.epoch_time(busy), moments)
    # A whole week is a week on both clocks; an hour is its rate's.
    week = profile.busy_time([MONDAY, MONDAY + 7 * DAY_S])
    assert week[1] - week[0] == pytest.approx(7 * DAY_S)
    nine = profile.busy_time([MONDAY + 9 * 3_600, MONDAY + 10 * 3_600])
    assert nine[1] - nine[0] == pytest.approx(3_600 * profile.rates[9])


def test_a_profile_counts_whole_hours_of_the_week_as_often_as_they_were_seen() -> None:
    # A job every hour from Monday to the Wednesday of the next week: no hour is busier.
    submit = np.arange(1_800, 9 * DAY_S, 3_600)
    jobs = len(submit)
    steady = dataclasses.replace(
        LOG.take(np.arange(jobs)), submit_time=submit, unix_start_time=MONDAY
    )
    assert WeekProfile.of(steady).rates == pytest.approx(np.ones(168), abs=0.35)
    assert WeekProfile.of(steady).by_day == pytest.approx(np.ones(7), abs=0.02)


def test_published_parameters_can_be_given() -> None:
    model = LogModel.of(LOG, interarrival=Weibull(0.35, 60.0))
    assert model.interarrival == Weibull(0.35, 60.0)
    gaps = np.diff(model.generate(10_000).submit_time)
    assert gaps.mean() == pytest.approx(302, rel=0.15)


@settings(max_examples=60)
@given(workloads(64), st.integers(1, 70))
def test_split_jobs_have_the_same_area(workload: Workload, widest: int) -> None:
    split = split_wide(workload, widest)
    assert split.processors.max() <= widest
    assert split.processors.min() >= 1
    area = [(w.processors * w.actual_runtime).sum() for w in (workload, split)]
    assert area[0] == area[1]
    assert len(split) == sum(-(-int(width) // widest) for width in workload.processors)
    assert (np.diff(split.submit_time) >= 0).all()
    assert len(np.unique(split.job_id)) == len(split)
    if workload.processors.max() <= widest:
        assert np.array_equal(split.processors, workload.processors)


def test_a_wide_job_is_split_into_jobs_of_the_width() -> None:
    ten = dataclasses.replace(
        LOG.take(np.arange(2)), processors=np.array([10, 3]), actual_runtime=np.array([5, 9])
    )
    split = split_wide(ten, 4)
    assert split.processors.tolist() == [4, 3, 3, 3]
    assert split.actual_runtime.tolist() == [5, 5, 5, 9]
    assert split.submit_time.tolist() == [*[int(ten.submit_time[0])] * 3, int(ten.submit_time[1])]
    assert "1 jobs wider than 4 processors are split: 4 jobs of 2" in split.notes[-1]


def test_logs_that_say_too_little_are_refused() -> None:
    with pytest.raises(InputError, match="9 jobs are too few"):
        LogModel.of(LOG.take(np.arange(9)))
    at_once = dataclasses.replace(
        LOG.take(np.arange(30)), submit_time=np.full(30, 7, dtype=np.int64)
    )
    with pytest.raises(InputError, match="same second"):
        LogModel.of(at_once)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"jobs": 0}, "0 jobs"),
        ({"jobs": 5, "seed": -1}, "seed -1"),
        ({"jobs": 5, "shrink": 0.0}, "shrinking factor 0"),
        ({"jobs": 5, "shrink": math.nan}, "shrinking factor nan"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        LogModel.of(LOG).generate(**arguments)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InputError, match="split-wide 0"):
        split_wide(LOG, 0)
