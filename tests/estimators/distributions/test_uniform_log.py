"""The uniform-log line and its stages, fitted; classes of jobs, learned with back-off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.distributions.lifetimes import Lifetimes
from foretime_estimators.distributions.uniform_log import UniformLog, fit_uniform_log
from foretime_estimators.distributions.uniform_log_classes import (
    LifetimeClasses,
    MemoryClass,
    RequestedTimeClass,
    parse_classifiers,
    size_class,
)
from foretime_estimators.distributions.uniform_log_runtimes import UniformLogRuntimes
from foretime_estimators.distributions.uniform_log_stages import fit_stages
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

Finished = Callable[..., FinishedJob]


def test_the_papers_t_min() -> None:
    """Figure 1: beta 0.18 and 0.10 give t_min near the 5.8 s of the text, t_max not (misprint)."""
    line = UniformLog(-0.18, 0.10, 0.99, 24_906)
    assert line.t_min == pytest.approx(6.05, abs=0.01)
    assert line.t_max / 3_600 == pytest.approx(37.0, abs=0.1)


def test_four_lives_on_a_line_give_its_slope_and_intercept() -> None:
    """Four lives e, e^2, e^3, e^4 stand at 1/8, 3/8, 5/8, 7/8: slope 1/4, through 1/8 at 1."""
    line = fit_uniform_log(np.exp([4.0, 2.0, 1.0, 3.0]))
    assert line is not None
    assert (line.slope, line.intercept, line.jobs) == pytest.approx((0.25, -0.125, 4))
    assert line.r_squared == pytest.approx(1)
    assert np.log([line.t_min, line.t_max]) == pytest.approx([0.5, 4.5])


def test_a_tenth_on_each_side_does_not_count() -> None:
    lives = np.exp(np.linspace(2, 9, 100))
    wild = lives.copy()
    wild[:10], wild[90:] = 1, 1e9
    assert fit_uniform_log(wild) == fit_uniform_log(lives)
    assert fit_uniform_log(wild, omitted=0) != fit_uniform_log(lives, omitted=0)


def test_a_line_is_recovered_from_lives_drawn_of_it() -> None:
    true = UniformLog(-0.5, 0.14, 1.0, 0)
    share = np.random.default_rng(1).random(20_000)
    line = fit_uniform_log(true.lifetimes.quantile(share))
    assert line is not None
    assert line.intercept == pytest.approx(-0.5, abs=0.02)
    assert line.slope == pytest.approx(0.14, abs=0.003)
    assert line.r_squared > 0.999


@pytest.mark.parametrize("lives", [[], [5], [7] * 100])
def test_no_line_through_one_life(lives: list[int]) -> None:
    assert fit_uniform_log(lives) is None


def test_two_stages_are_found_where_they_break_and_one_where_there_is_one() -> None:
    """Two stages with a break at 3.5 hours (figure 5) are two stages again, broken there."""
    true = Lifetimes(np.log([10.0, 12_600.0, 43_200.0]), np.array([0.0, 0.4, 1.0]))
    lives = true.quantile(np.random.default_rng(2).random(10_000))
    found = fit_stages(lives)
    assert found is not None
    assert found.stages == 2
    assert found.reached[1] == pytest.approx(0.4, abs=0.02)
    assert np.exp(found.log_time[1]) == pytest.approx(12_600, rel=0.2)
    alone = UniformLog(-0.5, 0.14, 1.0, 0).lifetimes
    single = fit_stages(alone.quantile(np.random.default_rng(3).random(2_000)))
    assert single is not None
    assert single.stages == 1


def test_stages_are_the_best_of_all_choices() -> None:
    """Dynamic programming finds what trying every pair of ends finds."""
    lives = np.random.default_rng(4).lognormal(6, 2, 30).round() + 1
    found = fit_stages(lives, stages=3)
    assert found is not None
    log_time = np.log(np.sort(lives))
    reached = (np.arange(30) + 0.5) / 30

    def distance(inner: tuple[int, ...]) -> float:
        ends = [0, *inner, 29]
        value = reached[ends].copy()
        value[0], value[-1] = 0, 1
        model = np.interp(log_time, log_time[ends], value)
        return float(((model - reached) ** 2).sum())

    best = min(
        distance((first, second)) for first in range(1, 28) for second in range(first + 1, 29)
    )
    ours = distance(tuple(int(np.argmin(abs(log_time - end))) for end in found.log_time[1:-1]))
    assert ours == pytest.approx(best, rel=1e-6)


def test_a_time_limit_is_a_steep_stage() -> None:
    lives = [10, 100, 1_000] * 50 + [43_200] * 150
    found = fit_stages(lives)
    assert found is not None
    at_limit = np.interp(np.log([43_199, 43_201]), found.log_time, found.reached)
    assert at_limit[1] - at_limit[0] == pytest.approx(0.5, abs=0.03)
    assert fit_stages([5]) is None


def test_a_class_with_few_jobs_backs_off_to_a_wider_one(finished: Finished) -> None:
    """Queue and size, then queue, then all jobs, then nothing."""
    classes = LifetimeClasses(parse_classifiers("queue,size"), fewest_jobs=10, refit_share=0)

    def of(queue: str | None, processors: int, runtime: int) -> FinishedJob:
        job = finished(runtime, processors=processors)
        return replace(job, request=replace(job.request, queue=queue))

    asked = of("short", 4, 1).request
    assert classes.lifetimes(asked) is None
    for runtime in range(100, 109):
        classes.learn_one(of("short", 3, runtime))
    assert classes.lifetimes(asked) is None
    classes.learn_one(of("long", 4, 100_000))
    everything = classes.lifetimes(asked)
    assert everything is not None
    for runtime in range(100, 105):
        classes.learn_one(of("short", 8, runtime))
    by_queue = classes.lifetimes(asked)
    assert by_queue is not None
    assert by_queue.t_max < everything.t_max
    classes.learn_one(of("short", 4, 200))
    by_size = classes.lifetimes(asked)
    assert by_size is not None
    assert by_size.t_max != by_queue.t_max
    for coarser in (None, "other"):
        all_jobs = classes.lifetimes(of(coarser, 4, 1).request)
        assert all_jobs is not None
        assert all_jobs.t_max > by_queue.t_max


def test_what_the_machine_ended_does_not_count(finished: Finished) -> None:
    classes = LifetimeClasses(fewest_jobs=2)
    for ending in (Ending.NODE_FAILED, Ending.NEVER_STARTED):
        for runtime in (10, 20, 30):
            classes.learn_one(finished(runtime, ending=ending))
    assert classes.lifetimes(finished(1).request) is None


def test_only_the_last_jobs_count(finished: Finished) -> None:
    classes = LifetimeClasses(fewest_jobs=5, remembered_jobs=20)
    for runtime in [*range(10_000, 10_100), *range(100, 120)]:
        classes.learn_one(finished(runtime))
    model = classes.lifetimes(finished(1).request)
    assert model is not None
    assert model.t_max < 200


def test_jobs_are_put_into_classes_of_size_time_and_memory(finished: Finished) -> None:
    job = finished(1, requested_time=900, processors=5).request
    assert [size_class(replace(job, processors=n)) for n in (1, 2, 3, 4, 5)] == [
        "size 1", "size 2", "size 4", "size 4", "size 8",
    ]  # fmt: skip
    short = RequestedTimeClass((900, 10_800))
    assert [short(replace(job, requested_time=t)) for t in (900, 901, 10_800, 99_999)] == [
        "time 0", "time 1", "time 1", "time 2",
    ]  # fmt: skip
    memory = MemoryClass({job.job_id: 17.0})
    assert memory(job) == "memory 32"
    assert memory(replace(job, job_id="other")) is None
    with pytest.raises(InputError, match=r"unknown attribute 'colour'.*queue, user"):
        parse_classifiers("queue,colour")
    with pytest.raises(InputError, match="rising"):
        RequestedTimeClass((900, 900))


def test_samples_keep_the_contract(finished: Finished) -> None:
    """Above the age, at most the request; their quantiles are those of the conditional model."""
    runtimes = UniformLogRuntimes(LifetimeClasses(fewest_jobs=20))
    rng = np.random.default_rng(5)
    jobs = [finished(1, requested_time=t).request for t in (50_000, 50_000, 600, 50_000)]
    age = np.array([0, 1_000, 600, 30_000])
    before = runtimes.sample(jobs, age, 0, 50, rng)
    assert before.shape == (50, 4)
    true = Lifetimes(np.log([10.0, 20_000.0]), np.array([0.0, 1.0]))
    for life in true.quantile(np.linspace(0.001, 0.999, 999)):
        runtimes.learn_one(finished(round(float(life))))
    drawn = runtimes.sample(jobs, age, 0, 20_000, rng)
    for samples in (before, drawn):
        assert (samples[:, [0, 1, 3]] > age[[0, 1, 3]]).all()
        assert (samples[:, 2] == 600).all()
        assert (samples <= 50_000).all()
    assert np.median(drawn[:, 1]) == pytest.approx(true.median_life(1_000), rel=0.05)
    assert np.median(drawn[:, 3]) == 50_000  # the past repeats, and the limit cuts it


def test_a_restored_state_draws_the_same(finished: Finished) -> None:
    one = UniformLogRuntimes(LifetimeClasses(parse_classifiers("user"), fewest_jobs=5))
    for runtime in range(10, 40):
        one.learn_one(finished(runtime, user="a" if runtime % 2 else "b"))
    other = UniformLogRuntimes(LifetimeClasses(parse_classifiers("user"), fewest_jobs=5))
    other.restore(one.state())
    jobs = [finished(1, user=user).request for user in "abc"]
    drawn = [
        runtimes.sample(jobs, np.zeros(3, dtype=np.int64), 0, 20, np.random.default_rng(6))
        for runtimes in (one, other)
    ]
    assert (drawn[0] == drawn[1]).all()
    with pytest.raises(StateError, match="lifetime classes"):
        other.restore({"classes": [["a"]]})


def test_a_class_is_fitted_anew_once_a_share_of_its_jobs_is_new() -> None:
    """Of 106 jobs 6 are 5%, of 105 jobs 5 are not: up to then the line stays."""
    classes = LifetimeClasses(fewest_jobs=50, refit_share=0.05)

    def learn(number: int, runtime: int) -> None:
        job = JobRequest(str(number), "ann", None, 1, 100_000, number)
        classes.learn_one(FinishedJob(job, number, number + runtime, runtime, Ending.COMPLETED))

    for number in range(100):
        learn(number, 10 + number)
    asked = JobRequest("asked", "ann", None, 1, 100_000, 500)
    first = classes.lifetimes(asked)
    for number in range(100, 105):
        learn(number, 90_000)
        assert classes.lifetimes(asked) is first
    for number in range(105, 130):
        learn(number, 90_000)
    again = classes.lifetimes(asked)
    assert first is not None
    assert again is not None
    assert again.t_max > 2 * first.t_max
