"""Calibration of forecasts: its scale, censored quantiles, coverage under drift and delay."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.calibration import calibrated_forecaster
from foretime_sim.waits.calibration.calibrated_forecaster import (
    CalibratedForecaster,
    CalibrationSettings,
)
from foretime_sim.waits.calibration.censored_quantiles import censored_quantiles
from foretime_sim.waits.calibration.forecast_scale import (
    SCORES,
    ForecastScale,
    log_wait,
    wait_of_log,
)
from foretime_sim.waits.calibration.remembered_forecasts import ROW, RememberedForecasts, State
from foretime_sim.waits.forecaster import LEVELS, MEDIAN, WaitForecasts
from foretime_sim.waits.moment import Moment
from hypothesis import given
from hypothesis import strategies as st

AT = {level: LEVELS.index(level) for level in (0.5, 0.75, 0.9, 0.95)}


def lognormal(medians: np.ndarray, spread: float) -> WaitForecasts:
    told = np.exp(np.log(medians)[:, np.newaxis] + spread * SCORES)
    return WaitForecasts(told, np.zeros(len(medians)))


def test_scores_are_normal_where_forecasts_are_right() -> None:
    rng = np.random.default_rng(1)
    medians = np.exp(rng.uniform(7, 12, 4_000))
    scale = ForecastScale.of(lognormal(medians, 1.0))
    scores = scale.scores(medians * np.exp(rng.standard_normal(4_000)))
    assert abs(scores.mean()) < 0.05
    assert scores.std() == pytest.approx(1, abs=0.07)


@given(
    st.lists(st.floats(0, 1e6), min_size=len(LEVELS), max_size=len(LEVELS)),
    st.floats(0, 1),
    st.lists(st.floats(-8, 8), min_size=1, max_size=5),
)
def test_every_score_is_a_wait_and_back(
    quantiles: list[float], now: float, scores: list[float]
) -> None:
    told = WaitForecasts(np.sort(np.array([quantiles])), np.array([now]))
    scale = ForecastScale.of(told)
    assert (np.diff(scale.knots) > 0).all()
    logs = scale.log_waits(np.sort(np.array([scores])))
    assert (np.diff(logs) >= 0).all()
    for score, log in zip(np.sort(scores), logs[0], strict=True):
        wait = np.exp(log) - 60  # unlike wait_of_log, below 0, too
        if wait >= 0:
            assert scale.scores(np.array([wait]))[0] == pytest.approx(score, abs=1e-4)


def test_logs_of_waits_by_hand() -> None:
    assert log_wait(np.array([0, 60])) == pytest.approx([math.log(60), math.log(120)])
    assert wait_of_log(np.log([60.0, 120.0, 1.0])) == pytest.approx([0, 60, 0])


def test_starts_at_once_leave_the_levels_above_them() -> None:
    # Half start at once; the others' median is the level 0.75 of all.
    told = np.where(np.array(LEVELS) <= 0.5, 0.0, 1_000 + 4_000 * (np.array(LEVELS) - 0.5))
    scale = ForecastScale.of(WaitForecasts(told[np.newaxis], np.array([0.5])))
    assert scale.log_waits(np.array([[0.0]]))[0, 0] == pytest.approx(math.log(2_060))


def test_censored_quantiles_by_hand() -> None:
    # Kaplan and Meier's product: 1 goes (3 of 4 stay), 2 is a lower bound, of the last two 3 goes.
    values, exact = np.array([3.0, 1.0, 4.0, 2.0]), np.array([True, True, True, False])
    weights = np.ones((1, 4))
    levels = np.array([[0.2, 0.25, 0.26, 0.62, 0.63, 1.0]])
    assert censored_quantiles(values, exact, weights, levels).tolist() == [[1, 1, 3, 3, 4, 4]]
    # A weight of 2 is the observation twice.
    doubled = censored_quantiles(
        np.array([1.0, 1.0, 2.0, 5.0]), np.ones(4, bool), np.ones((1, 4)), levels
    )
    once = censored_quantiles(
        np.array([1.0, 2.0, 5.0]), np.ones(3, bool), np.array([[2.0, 1, 1]]), levels
    )
    assert doubled.tolist() == once.tolist()


def test_a_bound_is_above_what_is_known_at_its_value() -> None:
    # Of three one goes at 1, so 1/3 is reached there; the bound at 1 is still there by then.
    values, exact = np.array([1.0, 1.0, 2.0]), np.array([False, True, True])
    found = censored_quantiles(values, exact, np.ones((1, 3)), np.array([[0.33, 0.34]]))
    assert found.tolist() == [[1, 2]]


def test_quantiles_without_lower_bounds_are_those_of_numpy() -> None:
    values = np.random.default_rng(2).random(41)
    levels = np.array([LEVELS])
    found = censored_quantiles(values, np.ones(41, bool), np.ones((1, 41)), levels)
    expected = np.quantile(values, LEVELS, method="inverted_cdf")
    assert found[0] == pytest.approx(expected)


def test_the_largest_takes_what_is_beyond() -> None:
    found = censored_quantiles(
        np.array([1.0, 9.0]), np.array([True, False]), np.ones((1, 2)), np.array([[0.9]])
    )
    assert found.tolist() == [[9.0]]


def remembered(count: int, capacity: int = 8) -> RememberedForecasts:
    memory = RememberedForecasts(capacity)
    for number in range(count):
        fresh = np.zeros(1, dtype=ROW)
        fresh["made_at"] = fresh["waits_from"] = number
        fresh["stands_for"] = 1
        fresh["knots"], fresh["below"], fresh["above"] = SCORES + 8, 1, 1
        memory.add([str(number)], fresh)
    return memory


def test_forgetting_keeps_who_waits_and_the_total() -> None:
    memory = remembered(8)
    for number in range(1, 7):
        memory.resolve(str(number), number + 10, State.STARTED)
    assert memory.rows["wait_s"].tolist() == [0, *[10] * 6, 0]
    fresh = np.zeros(1, dtype=ROW)
    fresh["made_at"] = fresh["waits_from"] = 50
    fresh["stands_for"], fresh["knots"] = 1, SCORES
    fresh["below"] = fresh["above"] = 1
    memory.add(["8"], fresh)
    assert memory.rows["made_at"].tolist() == [0, 1, 3, 4, 5, 6, 7, 50]
    assert memory.rows["stands_for"].sum() == 9
    memory.look(57)
    assert memory.resolve("7", 60, State.WITHDRAWN).tolist() == [6]
    assert memory.resolve("0", 60, State.STARTED).tolist() == [0]
    assert memory.rows["wait_s"].tolist() == [60, 10, 10, 10, 10, 10, 53, 7]


def test_a_start_resolves_no_forecast_made_after_it() -> None:
    memory = RememberedForecasts(8)
    for made_at in (10, 20, 30):
        fresh = np.zeros(1, dtype=ROW)
        fresh["made_at"] = fresh["waits_from"] = made_at
        fresh["below"] = fresh["above"] = 1
        fresh["knots"] = np.arange(len(LEVELS))
        memory.add(["1"], fresh)
    # The job was requeued after its first start.
    assert memory.resolve("1", 20, State.STARTED).tolist() == [0, 1]
    assert memory.rows["state"].tolist() == [State.STARTED, State.STARTED, State.WAITS]
    assert memory.resolve("1", 45, State.STARTED).tolist() == [2]
    assert memory.rows["wait_s"].tolist() == [10, 0, 15]


def test_more_jobs_wait_than_are_remembered() -> None:
    memory = remembered(12)
    assert len(memory) == 8
    assert memory.resolve("11", 20, State.STARTED).tolist() == []


Told = Callable[[JobRequest, int], tuple[np.ndarray, float]]


class Says:
    """A forecaster that says what it is given."""

    name, oracle = "says", False

    def __init__(self, told: Told) -> None:
        self._told = told

    def forecast(self, moment: Moment) -> WaitForecasts:
        jobs = [moment.requests[column] for column in moment.asked.tolist()]
        answers = [self._told(job, moment.now - job.submit_time) for job in jobs]
        wait_s = np.array([wait for wait, _ in answers]).reshape(len(jobs), len(LEVELS))
        return WaitForecasts(wait_s, np.array([now for _, now in answers]))

    def submitted(self, job: JobRequest) -> None: ...

    def started(self, job: JobRequest, start_time: int) -> None: ...

    def finished(self, job: FinishedJob) -> None: ...


def request(number: int, submit_time: int, queue: str | None = None) -> JobRequest:
    return JobRequest(str(number), "ann", None, 1, 3_600, submit_time, queue=queue)


def moment_of(jobs: list[JobRequest], now: int) -> Moment:
    empty = np.zeros(0, dtype=np.int64)
    pending = PendingJobs(
        np.array([job.submit_time for job in jobs]),
        np.array([job.processors for job in jobs]),
        np.array([job.requested_time for job in jobs]),
    )
    snapshot = Snapshot(now, 10_000, RunningJobs(empty, empty, empty), pending)
    return Moment(snapshot, Policy(), jobs, np.arange(len(jobs)))


def replay(
    forecaster: CalibratedForecaster, jobs: list[JobRequest], waits: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ask about each job at its submission; every start is told when it happens, not earlier."""
    events = [(job.submit_time, 0, number) for number, job in enumerate(jobs)]
    events += [(job.submit_time + int(waits[n]), 1, n) for n, job in enumerate(jobs)]
    told, now = np.empty((len(jobs), len(LEVELS))), np.empty(len(jobs))
    for time, started, number in sorted(events):
        if started:
            forecaster.started(jobs[number], time)
        else:
            forecaster.submitted(jobs[number])
            made = forecaster.forecast(moment_of([jobs[number]], time))
            told[number], now[number] = made.wait_s[0], made.starts_now[0]
    return told, now


