"""Our forecast: known distributions give the quantiles that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.estimators.estimator import Memoryless
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.estimated_run import estimator_of, job_requests
from foretime_sim.engine.forward import PendingJobs, RunningJobs, SampledArrivals, Snapshot
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS, MEDIAN
from foretime_sim.waits.forward_forecaster import (
    ForwardForecaster,
    planned_waits,
    sample_quantiles,
)
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.plan_forecaster import PlanForecaster
from foretime_sim.waits.scores.moments import Asking, ask_forecasters
from foretime_sim.waits.scores.wait_sources import SimulatedWaits
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings

from tests.support.workloads.small_workloads import workloads

NOW = 1_000


class Uniform:
    """Every runtime between the age and the request is as likely as any other."""

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        requested = np.array([job.requested_time for job in jobs], dtype=np.int64)
        return rng.integers(age + 1, requested + 1, size=(samples, len(jobs)))

    def learn_one(self, job: FinishedJob) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None: ...


class Requested(Uniform):
    """All run as long as they may."""

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        return np.tile([job.requested_time for job in jobs], (samples, 1))


class Known(Uniform):
    """Runtimes of a workload, in every sample."""

    def __init__(self, workload: Workload) -> None:
        ids = [job.job_id for job in job_requests(workload)]
        runtimes = np.minimum(workload.actual_runtime, workload.requested_time)
        self.runtimes = dict(zip(ids, runtimes.tolist(), strict=True))

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        known = np.array([self.runtimes[job.job_id] for job in jobs], dtype=np.int64)
        return np.tile(known, (samples, 1))


class Stream:
    """A job of the whole machine every ten seconds, in each sample; notes what it is asked."""

    def __init__(self, processors: int) -> None:
        self.processors = processors
        self.asked: list[tuple[int, int]] = []
        self.told: list[str] = []

    def sample(
        self, now: int, until: int, samples: int, rng: np.random.Generator
    ) -> SampledArrivals:
        self.asked.append((now, until))
        times = np.arange(now + 10, until + 1, 10)
        jobs = samples * len(times)
        return SampledArrivals(
            np.repeat(np.arange(samples), len(times)),
            np.tile(times, samples),
            np.full(jobs, self.processors),
            np.full(jobs, 5),
            np.full(jobs, 5),
        )

    def submitted(self, job: JobRequest) -> None:
        self.told.append(job.job_id)

    def finished(self, job: FinishedJob) -> None:
        self.told.append(job.request.job_id)


def request(name: str, processors: int, requested_time: int, submit_time: int = NOW) -> JobRequest:
    return JobRequest(name, None, None, processors, requested_time, submit_time)


def one_behind_another(order: Order = Order.FCFS) -> Moment:
    """Ten processors, all of them used since 500 s by a job that asked for 1,500 s; one waits."""
    snapshot = Snapshot(
        NOW,
        10,
        RunningJobs(np.array([NOW - 500]), np.array([10]), np.array([1_500])),
        PendingJobs(np.array([NOW]), np.array([4]), np.array([600])),
    )
    jobs = [request("runs", 10, 1_500, NOW - 500), request("waits", 4, 600)]
    return Moment(snapshot, Policy(order), jobs, np.array([1]))


def test_quantiles_are_those_of_what_is_waited_for() -> None:
    """What is left of the running job is uniform from 1 to 1,000 s; so is the wait."""
    forecaster = ForwardForecaster("forward", Uniform(), samples=20_000)
    forecasts = forecaster.forecast(one_behind_another())
    np.testing.assert_allclose(forecasts.wait_s[0], np.array(LEVELS) * 1_000, atol=15)
    assert forecasts.starts_now.tolist() == [0]


class Fixed(Memoryless):
    """Says the same of every job."""

    oracle = False

    def __init__(self, runtime_s: int) -> None:
        self.runtime_s = runtime_s

    def predict_one(self, job: JobRequest, now: int) -> int:
        return self.runtime_s


@pytest.mark.parametrize(("estimated", "wait"), [(501, 1), (500, 1_000), (499, 1_000)])
def test_a_plan_takes_who_has_outlived_an_estimate_to_its_request(
    estimated: int, wait: int
) -> None:
    plan = PlanForecaster("plan", Fixed(estimated))
    assert plan.forecast(one_behind_another()).wait_s[0, MEDIAN] == wait


def test_who_fits_starts_at_once_for_certain() -> None:
    snapshot = one_behind_another().snapshot
    moment = Moment(
        Snapshot(NOW, 14, snapshot.running, snapshot.pending),
        Policy(),
        one_behind_another().requests,
        np.array([1]),
    )
    forecasts = ForwardForecaster("forward", Uniform()).forecast(moment)
    assert forecasts.starts_now.tolist() == [1]
    assert not forecasts.wait_s.any()


def test_jobs_that_come_later_overtake_where_the_policy_lets_them() -> None:
    """Under SJF the stream goes first; under FCFS no job of it can."""
    alone = ForwardForecaster("forward", Uniform(), samples=2_000)
    for order, overtaken in ((Order.SJF, True), (Order.FCFS, False)):
        stream = Stream(processors=10)
        beside = ForwardForecaster("forward", Uniform(), stream, samples=2_000)
        moment = one_behind_another(order)
        wait = beside.forecast(moment).wait_s[0]
        later = wait - alone.forecast(moment).wait_s[0]
        ((asked_at, until),) = stream.asked
        assert asked_at == NOW
        assert until > NOW + wait[LEVELS.index(0.95)]
        assert (later[LEVELS.index(0.1) :] > 0).all() if overtaken else not later.any()


@pytest.mark.parametrize(("order", "at_once"), [(Order.SJF, 0), (Order.FCFS, 1)])
def test_who_would_start_soon_by_the_plan_may_be_overtaken_before(
    order: Order, at_once: float
) -> None:
    """Within a minute counts as at once, and others come in it."""
    requests = [request("a", 10, 50), request("b", 10, 600)]
    running = RunningJobs(np.array([NOW]), np.array([10]), np.array([50]))
    pending = PendingJobs(np.array([NOW]), np.array([10]), np.array([600]))
    moment = Moment(
        Snapshot(NOW, 10, running, pending),
        Policy(order, Backfill.EASY),
        requests,
        np.array([1]),
    )
    assert planned_waits(moment).tolist() == [50]
    forecaster = ForwardForecaster("forward", Requested(), Stream(10), now_within_s=60)
    assert forecaster.forecast(moment).starts_now.tolist() == [at_once]


def test_models_are_told_what_happens() -> None:
    stream = Stream(processors=1)
    forecaster = ForwardForecaster("forward", Uniform(), stream)
    job = request("a", 1, 10)
    forecaster.submitted(job)
    forecaster.started(job, NOW + 1)
    assert stream.told == ["a"]


@settings(max_examples=30)
@given(workload=workloads(8))
def test_with_runtimes_known_it_is_the_plan_with_perfect_runtimes(workload: Workload) -> None:
    for policy in (Policy(), Policy(Order.WFP, Backfill.CONSERVATIVE)):
        sure = ForwardForecaster("forward", Known(workload), samples=3)
        perfect = PlanForecaster("perfect", estimator_of("actual", workload))
        asking = Asking(looks_s=(30,))
        records = ask_forecasters(SimulatedWaits(workload, policy), [sure, perfect], asking)
        np.testing.assert_array_equal(*records.wait_s)
        np.testing.assert_array_equal(*records.starts_now)


def test_a_quantile_is_the_sample_that_reaches_its_level() -> None:
    """Of 99 samples the fiftieth is the median, the ninetieth the 0.9 quantile."""
    samples = np.random.default_rng(1).permutation(np.arange(1, 100))[:, np.newaxis]
    quantiles = sample_quantiles(samples)
    assert quantiles.shape == (1, len(LEVELS))
    at = dict(zip(LEVELS, quantiles[0].tolist(), strict=True))
    assert (at[0.5], at[0.9], at[0.1]) == pytest.approx((50, 90, 10))
    assert at[0.45] == pytest.approx(45)
    # Of few, too: but the highest are told by all.
    twenty = sample_quantiles(np.arange(1, 20)[:, np.newaxis])[0]
    assert twenty[MEDIAN] == 10
    assert twenty[LEVELS.index(0.95)] > 19
    assert sample_quantiles(np.array([[7]]))[0, MEDIAN] == 7


@pytest.mark.parametrize("samples", [5, 10, 20, 39])
def test_bounds_of_few_samples_hold_for_the_next_one(samples: int) -> None:
    """Of waits that are lognormal; the largest of ten holds for 91 of 100, not for 95."""
    rng = np.random.default_rng(samples)
    drawn = np.exp(rng.normal(9, 1, (samples + 1, 20_000)))
    bound = sample_quantiles(drawn[:-1].astype(np.int64))[:, LEVELS.index(0.95)]
    assert np.mean(drawn[-1] <= bound) == pytest.approx(0.95, abs=0.015)


def test_a_plan_goes_no_further_than_it_is_asked_to() -> None:
    moment = one_behind_another(Order.FCFS)
    whole = planned_waits(moment)
    assert not np.isnan(whole).any()
    for within_s in (0, *whole.astype(int).tolist()):
        part = planned_waits(moment, int(within_s))
        np.testing.assert_array_equal(part, np.where(whole <= within_s, whole, np.nan))


def test_a_queue_of_priorities_is_not_overtaken_by_all_that_come() -> None:
    """Ranks of a queue are 0 and below; a newcomer at 0 would go before everybody."""
    moment = one_behind_another(Order.PRIORITY)
    waiting = PendingJobs(np.array([NOW - 2, NOW - 1, NOW]), np.full(3, 10), np.full(3, 600))
    ranked = Snapshot(NOW, 10, moment.snapshot.running, waiting).in_order_of_rows()
    jobs = [moment.requests[0], *(request(name, 10, 600) for name in "abc")]
    asked = Moment(ranked, moment.policy, jobs, np.array([1, 2, 3]))
    alone = ForwardForecaster("forward", Uniform()).forecast(asked)
    beside = ForwardForecaster("forward", Uniform(), Stream(10)).forecast(asked)
    np.testing.assert_array_equal(alone.wait_s, beside.wait_s)


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match="samples is 0"):
        ForwardForecaster("forward", Uniform(), samples=0)
