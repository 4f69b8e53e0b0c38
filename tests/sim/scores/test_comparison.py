"""Comparisons: paired, repeated, scored on the same jobs, alone or in processes."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.arrays import BoolArray, Int8Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.models.lublin2003 import generate
from foretime_sim.policies.policy import Policy
from foretime_sim.scores.comparison import (
    PAIRED_METRICS,
    Comparison,
    PairedRun,
    compare,
)
from foretime_sim.scores.gains import relative_gain
from foretime_sim.scores.job_classes import (
    ALL,
    CLASS_METRICS,
    LENGTHS,
    SIZES,
    JobClasses,
    scores_by_class,
)
from foretime_sim.scores.metrics import METRICS, Direction, score, scored_span
from foretime_sim.scores.wait_curve import WAIT_CURVE_SHARES
from foretime_sim.workloads.workload import Workload

WORKLOAD = generate(1500, processors=64, seed=4)


@dataclass(frozen=True)
class Judged:
    start_time: Int64Array
    end_time: Int64Array
    started_by: Int8Array
    outlived: BoolArray
    scheduled_time: Int64Array
    used_up: BoolArray | None = None


def judged(workload: Workload, scheduled_time: Int64Array) -> Judged:
    schedule = simulate(workload, Policy(), scheduled_time)
    ran = schedule.end_time - schedule.start_time
    return Judged(
        schedule.start_time,
        schedule.end_time,
        schedule.started_by,
        ran > scheduled_time,
        scheduled_time,
    )


def clairvoyant(workload: Workload, repeat: int) -> PairedRun:
    """EASY with requested times against EASY with actual ones."""
    actual = np.maximum(1, np.minimum(workload.actual_runtime, workload.requested_time))
    return PairedRun(
        judged(workload, workload.requested_time),
        judged(workload, actual),
        (repeat, len(workload), int(workload.submit_time.sum())),
    )


def nothing_changed(workload: Workload, repeat: int) -> PairedRun:
    schedule = judged(workload, workload.requested_time)
    return PairedRun(schedule, schedule)


def failing(workload: Workload, repeat: int) -> PairedRun:
    raise InputError(f"repeat {repeat} can't run")


@pytest.fixture(scope="module")
def repeated() -> Comparison:
    return compare(WORKLOAD, clairvoyant, repeats=3, seed=7)


def test_a_single_repeat_is_the_log_as_it_is() -> None:
    comparison = compare(WORKLOAD, clairvoyant)
    pair = clairvoyant(WORKLOAD, 0)
    assert comparison.repeats[0].baseline == score(WORKLOAD, pair.baseline)
    assert comparison.repeats[0].adjusted == score(WORKLOAD, pair.adjusted)
    assert comparison.repeats[0].statistics == pair.statistics
    assert comparison.jitter_s == 0


def test_gains_are_paired_means(repeated: Comparison) -> None:
    assert repeated.interval_method == "t"
    wait = repeated["wait_mean_s"]
    gains = [1 - r.adjusted.wait.mean / r.baseline.wait.mean for r in repeated.repeats]
    assert wait.gain == pytest.approx(np.mean(gains))
    assert wait.baseline == pytest.approx(np.mean([r.baseline.wait.mean for r in repeated.repeats]))
    assert wait.interval is not None
    assert wait.interval.low <= np.mean(gains) <= wait.interval.high
    utilization = repeated["utilization_makespan"]
    assert utilization.gain is not None
    assert utilization.ratio is not None
    assert utilization.gain == pytest.approx(utilization.ratio - 1, abs=1e-3)
    assert repeated["jobs"].gain is None
    assert list(repeated.metrics) == list(METRICS)


def test_repeats_differ_but_can_be_had_again(repeated: Comparison) -> None:
    assert len({repeat.statistics for repeat in repeated.repeats}) == 3
    again = compare(WORKLOAD, clairvoyant, repeats=3, seed=7)
    assert [r.adjusted for r in again.repeats] == [r.adjusted for r in repeated.repeats]
    other = compare(WORKLOAD, clairvoyant, repeats=3, seed=8)
    assert [r.adjusted for r in other.repeats] != [r.adjusted for r in repeated.repeats]


def test_processes_give_the_same_and_report_progress(
    repeated: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A spawned process must be able to import what it runs; it can't import a test by its name.
    (tmp_path / "runs_elsewhere.py").write_text(Path(__file__).read_text())
    monkeypatch.syspath_prepend(tmp_path)
    elsewhere = importlib.import_module("runs_elsewhere")
    seen: list[tuple[int, int]] = []
    spread = compare(
        WORKLOAD,
        elsewhere.clairvoyant,
        repeats=3,
        seed=7,
        workers=2,
        progress=lambda done, of: seen.append((done, of)),
    )
    assert spread.metrics == repeated.metrics
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_an_error_in_a_repeat_is_told() -> None:
    with pytest.raises(InputError, match="repeat 0 can't run"):
        compare(WORKLOAD, failing)


def test_nothing_changed_gains_nothing() -> None:
    comparison = compare(WORKLOAD, nothing_changed, repeats=3)
    gains = [m.gain for m in comparison.metrics.values() if m.gain is not None]
    assert gains
    assert set(gains) == {0.0}
    assert {comparison.paired(key) for key in PAIRED_METRICS} == {0.0}
    assert comparison.repeats[0].shortening.shortened_jobs == 0


def test_both_runs_are_scored_on_the_same_jobs() -> None:
    span = scored_span(WORKLOAD, warm_up_share=0.1, cool_down_share=0.1)
    comparison = compare(WORKLOAD, clairvoyant, repeats=3, span=span)
    for repeat in comparison.repeats:
        assert repeat.baseline.jobs == repeat.adjusted.jobs
        assert repeat.baseline.jobs == pytest.approx(0.8 * len(WORKLOAD), rel=0.02)


def test_single_runs_have_intervals_over_weeks_when_there_are_enough() -> None:
    long = generate(4000, processors=64, seed=4)
    weeks = (long.submit_time[-1] - long.submit_time[0]) / 604_800
    assert weeks > 7
    comparison = compare(long, clairvoyant)
    assert comparison.interval_method == "weeks"
    for key in ("wait_mean_s", "wait_p99_s", "bounded_slowdown_weighted_mean"):
        compared = comparison[key]
        assert compared.gain is not None
        assert compared.interval is not None
        assert compared.interval.low <= compared.gain <= compared.interval.high
    assert comparison["wait_max_s"].interval is None
    short = compare(long.take(long.submit_time < long.submit_time[0] + 20 * 86_400), clairvoyant)
    assert short.interval_method == "none"
    assert short["wait_mean_s"].interval is None


def test_classes_add_up(repeated: Comparison) -> None:
    table = scores_by_class(WORKLOAD, clairvoyant(WORKLOAD, 0).baseline)
    assert list(table.columns) == list(CLASS_METRICS)
    jobs = table["jobs"].to_numpy().reshape(5, 5)
    assert (jobs[:4].sum(axis=0) == jobs[4]).all()
    assert (jobs[:, :4].sum(axis=1) == jobs[:, 4]).all()
    assert jobs[4, 4] == len(WORKLOAD)
    whole = score(WORKLOAD, clairvoyant(WORKLOAD, 0).baseline).to_dict()
    everything = table.iloc[-1]
    for key in CLASS_METRICS:
        assert everything[key] == pytest.approx(whole[key])
    compared = repeated.by_class("wait_mean_s")
    assert compared["baseline"].iloc[-1] == pytest.approx(repeated["wait_mean_s"].baseline)
    assert list(compared.index) == [(s, n) for s in (*SIZES, ALL) for n in (*LENGTHS, ALL)]
    with pytest.raises(InputError, match="no metric 'wait' by class"):
        repeated.by_class("wait")


def test_class_bounds_belong_to_the_class_below() -> None:
    classes = JobClasses(size_shares=(0.25, 0.5, 0.75), length_s=(60, 600, 6000))
    jobs = WORKLOAD.take(np.arange(4))
    bounds = Workload(
        name="bounds",
        machine_processors=8,
        unix_start_time=None,
        job_id=jobs.job_id,
        submit_time=jobs.submit_time,
        processors=np.array([2, 3, 6, 7]),
        actual_runtime=jobs.actual_runtime,
        requested_time=np.array([60, 61, 6000, 6001]),
    )
    assert classes.size(bounds).tolist() == [0, 1, 2, 3]
    assert classes.length(bounds).tolist() == [0, 1, 2, 3]
    with pytest.raises(InputError, match="three increasing bounds"):
        JobClasses(length_s=(60, 60, 600))


def test_wait_curves_are_quantiles(repeated: Comparison) -> None:
    for repeat in repeated.repeats:
        curve = dict(zip(WAIT_CURVE_SHARES.tolist(), repeat.baseline_wait_curve, strict=True))
        assert curve[1.0] == repeat.baseline.wait.max
        assert curve[0.5] == repeat.baseline.wait.p50


@pytest.mark.parametrize(
    ("base", "new", "better", "gain"),
    [
        (10, 8, Direction.SMALLER, 0.2),
        (10, 12, Direction.SMALLER, -0.2),
        (0.5, 0.6, Direction.LARGER, 0.2),
        (0, 1, Direction.SMALLER, None),
        (None, 1, Direction.SMALLER, None),
        (10, 8, Direction.NEITHER, None),
    ],
)
def test_a_gain_is_relative_and_better_is_positive(
    base: float | None, new: float, better: Direction, gain: float | None
) -> None:
    assert relative_gain(base, new, better) == (None if gain is None else pytest.approx(gain))


def test_impossible_comparisons_are_refused() -> None:
    with pytest.raises(InputError, match="0 repeats"):
        compare(WORKLOAD, clairvoyant, repeats=0)
    with pytest.raises(InputError, match="jitter of -1 s"):
        compare(WORKLOAD, clairvoyant, jitter_s=-1)
    with pytest.raises(InputError, match="level of intervals is 95"):
        compare(WORKLOAD, clairvoyant, level=95)