def test_a_forecast_that_is_off_is_set_right_everywhere() -> None:
    """The median is 4 times too low where waits are short, 2 times too high where they are long;
    all forecasts are too sure of themselves."""
    rng = np.random.default_rng(3)
    count = 3_000
    centres = np.where(rng.random(count) < 0.5, 1_000.0, 40_000.0)
    waits = np.rint(centres * np.exp(rng.standard_normal(count))).astype(np.int64)
    said = np.where(centres < 5_000, centres / 4, centres * 2)
    base = lognormal(said, 0.3).wait_s
    jobs = [request(number, number * 120) for number in range(count)]
    told, _ = replay(
        CalibratedForecaster(Says(lambda job, _: (base[int(job.job_id)], 0.0)), "c"), jobs, waits
    )
    later = np.arange(count) >= 500
    for level, column in AT.items():
        assert np.mean(waits[later] > base[later, column]) != pytest.approx(1 - level, abs=0.05)
        for group in (centres < 5_000, centres > 5_000):
            held = waits[later & group] <= told[later & group, column]
            assert held.mean() == pytest.approx(level, abs=0.035)
    assert (np.diff(told, axis=1) >= 0).all()
    # No wider than who knows the truth: 95% bounds of a lognormal are exp(1.645) times the median.
    excess = told[later, AT[0.95]] / (centres[later] * math.exp(1.645))
    assert np.median(excess) < 1.15


