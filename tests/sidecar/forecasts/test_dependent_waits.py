"""Past waits of a job that waits for others count from when these are forecast to start or end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sidecar.forecasts import production_forecaster
from foretime_sidecar.forecasts.dependent_waits import DependentWaits
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sim.engine.admission import After, Dependencies
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS, MEDIAN, WaitForecasts
from foretime_sim.waits.moment import Moment

NOW = 1_700_000_000
RUNTIME_S = 1_000
RAN_S = 600
WAITS = np.arange(1.0, len(LEVELS) + 1) * 100
"""What past waits say of every job."""
LEFT = np.full(len(LEVELS), RUNTIME_S - RAN_S)


class Past:
    """Says the same of everybody, and whom it was asked about so that it would learn."""

    name = "past"
    oracle = False

    def __init__(self) -> None:
        self.learned_from: list[str] = []

    def forecast(self, moment: Moment) -> WaitForecasts:
        self.learned_from += [moment.requests[column].job_id for column in moment.asked.tolist()]
        return self.consider(moment)

    def consider(self, moment: Moment) -> WaitForecasts:
        asked = len(moment.asked)
        made = WaitForecasts(np.tile(WAITS, (asked, 1)), np.full(asked, 0.1))
        return made.later(moment.to_come_s())

    def submitted(self, job: JobRequest) -> None: ...

    def started(self, job: JobRequest, start_time: int) -> None: ...

    def finished(self, job: FinishedJob) -> None: ...


def runtimes(jobs: Sequence[JobRequest], age: Int64Array, levels: Sequence[float]) -> Float64Array:
    return np.full((len(jobs), len(levels)), float(RUNTIME_S))


def moment_of(
    *depends: tuple[int, int, After, int, int], begins_s: int = 0, now: int = NOW
) -> Moment:
    """Column 0 runs, 1 to 4 wait; the last begins so much later."""
    ones = np.ones(4, dtype=np.int64)
    eligible = np.array([now, now, now, now + begins_s])
    pending = PendingJobs(
        now * ones,
        ones,
        3_600 * ones,
        eligible_time=eligible,
        dependencies=Dependencies.of_rows(depends) if depends else None,
    )
    running = RunningJobs(np.array([now - RAN_S]), ones[:1], 3_600 * ones[:1])
    requests = [JobRequest(str(each), "ann", None, 1, 3_600, now, "main") for each in range(5)]
    snapshot = Snapshot(now, 64, running, pending)
    return Moment(snapshot, Policy(), requests, np.arange(1, 5))


def forecast(moment: Moment) -> WaitForecasts:
    return DependentWaits(Past(), runtimes).forecast(moment)


def test_it_counts_from_the_end_or_the_start_of_what_it_waits_for() -> None:
    made = forecast(moment_of((1, 0, After.END, 0, 0), (2, 1, After.START, 300, 0)))
    assert made.wait_s[0].tolist() == WAITS.tolist()
    assert made.wait_s[1].tolist() == (WAITS + LEFT).tolist()
    assert made.wait_s[2].tolist() == (2 * WAITS + 300).tolist()
    assert made.starts_now.tolist() == [0.1, 0.0, 0.0, 0.1]


def test_those_that_others_wait_for_come_first_in_a_chain() -> None:
    made = forecast(moment_of((0, 2, After.END, 0, 0), (1, 0, After.END, 0, 0)))
    assert made.wait_s[1, MEDIAN] == WAITS[MEDIAN] + LEFT[MEDIAN]
    # Job 2's end, RUNTIME_S after its start, lets job 1 go.
    expected = made.wait_s[1] + RUNTIME_S + WAITS
    assert made.wait_s[0] == pytest.approx(expected)
    assert (np.diff(made.wait_s, axis=1) >= 0).all()


@pytest.mark.parametrize(("any_suffices", "pick"), [(0, np.maximum), (1, np.minimum)])
def test_all_must_have_happened_or_any(any_suffices: int, pick: np.ufunc) -> None:
    on = [(2, each, After.END, 0, any_suffices) for each in (0, 1)]
    made = forecast(moment_of(*on))
    expected = pick(LEFT, WAITS + RUNTIME_S) + WAITS
    assert made.wait_s[2] == pytest.approx(expected)


def test_what_has_happened_or_is_not_asked_about_keeps_nobody() -> None:
    moment = moment_of((1, 0, After.START, 60, 0), (2, 1, After.END, 0, 0))
    made = DependentWaits(Past(), runtimes).forecast(
        Moment(moment.snapshot, moment.policy, moment.requests, np.array([2, 3]))
    )
    assert made.wait_s.tolist() == [WAITS.tolist()] * 2
    assert made.starts_now.tolist() == [0.1, 0.1]


def test_the_later_of_its_begin_and_the_jobs_before_it_counts() -> None:
    depends = (3, 0, After.END, 0, 0)
    for begins_s in (100, 5_000):
        made = forecast(moment_of(depends, begins_s=begins_s))
        assert made.wait_s[3].tolist() == (WAITS + max(begins_s, LEFT[0])).tolist()


def test_nothing_is_learned_of_a_job_until_it_is_let_go() -> None:
    past = Past()
    made = DependentWaits(past, runtimes)
    made.forecast(moment_of((1, 0, After.END, 0, 0)))
    assert past.learned_from == ["1", "3", "4"]
    made.consider(moment_of((1, 0, After.END, 0, 0)))
    assert past.learned_from == ["1", "3", "4"]
    made.forecast(moment_of())
    assert past.learned_from[3:] == ["1", "2", "3", "4"]


def test_what_has_no_answer_stays_without_one() -> None:
    class Silent(Past):
        def consider(self, moment: Moment) -> WaitForecasts:
            return WaitForecasts.none(len(moment.asked))

    made = DependentWaits(Silent(), runtimes)
    depends = (1, 0, After.END, 0, 0), (2, 1, After.END, 0, 0)
    assert not made.forecast(moment_of(*depends)).answered.any()


def test_past_waits_are_served_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs wait two hours each, though the machine is free, so that past waits have the word."""
    monkeypatch.setattr(production_forecaster, "can_learn_waits", lambda: False)
    served = CalibratedBest(20_000)
    now = NOW
    for number in range(300):
        job = JobRequest(f"past {number}", "ann", None, 1, 3_600, now, "main")
        moment = moment_of(now=now)
        one = Moment(moment.snapshot, Policy(), [*moment.requests[:-1], job], np.array([4]))
        served.submitted(job)
        served.forecast(one)
        now += 7_200
        served.started(job, now)
    moment = moment_of((1, 0, After.END, 0, 0), (2, 1, After.END, 0, 0), now=now)
    made = served.forecast(moment)
    assert not served.basis(4).runs_queue
    medians = made.wait_s[:, MEDIAN]
    # No runtime is known: up to the limit of an hour, of which ten minutes are over.
    assert 7_200 <= medians[0] < medians[1] <= 7_200 * 1.5
    assert 14_400 <= medians[2] <= 14_400 * 1.5
