"""Forecasters are told and asked in order, of what has happened only, under any policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.plan_forecaster import PlanForecaster
from foretime_sim.waits.scores.moments import Asking, ask_forecasters, sampled_evenly
from foretime_sim.waits.scores.wait_sources import LoggedWaits, SimulatedWaits, with_known_waits
from foretime_sim.workloads.workload import Workload
from hypothesis import given
from hypothesis import strategies as st

from tests.support.workloads.small_workloads import workloads

REPOSITORY = Path(__file__).resolve().parents[3]
PROCESSORS = 8
KINDS = ("ends", "submissions", "moments", "starts")  # at one second, in this order


class Watch:
    """Answers nothing, and fails when it is told something out of order."""

    name = "watch"
    oracle = False

    def __init__(self) -> None:
        self.last = (-1, 0)
        self.waiting: set[str] = set()
        self.running: dict[str, int] = {}
        self.told = dict.fromkeys(KINDS, 0)

    def note(self, time: int, kind: str) -> None:
        stamp = (time, KINDS.index(kind))
        assert stamp >= self.last, kind
        self.last = stamp
        self.told[kind] += 1

    def forecast(self, moment: Moment) -> WaitForecasts:
        self.note(moment.now, "moments")
        ids = [job.job_id for job in moment.requests]
        running = len(moment.snapshot.running)
        assert set(ids[:running]) == set(self.running)
        assert set(ids[running:]) == self.waiting
        assert all(
            moment.snapshot.running.start_time[at] == self.running[ids[at]] for at in range(running)
        )
        asked = len(moment.asked)
        return WaitForecasts(np.full((asked, len(LEVELS)), np.nan), np.full(asked, np.nan))

    def submitted(self, job: JobRequest) -> None:
        self.note(job.submit_time, "submissions")
        self.waiting.add(job.job_id)

    def started(self, job: JobRequest, start_time: int) -> None:
        self.note(start_time, "starts")
        self.waiting.remove(job.job_id)
        self.running[job.job_id] = start_time

    def finished(self, job: FinishedJob) -> None:
        start = self.running.pop(job.request.job_id)
        assert (start, job.end_time) == (job.start_time, start + job.actual_runtime)
        if job.end_time > start:  # else it is told right after the start
            self.note(job.end_time, "ends")


def waited(workload: Workload, wait_s: list[int]) -> Workload:
    return replace(workload, logged_wait=np.ma.MaskedArray(np.array(wait_s, dtype=np.int64)))


@given(data=st.data(), workload=workloads(PROCESSORS))
def test_everybody_is_told_in_order_under_any_policy(
    data: st.DataObject, workload: Workload, any_policy: st.SearchStrategy[Policy]
) -> None:
    policy = replace(data.draw(any_policy), event_order=EventOrder.PER_TIMESTEP)
    asking = Asking(looks_s=(1, 7, 60), every_s=50)
    watch = Watch()
    records = ask_forecasters(SimulatedWaits(workload, policy), [watch], asking)
    assert watch.told["submissions"] == watch.told["starts"] == len(workload)
    assert not watch.running

    # The looks have not changed the schedule, and what came of each is what it says.
    start_time = simulate(workload, policy).start_time
    np.testing.assert_array_equal(start_time[records.job], records.made_at + records.waited_s)
    assert (records.waited_s >= 0).all()
    np.testing.assert_array_equal(
        records.after_s, records.made_at - workload.submit_time[records.job]
    )
    at_submission = records.after_s == 0
    assert set(records.job[at_submission]) == set(range(len(workload)))
    for look in (1, 7, 60):
        still = np.flatnonzero(start_time - workload.submit_time >= look)
        assert set(still) <= set(records.job[records.after_s == look])


@given(workload=workloads(PROCESSORS), waits=st.lists(st.integers(0, 300), min_size=25))
def test_logged_waits_are_told_in_order(workload: Workload, waits: list[int]) -> None:
    logged = waited(workload, waits[: len(workload)])
    watch = Watch()
    records = ask_forecasters(LoggedWaits(logged, Policy()), [watch], Asking(looks_s=(5, 60)))
    np.testing.assert_array_equal(records.waited_s, np.array(waits)[records.job] - records.after_s)
    assert watch.told["starts"] == len(workload)


def test_an_estimator_plans_the_schedule(kth: Workload) -> None:
    jobs = kth.head(1_000)
    policy = Policy(backfill=Backfill.EASY_SJBF)
    source = SimulatedWaits(jobs, policy, estimator_of("similar", jobs))
    records = ask_forecasters(source, [], Asking(sampled_evenly(jobs, 100, seed=1)))
    assert len(records) == 100
    whole = simulate_with_estimator(jobs, policy, estimator_of("similar", jobs))
    np.testing.assert_array_equal(whole.start_time[records.job], records.made_at + records.waited_s)


@given(workload=workloads(PROCESSORS), order=st.sampled_from([Order.FCFS, Order.SJF]))
def test_perfect_runtimes_are_exact_where_nobody_overtakes(
    workload: Workload, order: Order
) -> None:
    """Without backfilling FCFS jobs depend on those before them only; under SJF all the last do."""
    perfect = PlanForecaster("perfect", estimator_of("actual", workload))
    source = SimulatedWaits(workload, Policy(order, Backfill.NONE))
    records = ask_forecasters(source, [perfect], Asking(looks_s=(1, 20)))
    said = records.of("perfect")
    np.testing.assert_array_equal(said.starts_now, said.wait_s[:, 0] == 0)
    nobody_after = records.made_at >= workload.submit_time[-1]
    exact = said.wait_s == records.waited_s[:, None]
    assert exact[nobody_after if order is Order.SJF else slice(None)].all()


def test_what_squeue_shows_by_hand() -> None:
    """Ten processors: one job holds all until 100 and asked for 500; two wait behind it."""
    jobs = Workload(
        name="by hand",
        machine_processors=10,
        unix_start_time=None,
        job_id=np.array([1, 2, 3]),
        submit_time=np.array([0, 10, 20]),
        processors=np.array([10, 6, 6]),
        actual_runtime=np.array([100, 50, 50]),
        requested_time=np.array([500, 200, 200]),
    )
    plan = PlanForecaster("plan-req", estimator_of("requested", jobs))
    records = ask_forecasters(SimulatedWaits(jobs, Policy()), [plan], Asking(looks_s=(60,)))
    said = dict(zip(zip(records.job, records.after_s, strict=True), records.wait_s[0], strict=True))
    assert {key: set(value) for key, value in said.items()} == {
        (0, 0): {0},
        (1, 0): {490},
        (2, 0): {680},
        (1, 60): {430},
        (2, 60): {620},
    }
    assert records.waited_s.tolist() == [0, 90, 130, 30, 70]
    assert records.started_now.tolist() == [True, False, False, False, False]


def test_a_log_that_hides_a_wait_is_refused_or_cut(kth: Workload) -> None:
    jobs = kth.head(50)
    assert jobs.logged_wait is not None
    hidden = replace(jobs, logged_wait=np.ma.MaskedArray(jobs.logged_wait, mask=np.arange(50) == 7))
    with pytest.raises(InputError, match="not every job has a logged wait"):
        LoggedWaits(hidden, Policy())
    kept, left_out = with_known_waits(hidden)
    assert (len(kept), left_out) == (49, 1)
    assert len(ask_forecasters(LoggedWaits(kept, Policy()), [])) == 49


def test_a_machine_smaller_than_what_was_in_use_is_as_large_as_that() -> None:
    jobs = Workload(
        name="over",
        machine_processors=4,
        unix_start_time=None,
        job_id=np.array([1, 2, 3]),
        submit_time=np.array([0, 0, 10]),
        processors=np.array([3, 3, 4]),
        actual_runtime=np.array([10, 10, 10]),
        requested_time=np.array([10, 10, 10]),
    )
    assert LoggedWaits(waited(jobs, [0, 0, 0]), Policy()).machine_processors == 6
    assert LoggedWaits(waited(jobs, [0, 10, 10]), Policy()).machine_processors == 4


def test_what_can_not_be_asked_is_refused(kth: Workload) -> None:
    jobs = kth.head(5)
    with pytest.raises(InputError, match="take per-timestep"):
        SimulatedWaits(jobs, Policy(event_order=EventOrder.PER_EVENT))
    with pytest.raises(InputError, match="names of their own"):
        ask_forecasters(SimulatedWaits(jobs, Policy()), [Watch(), Watch()])
    with pytest.raises(InputError, match="give seconds from 1"):
        Asking(looks_s=(0,))
    with pytest.raises(InputError, match="of 5 jobs"):
        ask_forecasters(SimulatedWaits(jobs, Policy()), [], Asking(np.ones(4, dtype=np.bool_)))


def test_the_gap_that_forecasts_are_to_close(kth: Workload) -> None:
    """docs/forward.md has these figures; they are those of earlier measurements elsewhere."""
    plans = [
        PlanForecaster("plan-req", estimator_of("requested", kth)),
        PlanForecaster("perfect", estimator_of("actual", kth)),
    ]
    records = ask_forecasters(SimulatedWaits(kth, Policy()), plans)
    waited = records.waited_s
    figures = [f"{np.mean(waited == 0):.1%}"]
    for method in records.methods:
        said = records.of(method).wait_s[:, 0]
        near = np.abs(said - waited) <= 600
        likely = (said >= waited / 2) & (said <= waited * 2)
        figures.append(f"{np.mean(near):.1%}, {np.mean(likely[waited > 600]):.1%}")
    page = (REPOSITORY / "docs" / "forward.md").read_text()
    assert "| KTH | " + " | ".join(figures) + " |" in page