def test_drift_is_followed() -> None:
    """Waits grow to three times of what is forecast within six weeks, and fall again."""
    rng = np.random.default_rng(4)
    count = 3_000
    times = np.arange(count) * 2_400  # 83 days
    drift = np.exp(np.log(3) * np.sin(np.pi * times / times[-1]) ** 2)
    waits = np.rint(3_000 * drift * np.exp(0.7 * rng.standard_normal(count))).astype(np.int64)
    base = lognormal(np.array([3_000.0]), 0.7).wait_s[0]
    jobs = [request(number, int(times[number])) for number in range(count)]
    told, _ = replay(CalibratedForecaster(Says(lambda job, _: (base, 0.0)), "c"), jobs, waits)
    assert np.mean(waits <= base[AT[0.95]]) < 0.85
    assert np.mean(waits[500:] <= told[500:, AT[0.95]]) == pytest.approx(0.95, abs=0.02)
    for part in np.array_split(np.arange(500, count), 6):
        # Where waits grow fastest, by half in two weeks, what is learned is late.
        assert np.mean(waits[part] <= told[part, AT[0.95]]) > 0.85


def test_a_wait_beyond_its_bound_counts_before_the_start() -> None:
    """After quiet days nothing starts any more: the bounds of new jobs must grow meanwhile."""
    rng = np.random.default_rng(5)
    base = lognormal(np.array([1_000.0]), 0.5).wait_s[0]
    forecaster = CalibratedForecaster(Says(lambda job, _: (base, 0.0)), "c")
    quiet = [request(number, number * 600) for number in range(600)]
    waits = np.rint(1_000 * np.exp(0.5 * rng.standard_normal(600))).astype(np.int64)
    told, _ = replay(forecaster, quiet, waits)
    stuck = 600 * 600
    bounds = []
    for number in range(300):
        job = request(1_000 + number, stuck + number * 600)
        forecaster.submitted(job)
        made = forecaster.forecast(moment_of([job], job.submit_time))
        bounds.append(made.wait_s[0, AT[0.75]])
    assert told[-1, AT[0.75]] < 3_000
    assert bounds[0] < 3_000
    assert bounds[-1] > 10_000


