"""Later arrivals: what is promised of any, and that they vary as what came before did."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.estimators.estimator import Memoryless
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S, HOUR_S
from foretime_sim.engine.forward import (
    PendingJobs,
    RunningJobs,
    SampledArrivals,
    Snapshot,
    forward_runs,
)
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.arrival_model import ArrivalSettings, ResampledArrivals
from foretime_sim.waits.forward_forecaster import LaterArrivals
from foretime_sim.waits.scores.wait_sources import LoggedWaits
from foretime_sim.waits.submission_history import SubmissionHistory
from foretime_sim.workloads.workload import Workload
from foretime_studies.waits.arrival_scores import (
    HORIZONS_S,
    PoissonArrivals,
    arrival_table,
    score_arrivals,
)
from foretime_studies.waits.runtime_scores import RequestedRuntimes
from hypothesis import given
from hypothesis import strategies as st

LIMIT = 7_200


def job(
    number: int, submit_time: int, processors: int = 1, requested_time: int = LIMIT
) -> JobRequest:
    return JobRequest(str(number), "u", None, processors, requested_time, submit_time)


def ended(request: JobRequest, runtime: int, ending: Ending = Ending.COMPLETED) -> FinishedJob:
    start = None if ending is Ending.NEVER_STARTED else request.submit_time
    return FinishedJob(request, start, request.submit_time + runtime, runtime, ending)


class Asked(Memoryless):
    """Gives every job the runtime 77, and remembers for whom it was asked."""

    def __init__(self) -> None:
        self.jobs: list[str] = []

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        self.jobs += [each.job_id for each in jobs]
        return np.full((samples, len(jobs)), 77)


submissions = st.lists(
    st.tuples(st.integers(0, 2 * DAY_S), st.integers(1, 9), st.sampled_from([None, 10, 7_200])),
    max_size=40,
)


def told(
    model: ResampledArrivals | PoissonArrivals, jobs: Sequence[tuple[int, int, int | None]]
) -> int:
    """Tell a model of (pause, processors, runtime or none if it has not ended); give the time."""
    now = 0
    for number, (pause, processors, runtime) in enumerate(jobs):
        now += pause
        request = job(number, now, processors)
        model.submitted(request)
        if runtime is not None:
            model.finished(ended(request, runtime))
    return now


@given(submissions, st.integers(0, 3 * DAY_S), st.integers(1, 5 * DAY_S), st.integers(1, 9))
def test_arrivals_come_after_now_and_are_like_past_jobs(
    jobs: list[tuple[int, int, int | None]], later: int, horizon: int, samples: int
) -> None:
    for model in (ResampledArrivals(RequestedRuntimes()), PoissonArrivals(84 * DAY_S)):
        now = told(model, jobs) + later
        drawn = model.sample(now, now + horizon, samples, np.random.default_rng(1))
        assert ((drawn.submit_time > now) & (drawn.submit_time <= now + horizon)).all()
        assert ((drawn.sample >= 0) & (drawn.sample < samples)).all()
        sizes = {processors for _, processors, _ in jobs}
        assert set(drawn.processors.tolist()) <= sizes
        assert ((drawn.actual_runtime >= 1) & (drawn.actual_runtime <= LIMIT)).all()
        again = model.sample(now, now + horizon, samples, np.random.default_rng(1))
        assert (again.submit_time == drawn.submit_time).all()
        if isinstance(model, ResampledArrivals):
            restored = ResampledArrivals(RequestedRuntimes())
            restored.restore(json.loads(json.dumps(model.state())))
            assert restored.state() == model.state()
            again = restored.sample(now, now + horizon, samples, np.random.default_rng(1))
            assert (again.submit_time == drawn.submit_time).all()
            assert (again.actual_runtime == drawn.actual_runtime).all()


def test_the_hours_of_a_day_come_again() -> None:
    """Ten jobs at noon and two at midnight, every day: noon is forecast at noon."""
    model = ResampledArrivals(RequestedRuntimes())
    number = 0
    for day in range(30):
        for hour, count in ((0, 2), (12, 10)):
            for place in range(count):
                request = job(number, day * DAY_S + hour * HOUR_S + 1_800 + place)
                model.submitted(request)
                model.finished(ended(request, 60))
                number += 1
    rng = np.random.default_rng(1)
    for hour, count in ((0, 2), (12, 10)):
        begin = 30 * DAY_S + hour * HOUR_S
        drawn = model.sample(begin - 3 * HOUR_S, begin + 4 * HOUR_S, 100, rng)
        assert np.bincount(drawn.sample, minlength=100).tolist() == [count] * 100
    ten_days = model.sample(30 * DAY_S, 40 * DAY_S, 20, rng)
    assert np.bincount(ten_days.sample, minlength=20).mean() == pytest.approx(120, rel=0.1)


def test_a_busy_day_is_taken_for_what_follows_one() -> None:
    """Every other day brings a hundred jobs from midnight on, the others one."""
    model = ResampledArrivals(RequestedRuntimes(), ArrivalSettings(shift_s=0))
    number = 0
    for day in range(31):
        count = 100 if day % 2 or day == 30 else 1
        for place in range(count if day < 30 else 25):
            model.submitted(job(number, day * DAY_S + place * (DAY_S // count // 2)))
            number += 1
    rng = np.random.default_rng(1)
    now = 30 * DAY_S + 25 * 432  # a quarter of a busy day's jobs have come
    busy = model.sample(now, 31 * DAY_S, 200, rng)
    assert np.bincount(busy.sample, minlength=200).mean() > 60


def test_runtimes_not_known_yet_are_drawn_and_withdrawn_jobs_left_out() -> None:
    runtimes = Asked()
    model = ResampledArrivals(runtimes, ArrivalSettings(shift_s=0))
    model.submitted(job(9, 0))  # the known past begins here
    for number, ending in enumerate((Ending.COMPLETED, Ending.NEVER_STARTED, None)):
        request = job(number, 1_000 + number)
        model.submitted(request)
        if ending is not None:
            model.finished(ended(request, 60, ending))
    drawn = model.sample(DAY_S, DAY_S + HOUR_S, 50, np.random.default_rng(1))
    assert set(zip(drawn.submit_time.tolist(), drawn.actual_runtime.tolist(), strict=True)) == {
        (DAY_S + 1_000, 60),
        (DAY_S + 1_002, 77),
    }
    assert runtimes.jobs == ["2"]


def test_nothing_is_drawn_where_nothing_is_known() -> None:
    for model in (ResampledArrivals(RequestedRuntimes()), PoissonArrivals(84 * DAY_S)):
        assert not len(model.sample(0, DAY_S, 5, np.random.default_rng(1)).sample)
        model.submitted(job(1, 100))
        assert not len(model.sample(100, DAY_S, 5, np.random.default_rng(1)).sample)


@pytest.mark.parametrize(
    ("jobs", "apart_s", "drawn"), [(99, 30, False), (120, 30, True), (150, 1, False)]
)
def test_a_hundred_submissions_tell_of_those_to_come_before_two_hours_do(
    jobs: int, apart_s: int, drawn: bool
) -> None:
    model = ResampledArrivals(RequestedRuntimes())
    now = told(model, [(apart_s, 1, 10)] * jobs)
    later = model.sample(now, now + 50 * DAY_S, 20, np.random.default_rng(1))
    assert bool(len(later.sample)) == drawn
    if drawn:
        soon = later.submit_time <= now + 600
        assert np.bincount(later.sample[soon], minlength=20).mean() == pytest.approx(20, rel=0.1)
        assert later.submit_time.max() <= now + 100 * (jobs * apart_s // 2)


def test_old_submissions_are_forgotten() -> None:
    history = SubmissionHistory(DAY_S)
    for number in range(5_000):
        request = job(number, number * 100)
        history.submitted(request)
        if number % 3:
            history.finished(ended(request, 50))
    assert len(history) == DAY_S // 100 + 1
    assert history.submit_time.tolist() == list(range(499_900 - DAY_S, 499_901, 100))
    open_ones = [place for place, runtime in enumerate(history.runtime.tolist()) if runtime < 0]
    for place in open_ones:
        assert history.request(place).submit_time == history.submit_time[place]
    assert len(history._request) == len(history._place) == len(open_ones)
    history.finished(ended(job(0, 0), 5))  # forgotten long ago: nothing happens
    late = job(9_999, 100)
    history.submitted(late)
    assert history.submit_time[-1] == 499_900


def test_forward_runs_take_them() -> None:
    """A newcomer that fits beside the wait of the head job overtakes nobody, and is overtaken."""
    model = ResampledArrivals(RequestedRuntimes(), ArrivalSettings(shift_s=0))
    for day in range(3):
        request = job(day, day * DAY_S + 500, processors=10)
        model.submitted(request)
        model.finished(ended(request, 4_000))
    now = 3 * DAY_S
    snapshot = Snapshot(
        now,
        10,
        RunningJobs(np.array([now]), np.array([10]), np.array([1_000])),
        PendingJobs(np.array([now + 600]), np.array([5]), np.array([1_000])),
    )
    arrivals = model.sample(now, now + DAY_S, 3, np.random.default_rng(1))
    runtimes = np.full((3, 2), 1_000)
    starts = forward_runs(snapshot, Policy(), runtimes, arrivals=arrivals)
    assert (starts[:, 1] == now + 1_000 + 4_000).all()
    assert (forward_runs(snapshot, Policy(), runtimes)[:, 1] == now + 1_000).all()


def bursts(jobs: int = 6_000) -> Workload:
    """People come by day, and each submits a campaign at once."""
    rng = np.random.default_rng(3)
    campaigns = np.sort(
        rng.integers(0, 60, jobs // 10) * DAY_S + rng.integers(0, 10 * HOUR_S, jobs // 10)
    )
    size = rng.geometric(0.1, len(campaigns))
    submit = np.sort(np.repeat(campaigns, size) + rng.integers(0, 900, size.sum()))
    count = len(submit)
    return Workload(
        name="bursts",
        machine_processors=10_000,
        unix_start_time=None,
        job_id=np.arange(count),
        submit_time=submit,
        processors=rng.integers(1, 9, count),
        actual_runtime=rng.integers(1, LIMIT, count),
        requested_time=np.full(count, LIMIT),
        logged_wait=np.ma.MaskedArray(np.zeros(count, dtype=np.int64)),
    )


def test_bursts_are_covered_and_a_poisson_process_does_not() -> None:
    runtimes = RuntimeHistories()
    models: dict[str, LaterArrivals] = {
        "poisson": PoissonArrivals(84 * DAY_S),
        "resampled": ResampledArrivals(runtimes),
    }
    source = LoggedWaits(bursts(), Policy())
    scores = score_arrivals(source, models, runtimes, moments=150, samples=100)
    for measure in ("jobs", "processor-seconds"):
        key = HORIZONS_S[-1], measure
        assert 0.8 < scores["resampled"][key].covered / scores["resampled"][key].outcomes <= 1
        assert scores["poisson"][key].covered / scores["poisson"][key].outcomes < 0.7
        assert scores["resampled"][key].crps < scores["poisson"][key].crps
    assert "| 24 h | jobs | resampled |" in " ".join(arrival_table(scores).to_markdown().split())


def test_a_poisson_process_has_its_rate() -> None:
    model = PoissonArrivals(84 * DAY_S)
    now = told(model, [(HOUR_S, 1, 10)] * 24 * 28)
    drawn: SampledArrivals = model.sample(now, now + DAY_S, 400, np.random.default_rng(1))
    counts = np.bincount(drawn.sample, minlength=400)
    assert counts.mean() == pytest.approx(24, rel=0.05)
    assert counts.var() == pytest.approx(24, rel=0.25)


@pytest.mark.parametrize("name", ["window_s", "half_life_s", "stretch_s", "recent_s", "longest_s"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} 0"):
        ArrivalSettings(**{name: 0})


def test_other_settings_out_of_range_are_refused() -> None:
    build: Callable[[], ArrivalSettings] = lambda: ArrivalSettings(likeness=-1.0)  # noqa: E731
    with pytest.raises(InputError, match="likeness -1"):
        build()


def test_a_state_of_others_is_refused() -> None:
    with pytest.raises(StateError, match="saved by something else"):
        ResampledArrivals(RequestedRuntimes()).restore({})
    other = ResampledArrivals(RequestedRuntimes(), ArrivalSettings(window_s=5))
    with pytest.raises(StateError, match="another window"):
        ResampledArrivals(RequestedRuntimes()).restore(other.state())
