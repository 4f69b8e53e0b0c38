"""The choice between forecasters: worked by hand, over states, and with some that break in."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.best_of import BestOf, ChoiceSettings, class_of
from foretime_sim.waits.forecaster import LEVELS, MEDIAN, WaitForecasts
from foretime_sim.waits.moment import Moment
from hypothesis import given
from hypothesis import strategies as st

DAY_S = 86_400
TWO = ChoiceSettings(half_life_s=DAY_S, fewest=2)


class Says:
    """Says the same wait of every job; nothing, if it has none."""

    oracle = False

    def __init__(self, name: str, wait_s: float = math.nan) -> None:
        self.name, self.wait_s = name, wait_s
        self.told: list[str] = []
        self.asked = 0

    def forecast(self, moment: Moment) -> WaitForecasts:
        self.asked += 1
        asked = len(moment.asked)
        starts_now = np.full(asked, math.nan if math.isnan(self.wait_s) else 0.0)
        return WaitForecasts(np.full((asked, len(LEVELS)), self.wait_s), starts_now)

    def submitted(self, job: JobRequest) -> None:
        self.told.append(f"submitted {job.job_id}")

    def started(self, job: JobRequest, start_time: int) -> None:
        self.told.append(f"started {job.job_id} at {start_time}")

    def finished(self, job: FinishedJob) -> None:
        self.told.append(f"finished {job.request.job_id}")


class Notes(Says):
    """Learns from what it is asked, unless it is asked what if."""

    considered = 0

    def consider(self, moment: Moment) -> WaitForecasts:
        self.considered += 1
        return Says.forecast(self, moment)


def request(name: object, submit_time: int = 0) -> JobRequest:
    return JobRequest(str(name), "ann", None, 1, 3_600, submit_time)


def moment_of(now: int, *jobs: JobRequest) -> Moment:
    ones = np.ones(len(jobs), dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    pending = PendingJobs(np.array([job.submit_time for job in jobs]), ones, 3_600 * ones)
    snapshot = Snapshot(now, 10, RunningJobs(none, none, none), pending)
    return Moment(snapshot, Policy(), jobs, np.arange(len(jobs)))


def waits_for(best: BestOf, name: object, wait_s: int, submit_time: int = 0) -> None:
    """Let a job be submitted, asked about, and started after a wait."""
    job = request(name, submit_time)
    best.submitted(job)
    best.forecast(moment_of(submit_time, job))
    best.started(job, submit_time + wait_s)


def said(best: BestOf, now: int = 0) -> float:
    return float(best.consider(moment_of(now, request("if", now))).wait_s[0, MEDIAN])


def names(best: BestOf) -> list[str]:
    return [forecaster.name for forecaster in best.ranked()]


def days(best: BestOf) -> dict[str, list[list[float]]]:
    """Give of each day what each lost beyond the first, summed, and of how many jobs."""
    found: dict[str, list[list[float]]] = best.state()["all_losses"]
    return found


def judged(best: BestOf) -> list[float]:
    """Give of how many jobs each was judged, faded or not."""
    return np.sum([outcomes for _, outcomes in days(best).values()], axis=0).tolist() or [0, 0]


def test_the_better_one_is_chosen_from_its_faded_losses() -> None:
    """A says 10 min and B 100 min of jobs that wait for 100 min: A is one off in log10.

    Below by one, the pinball loss is the mean of the levels, 1/2. Outcomes count half after a day.
    """
    best = BestOf([Says("a", 600), Says("b", 6_000)], "best", TWO)
    waits_for(best, 1, 6_000)
    waits_for(best, 2, 6_000, DAY_S)
    assert days(best)["0"] == [[0, pytest.approx(-0.5)], [1, 1]]
    assert names(best) == ["a", "b"]  # 1.5 outcomes are too few
    assert said(best) == 600
    waits_for(best, 3, 6_000, DAY_S)
    assert days(best)["1"] == [[0, pytest.approx(-1)], [2, 2]]
    assert names(best) == ["b", "a"]
    assert said(best) == 6_000
    waits_for(best, 4, 600, 3 * DAY_S)
    assert names(best) == ["a", "b"]  # of 2.5 two days ago 0.6 are left, and one is new
    # A was right of that one and B is of the next: -1.25 / 4 + 0.5 - 0.5 over 2.6.
    waits_for(best, 5, 6_000, 3 * DAY_S)
    assert names(best) == ["b", "a"]
    waits_for(best, 6, 600, 3 * DAY_S)
    assert names(best) == ["a", "b"]


def test_days_that_count_little_are_dropped() -> None:
    best = BestOf([Says("a", 600), Says("b", 6_000)], "best", TWO)
    for day in range(12):
        waits_for(best, day, 6_000, day * DAY_S)
    assert list(days(best)) == [str(day) for day in range(2, 12)]
    best.forecast(moment_of(DAY_S, late := request("late", DAY_S)))
    best.started(late, DAY_S)
    assert len(days(best)) == 10


SURE = ChoiceSettings(half_life_s=10**9, fewest=8, fewest_days=3, sureness=2)


def test_chance_does_not_take_the_word_of_the_first_away() -> None:
    """Of two jobs a day B is right of one or two: it loses 0, or 1/2 less on average.

    Days are what varies: of eight, five good ones, it loses 0.31 less, with an error of 0.09.
    """
    both = {
        sureness: BestOf(
            [Says("a", 600), Says("b", 6_000)], "best", replace(SURE, sureness=sureness)
        )
        for sureness in (0, 2, 4)
    }
    for best in both.values():
        for day, other_s in enumerate([6_000, 600] * 3 + [6_000] * 2):
            waits_for(best, f"{day}-1", 6_000, day * DAY_S)
            waits_for(best, f"{day}-2", other_s, day * DAY_S)
    assert {sureness: names(best)[0] for sureness, best in both.items()} == {0: "b", 2: "b", 4: "a"}
    with pytest.raises(InputError, match="sureness is -1"):
        replace(SURE, sureness=-1)
    with pytest.raises(InputError, match="fewest_days is -1"):
        replace(SURE, fewest_days=-1)


def test_a_thousand_outcomes_of_two_days_are_chance() -> None:
    best = BestOf([Says("a", 600), Says("b", 6_000)], "best", SURE)
    for day in (0, 1):
        for job in range(200):
            waits_for(best, f"{day}-{job}", 6_000, day * DAY_S)
    assert names(best) == ["a", "b"]
    waits_for(best, "a third day", 6_000, 2 * DAY_S)
    assert names(best) == ["b", "a"]


def test_a_class_of_jobs_is_judged_by_itself_once_it_can_be() -> None:
    """B is right of the queue "debug" and A of all others; the larger part decides for the rest."""
    best = BestOf([Says("a", 600), Says("b", 6_000)], "best", TWO)
    debug = replace(request("d"), queue="debug")
    for number in range(20):
        job = replace(debug, job_id=f"d{number}") if number < 6 else request(number)
        best.forecast(moment_of(0, job))
        best.started(job, 6_000 if number < 6 else 600)
    assert names(best) == ["a", "b"]
    assert [each.name for each in best.ranked(("debug", 0))] == ["b", "a"]
    assert [each.name for each in best.ranked(("debug", 3))] == ["a", "b"]  # wider ones
    both = moment_of(7_000, replace(debug, job_id="x"), request("y"))
    assert best.forecast(both).wait_s[:, MEDIAN].tolist() == [6_000, 600]
    assert best.spoke == ("a", "b")
    assert best.consider(both).wait_s[:, MEDIAN].tolist() == [6_000, 600]
    assert class_of(replace(debug, processors=4)) == ("debug", 1) != class_of(debug)


def test_classes_are_bounded() -> None:
    best = BestOf([Says("a", 600), Says("b", 6_000)], "best", TWO)
    for number in range(250):
        job = replace(request(number), queue=f"queue {number % 230}")
        best.forecast(moment_of(0, job))
        best.started(job, 600)
    kept = [queue for queue, *_ in best.state()["losses"]]
    assert len(kept) == 200
    assert kept[-1] == "queue 19"


def test_all_are_told_and_the_best_alone_is_asked_what_if() -> None:
    best = BestOf([one := Says("one", 600), other := Notes("other", 6_000)], "best", TWO)
    for number in range(3):
        waits_for(best, number, 6_000)
    best.submitted(request("x"))
    best.finished(FinishedJob(request("x"), None, 9, 0, Ending.NEVER_STARTED))
    assert one.told == other.told
    assert one.told[-3:] == ["started 2 at 6000", "submitted x", "finished x"]
    before = one.asked, other.asked
    assert said(best) == 6_000
    assert (one.asked, other.asked, other.considered) == (before[0], before[1] + 1, 1)


def test_who_has_no_answer_is_followed_by_the_next() -> None:
    best = BestOf([Says("none"), Says("some", 700)], "best", TWO)
    found = best.forecast(moment_of(0, request("a"), request("b")))
    assert (found.wait_s == 700).all()
    assert (found.starts_now == 0).all()
    assert said(best) == 700
    assert best.spoke == ("some",)
    assert not BestOf([Says("none")], "best").forecast(moment_of(0, request("a"))).answered.any()


def test_losses_are_of_jobs_of_which_both_had_something_to_say() -> None:
    """B begins to answer when waits become harder to forecast: that does not count against it."""
    a, b = Says("a", 600), Says("b")
    best = BestOf([a, b], "best", TWO)
    for number in range(5):
        waits_for(best, number, 600)
    assert judged(best) == [5, 0]
    b.wait_s = 6_000
    for number in range(5, 9):
        waits_for(best, number, 60_000)
    assert judged(best) == [9, 4]
    assert names(best) == ["b", "a"]
    # With the first silent, the others are held against the first of them.
    a.wait_s = math.nan
    waits_for(best, "c", 6_000, 3 * DAY_S)
    assert days(best)["3"] == [[0, 0], [0, 1]]


def test_a_withdrawn_job_and_a_what_if_tell_nothing() -> None:
    best = BestOf([Says("a", 600), Says("b", 6_000)], "best", TWO)
    job = request("gone")
    best.forecast(moment_of(0, job))
    best.finished(FinishedJob(job, None, 50, 0, Ending.NEVER_STARTED))
    best.started(job, 70)
    best.consider(moment_of(0, request("if")))
    best.started(request("if"), 6_000)
    assert judged(best) == [0, 0]
    assert best.state()["said"] == {}


def test_the_first_word_counts_and_a_requeued_job_waits_anew() -> None:
    best = BestOf([a := Says("a", 600), Says("b", 6_000)], "best", TWO)
    job = request("x")
    best.forecast(moment_of(100, job))
    a.wait_s = 6_000
    best.forecast(moment_of(200, job))
    best.started(job, 50)  # before it was asked about: it was put back since
    assert judged(best) == [0, 0]
    best.started(job, 6_100)
    assert days(best)["0"][0] == [0, pytest.approx(-0.5)]


def test_an_array_does_not_outvote_everybody() -> None:
    best = BestOf([Says("a", 600), Says("b", 6_000)], "best", TWO)
    tasks = [replace(request(f"7_{task}"), array_id="7") for task in range(50)]
    best.forecast(moment_of(0, *tasks, request("alone"), request("another")))
    assert list(best.state()["said"]) == ["7_0", "alone", "another"]
    for job in (*tasks, request("alone")):
        best.started(job, 600)
    assert judged(best) == [2, 2]
    again = BestOf([Says("a", 600), Says("b", 6_000)], "best", TWO)
    again.restore(json.loads(json.dumps(best.state())))
    # The next task has its turn once the one before has started.
    for each in (best, again):
        each.forecast(moment_of(700, *tasks[1:3]))
        each.forecast(moment_of(800, *tasks[1:3]))
        assert list(each.state()["said"]) == ["another", "7_1"]


def test_memory_is_bounded() -> None:
    best = BestOf([Says("a", 600)], "best", ChoiceSettings(remembered=3))
    best.forecast(moment_of(0, *map(request, range(5))))
    assert list(best.state()["said"]) == ["2", "3", "4"]


WAITS = st.lists(st.tuples(st.integers(1, 20_000), st.integers(0, 50_000)), max_size=12)


@given(WAITS, st.floats(1, 1e5), st.floats(1, 1e5), st.floats(1, 1e5))
def test_the_best_is_who_lost_least(
    jobs: list[tuple[int, int]], one: float, two: float, three: float
) -> None:
    """Without forgetting, the mean loss on all outcomes decides; and a state carries it over."""
    said_s = {"one": one, "two": two, "three": three}
    forever = ChoiceSettings(half_life_s=10**12, fewest=1)
    best = BestOf([Says(*each) for each in said_s.items()], "best", forever)
    now, losses = 0, dict.fromkeys(said_s, 0.0)
    for number, (passed, wait_s) in enumerate(jobs):
        waits_for(best, number, wait_s, now)
        for name, told in said_s.items():
            told = float(np.float32(told))
            off = math.log10(max(wait_s, 60)) - math.log10(max(told, 60))
            losses[name] += abs(off) / 2  # all levels alike, and symmetric
        now += passed
    if jobs:
        order = [losses[name] for name in names(best)]
        assert order == pytest.approx(sorted(order), abs=1e-3)
    best.forecast(moment_of(now, request("waits", now)))
    again = BestOf([Says(*each) for each in said_s.items()], "best", forever)
    again.restore(json.loads(json.dumps(best.state())))
    assert again.state() == best.state()
    for each in (best, again):
        each.started(request("waits", now), now + 777)
    assert again.state() == best.state()
    assert names(again) == names(best)


def test_a_state_of_others_is_refused() -> None:
    state = BestOf([Says("a", 600)], "best").state()
    for other in (
        BestOf([Says("b", 600)], "best"),
        BestOf([Says("a", 600)], "best", TWO),
        BestOf([Says("a", 600), Says("b", 600)], "best"),
    ):
        with pytest.raises(StateError, match="begin anew"):
            other.restore(state)
    with pytest.raises(StateError, match="begin anew"):
        BestOf([Says("a", 600)], "best").restore({**state, "choice": 0})


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(InputError, match="half_life_s is 0: give more than 0"):
        ChoiceSettings(half_life_s=0)
    with pytest.raises(InputError, match="one forecaster or more"):
        BestOf([], "best")