def test_who_is_right_and_rarely_asked_is_left_alone() -> None:
    """Three forecasts a day, few of them alike: what is right is made no wider."""
    rng = np.random.default_rng(8)
    count = 900
    medians = np.exp(rng.uniform(np.log(600), np.log(100_000), count))
    spreads = rng.choice([0.3, 0.6, 1.2], count)
    noise = rng.standard_normal(count)
    waits = np.rint(medians * np.exp(spreads * noise)).astype(np.int64)
    base = np.exp(np.log(medians)[:, np.newaxis] + spreads[:, np.newaxis] * SCORES)
    jobs = [request(number, number * 8 * 3_600) for number in range(count)]

    def held(settings: CalibrationSettings | None) -> float:
        says = Says(lambda job, _: (base[int(job.job_id)], 0.0))
        told, _ = replay(CalibratedForecaster(says, "c", settings), jobs, waits)
        return float(np.mean(waits[100:] <= told[100:, AT[0.95]]))

    raw = float(np.mean(waits[100:] <= base[100:, AT[0.95]]))
    assert held(None) == pytest.approx(raw, abs=0.01)
    # Were nothing filled in, the widened word would have it, and hold too often.
    assert held(CalibrationSettings(filling_half_life_s=1)) > raw + 0.012


def test_less_alike_forecasts_fill_in() -> None:
    """Waits were twice what was said where 1,000 s were said; what of 6,000 s, never said yet?"""
    rng = np.random.default_rng(9)
    waits = np.rint(2_000 * np.exp(0.5 * rng.standard_normal(60))).astype(np.int64)
    jobs = [request(number, number * 3_600) for number in range(60)]
    medians = []
    for settings in (CalibrationSettings(), CalibrationSettings(further=0.01)):
        says = Says(
            lambda job, _: (
                lognormal(np.array([6_000.0 if job.job_id == "60" else 1_000.0]), 0.5).wait_s[0],
                0.0,
            )
        )
        forecaster = CalibratedForecaster(says, "c", settings)
        replay(forecaster, jobs, waits)
        made = forecaster.forecast(moment_of([request(60, 60 * 3_600)], 60 * 3_600))
        medians.append(made.wait_s[0, MEDIAN])
    assert medians[0] == pytest.approx(12_000, rel=0.25)
    assert medians[1] == pytest.approx(7_000, rel=0.1)


