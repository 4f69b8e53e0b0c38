"""What the daemon serves: forward runs, and past waits where the scheduler does other things."""

from __future__ import annotations

import json

import numpy as np
import pytest
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.forecasts import production_forecaster as served_forecaster
from foretime_sidecar.forecasts.learned_waits import MOST_JOBS, LearnedWaits
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS, MEDIAN
from foretime_sim.waits.learned_forecaster import LearnedForecaster
from foretime_sim.waits.moment import Moment

NOW = 1_700_000_000
BOUND = LEVELS.index(0.95)


def moment_of(now: int, *jobs: JobRequest) -> Moment:
    """Nothing runs on 64 processors: jobs of 8 could start at once."""
    none, ones = np.zeros(0, dtype=np.int64), np.ones(len(jobs), dtype=np.int64)
    pending = PendingJobs(np.array([job.submit_time for job in jobs]), 8 * ones, 3_600 * ones)
    snapshot = Snapshot(now, 64, RunningJobs(none, none, none), pending)
    return Moment(snapshot, Policy(), jobs, np.arange(len(jobs)))


def request(name: object, submit_time: int) -> JobRequest:
    return JobRequest(str(name), "ann", None, 8, 3_600, submit_time, "main")


def live(forecaster: CalibratedBest, jobs: int, wait_s: int) -> int:
    """Let a scheduler make each job wait, though the machine is free; give the time after it."""
    now = NOW
    for number in range(jobs):
        job = request(number, now)
        forecaster.submitted(job)
        forecaster.forecast(moment_of(now, job))
        now += wait_s + number % 100
        forecaster.started(job, now)
        now += 60
    return now


@pytest.fixture
def _nothing_to_learn_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_forecaster, "can_learn_waits", lambda: False)


@pytest.mark.usefixtures("_nothing_to_learn_with")
def test_who_is_right_has_the_word_and_it_is_said() -> None:
    forecaster = CalibratedBest(20_000)
    first = forecaster.forecast(moment_of(NOW, request("first", NOW)))
    assert first.wait_s[0, MEDIAN] == 0
    said = forecaster.basis(1)
    assert said.runs_queue
    assert len(said.texts) == 1
    assert said.texts[0].startswith("jobs are expected to run as long as similar jobs have")

    now = live(forecaster, 300, 7_200)
    found = forecaster.forecast(moment_of(now, request("last", now)))
    assert found.wait_s[0, MEDIAN] == pytest.approx(7_250, rel=0.02)
    assert found.wait_s[0, BOUND] < 9_000
    said = forecaster.basis(1)
    assert not said.runs_queue
    assert said.texts == (
        "the forecast is made from recent waits of jobs of similar size and time limit",
        "this has lately been better here than a simulation of the queue",
    )
    new = forecaster.consider(moment_of(now, request("", now)))
    assert new.wait_s[0, MEDIAN] == pytest.approx(7_250, rel=0.02)
    # Where nobody waits, what ifs are answered so, too.
    forecaster.forecast(moment_of(now))
    assert forecaster.basis(0) == said


def test_runtimes_hold_as_often_as_they_say() -> None:
    """Runtimes that drift are beyond those of the jobs before more often than one in twenty."""
    rng = np.random.default_rng(3)
    forecaster = CalibratedBest(20_000)
    plain = RuntimeHistories()
    held: list[list[bool]] = []
    now, runtime_s, age = NOW, 600, np.zeros(1, np.int64)
    for number in range(2_000):
        job = request(number, now)
        runtime_s = round(np.clip(runtime_s * np.exp(rng.normal(0, 0.4)), 60, 3_500))
        if number > 500:
            bounds = (model([job], age, [0.95]) for model in (plain.quantiles, forecaster.runtimes))
            held.append([bool(runtime_s <= round(bound[0, 0])) for bound in bounds])
        now += runtime_s
        ended = FinishedJob(job, job.submit_time, now, runtime_s, Ending.COMPLETED)
        forecaster.finished(ended)
        plain.learn_one(ended)
    before, after = np.mean(held, axis=0)
    assert before < 0.93 < after < 0.97


@pytest.mark.usefixtures("_nothing_to_learn_with")
def test_a_restart_keeps_the_choice_and_spoilt_parts_begin_anew() -> None:
    forecaster = CalibratedBest(20_000)
    live(forecaster, 90, 7_200)
    state = json.loads(json.dumps(forecaster.state()))
    again = CalibratedBest(20_000)
    again.restore(state)
    assert again.state() == forecaster.state()
    half = CalibratedBest(20_000)
    with pytest.raises(StateError, match=r"choice of forecasters: .* begin anew"):
        half.restore({**state, "choice": {"choice": 0}})
    assert half.state()["calibration"] == forecaster.state()["calibration"]
    with pytest.raises(StateError, match="calibration: KeyError"):
        half.restore({"choice": state["choice"]})
    assert half.state() == forecaster.state()


def test_with_the_extra_waits_are_learned_too() -> None:
    forecaster = CalibratedBest(20_000)
    now = live(forecaster, 260, 7_200)
    forecaster.forecast(moment_of(now, request("last", now)))
    choice = forecaster.state()["choice"]
    outcomes = np.sum([judged for _, judged in choice["all_losses"].values()], axis=0).tolist()
    judged = dict(zip(choice["forecasters"], outcomes, strict=True))
    assert list(judged) == ["forward", "qbets", "learned", "backlog"]
    assert judged["learned"] > 10
    assert forecaster.basis(1).texts[-1].startswith("this has lately")


def test_a_learner_that_breaks_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    learned = LearnedWaits(60)
    moment = moment_of(NOW, request("a", NOW))

    def breaks(*_: object) -> None:
        raise ValueError("no tree would grow")

    monkeypatch.setattr(LearnedForecaster, "forecast", breaks)
    assert not learned.forecast(moment).answered.any()
    assert "no tree would grow" in caplog.text
    caplog.clear()
    monkeypatch.undo()
    assert not learned.forecast(moment).answered.any()
    assert not caplog.text


def test_a_long_queue_is_not_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(LearnedForecaster, "forecast", lambda _, moment: asked.append(moment))
    jobs = [request(number, NOW) for number in range(MOST_JOBS + 1)]
    assert not LearnedWaits(60).forecast(moment_of(NOW, *jobs)).answered.any()
    assert not asked