def test_starts_at_once_are_calibrated_with_ties() -> None:
    """Said is 0.9 or 0.1; it is 0.6 and 0.02. Waits are 0 or 300 s: ties everywhere."""
    rng = np.random.default_rng(6)
    count = 2_000
    likely = rng.random(count) < 0.5
    now = rng.random(count) < np.where(likely, 0.6, 0.02)
    waits = np.where(now, 0, 300)
    base = (
        np.where(np.array(LEVELS) <= 0.9, 0.0, 200.0),
        np.where(np.array(LEVELS) <= 0.1, 0.0, 200.0),
    )

    def says(job: JobRequest, _: int) -> tuple[np.ndarray, float]:
        number = int(job.job_id)
        return (base[0], 0.9) if likely[number] else (base[1], 0.1)

    jobs = [request(number, number * 60) for number in range(count)]
    told, said = replay(CalibratedForecaster(Says(says), "c"), jobs, waits)
    later = np.arange(count) >= 500
    assert said[later & likely].mean() == pytest.approx(0.6, abs=0.03)
    assert said[later & ~likely].mean() == pytest.approx(0.02, abs=0.03)
    assert (told[later & likely, MEDIAN] == 0).mean() > 0.95
    assert np.mean(np.abs(told[later, AT[0.95]] - 300) <= 30) > 0.9


def test_each_age_is_remembered_once() -> None:
    forecaster = CalibratedForecaster(Says(lambda job, _: (base, 0.0)), "c")
    base = lognormal(np.array([1_000.0]), 0.5).wait_s[0]
    job = request(1, 0)
    forecaster.submitted(job)
    for now in (0, 60, 120, 700, 1_000, 1_300, 2_000, 6_000):
        forecaster.forecast(moment_of([job], now))
    # To 300 s, from 600, from 1,200, from 4,800 s.
    assert len(forecaster._remembered) == 4


def test_a_withdrawn_job_is_a_lower_bound() -> None:
    base = lognormal(np.array([1_000.0]), 0.5).wait_s[0]
    bounds = []
    for withdrawn_after in (10, 50_000):
        forecaster = CalibratedForecaster(Says(lambda job, _: (base, 0.0)), "c")
        for number in range(300):
            job = request(number, number * 60)
            forecaster.submitted(job)
            forecaster.forecast(moment_of([job], job.submit_time))
            end = FinishedJob(job, None, job.submit_time + withdrawn_after, 0, Ending.NEVER_STARTED)
            forecaster.finished(end)
        new = request(999, DAY_S)
        bounds.append(forecaster.forecast(moment_of([new], DAY_S)).wait_s[0, AT[0.9]])
    assert bounds[0] < 5_000 < bounds[1]


def test_no_answer_stays_none() -> None:
    nothing = np.full(len(LEVELS), math.nan)
    forecaster = CalibratedForecaster(Says(lambda job, _: (nothing, math.nan)), "c")
    made = forecaster.forecast(moment_of([request(1, 0)], 0))
    assert not made.answered.any()
    assert forecaster.forecast(moment_of([], 0)).wait_s.shape == (0, len(LEVELS))


def test_who_is_told_the_future_says_so() -> None:
    oracle = Says(lambda job, _: (np.zeros(len(LEVELS)), 1.0))
    assert not CalibratedForecaster(oracle, "c").oracle
    oracle.oracle = True
    assert CalibratedForecaster(oracle, "c").oracle


def test_impossible_settings_are_refused() -> None:
    for wrong in (
        {"prior": 0.0},
        {"remembered": 0},
        {"further": 0.0},
        {"likeness": (1.0, 0.0, 1.0)},
    ):
        with pytest.raises(InputError, match=f"calibration: {next(iter(wrong))}"):
            CalibrationSettings(**wrong)


def test_levels_rise_for_whatever_was_learned() -> None:
    rng = np.random.default_rng(7)
    base = lognormal(np.array([500.0]), 0.1).wait_s[0]
    forecaster = CalibratedForecaster(
        Says(lambda job, _: (base, 0.3)), "c", CalibrationSettings(prior=0.1)
    )
    jobs = [request(number, number * 100, queue="ab"[number % 2]) for number in range(400)]
    told, now = replay(forecaster, jobs, rng.integers(0, 3_000, 400))
    assert (np.diff(told, axis=1) >= 0).all()
    assert all(0 <= p <= 1 for p in itertools.chain(now))


def some_replayed() -> tuple[CalibratedForecaster, list[JobRequest]]:
    """A calibration that has learned of starts and a withdrawal, and of jobs that wait."""
    base = lognormal(np.array([1_000.0]), 0.5).wait_s[0]
    forecaster = CalibratedForecaster(Says(lambda job, _: (base, 0.1)), "c", now_within_s=60)
    jobs = [request(number, 500 * number, queue="ab"[number % 2]) for number in range(60)]
    replay(forecaster, jobs, np.arange(60) * 90)
    waiting = [request(number, 60_000, queue="c") for number in range(100, 105)]
    forecaster.forecast(moment_of(waiting, 60_100))
    withdrawn = FinishedJob(waiting[0], None, 60_200, 0, Ending.NEVER_STARTED)
    forecaster.finished(withdrawn)
    return forecaster, waiting


def test_what_was_learned_can_be_saved_and_taken_over() -> None:
    forecaster, waiting = some_replayed()
    again = CalibratedForecaster(
        Says(lambda job, _: (lognormal(np.array([1_000.0]), 0.5).wait_s[0], 0.1)),
        "c",
        now_within_s=60,
    )
    again.restore(json.loads(json.dumps(forecaster.state())))
    for each in (forecaster, again):
        each.started(waiting[1], 61_000)
    moment = moment_of([*waiting[2:], request(200, 61_500, "a")], 61_500)
    one, other = forecaster.forecast(moment), again.forecast(moment)
    assert (one.wait_s == other.wait_s).all()
    assert (one.starts_now == other.starts_now).all()
    assert again.state() == forecaster.state()


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ({"calibration": 2}, "another version"),
        ({"now_within_s": 0}, "other settings"),
        ({"settings": {}}, "other settings"),
    ],
)
def test_what_another_calibration_learned_is_refused(spoilt: dict[str, object], said: str) -> None:
    forecaster, _ = some_replayed()
    with pytest.raises(StateError, match=said):
        forecaster.restore(forecaster.state() | spoilt)
    remembered = forecaster.state()["remembered"]
    with pytest.raises(StateError, match="other fields"):
        forecaster.restore(forecaster.state() | {"remembered": remembered | {"fields": ""}})


def test_what_is_only_considered_is_not_learned_from() -> None:
    forecaster, waiting = some_replayed()
    forecaster.forecast(moment_of([], 61_500))  # how long who waits has waited is learned from
    moment = moment_of([*waiting[2:], request(200, 61_500, "never-seen")], 61_500)
    before = forecaster.state()
    considered = forecaster.consider(moment)
    assert forecaster.state() == before
    told = forecaster.forecast(moment)
    assert told.wait_s.tolist() == considered.wait_s.tolist()
    assert forecaster.state() != before


def test_many_are_calibrated_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    forecaster, waiting = some_replayed()
    moment = moment_of(waiting[2:], 61_500)
    one = forecaster.consider(moment)
    monkeypatch.setattr(calibrated_forecaster, "_AT_A_TIME", 1)
    assert (forecaster.consider(moment).wait_s == one.wait_s).all()
