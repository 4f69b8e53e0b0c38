"""The self-tuning of dynP on a snapshot, against a plan made second by second, and by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.order_tuning import choose, planned_runtimes, tune_order
from foretime_sim.engine.queue_places import waiting_now
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.policies.policy_switching import Decider, PolicySwitching, Quality
from hypothesis import given
from hypothesis import strategies as st

PROCESSORS = 4
NOW = 1000


@dataclass(frozen=True)
class Case:
    """Running jobs as (processors, age, requested), pending as (wait, processors, requested)."""

    running: tuple[tuple[int, int, int], ...]
    pending: tuple[tuple[int, int, int], ...]

    def snapshot(self) -> Snapshot:
        return Snapshot(
            NOW,
            PROCESSORS,
            RunningJobs(
                _column(NOW - age for _, age, _ in self.running),
                _column(processors for processors, _, _ in self.running),
                _column(requested for _, _, requested in self.running),
            ),
            PendingJobs(
                _column(NOW - wait for wait, _, _ in self.pending),
                _column(processors for _, processors, _ in self.pending),
                _column(requested for _, _, requested in self.pending),
            ),
        )


def _column(values: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(list(values), dtype=np.int64)  # type: ignore[call-overload]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    running = []
    free = PROCESSORS
    for _ in range(draw(st.integers(0, 3))):
        if not free:
            break
        processors = draw(st.integers(1, free))
        free -= processors
        age = draw(st.integers(0, 9))
        running.append((processors, age, age + draw(st.integers(1, 12))))
    pending = draw(
        st.lists(
            st.tuples(st.integers(0, 30), st.integers(1, PROCESSORS), st.integers(1, 12)),
            min_size=2,
            max_size=7,
        )
    )
    return Case(tuple(running), tuple(pending))


# The same second by second ------------------------------------------------------------------------


def _in_order(case: Case, order: Order, first: Sequence[bool]) -> list[int]:
    def key(job: int) -> tuple[float, ...]:
        wait, processors, time = case.pending[job]
        if first[job]:
            return 0, -wait, job
        by = {
            Order.FCFS: -wait,
            Order.SJF: time,
            Order.LJF: -time,
            Order.WFP: -((wait / time) ** 3) * processors,
            Order.XF: -(wait + time) / time,
        }[order]
        return 1, by, -wait, job

    return sorted(range(len(case.pending)), key=key)


def _planned(case: Case, order: Order, first: Sequence[bool]) -> dict[int, int]:
    free = np.full(400, PROCESSORS)
    for processors, age, requested in case.running:
        free[: requested - age] -= processors
    starts = {}
    for job in _in_order(case, order, first):
        _, processors, time = case.pending[job]
        start = next(at for at in range(400) if (free[at : at + time] >= processors).all())
        free[start : start + time] -= processors
        starts[job] = NOW + start
    return starts


def _quality(
    case: Case, quality: Quality, starts: dict[int, int], weight: Sequence[int]
) -> Fraction:
    if quality is Quality.MAKESPAN:
        ends = [starts[job] + each[2] for job, each in enumerate(case.pending)]
        ends += [NOW - age + requested for _, age, requested in case.running]
        return Fraction(max(ends) - NOW)
    total = weights = 0
    for job, (wait, processors, time) in enumerate(case.pending):
        waits = starts[job] - (NOW - wait)
        value = {
            "art": waits + time,
            "wait": waits,
            "sld": max(waits + time, 60) * 10**6 // max(time, 60),
        }[quality.value.removesuffix("ww").replace("slowdown", "sld")]
        counts = weight[job] * (processors if quality.value.endswith("ww") else 1)
        total += counts * value
        weights += counts
    return Fraction(total, weights)


ALL = tuple(order for order in Order if order is not Order.PRIORITY)


@given(
    case=cases(),
    quality=st.sampled_from(Quality),
    decider=st.sampled_from([Decider.SIMPLE, Decider.ADVANCED]),
    current=st.sampled_from(ALL),
    data=st.data(),
)
def test_it_chooses_as_a_plan_second_by_second_does(
    case: Case, quality: Quality, decider: Decider, current: Order, data: st.DataObject
) -> None:
    jobs = len(case.pending)
    weight = data.draw(st.lists(st.integers(1, 5), min_size=jobs, max_size=jobs))
    first = data.draw(st.lists(st.booleans(), min_size=jobs, max_size=jobs))
    switching = PolicySwitching(decider, ALL, quality)
    found = tune_order(
        case.snapshot(),
        switching,
        current,
        weight=_column(weight),
        goes_first=np.array(first),
    )
    values = [_quality(case, quality, _planned(case, order, first), weight) for order in ALL]
    scale = 10**6 if quality in (Quality.SLOWDOWN, Quality.SLDWW) else 1
    assert found.values == pytest.approx([float(value) / scale for value in values])
    best = [order for order, value in zip(ALL, values, strict=True) if value == min(values)]
    stays = decider is Decider.ADVANCED and current in best
    assert found.chosen is found.best is (current if stays else best[0])
    assert (found.waiting, found.case) == (jobs, None)


@given(case=cases(), first_starts=st.integers(1, 4))
def test_a_reduced_future_counts_the_first_starts_alone(case: Case, first_starts: int) -> None:
    switching = PolicySwitching(
        orders=(Order.SJF, Order.LJF), quality=Quality.WAIT, first_starts=first_starts
    )
    found = tune_order(case.snapshot(), switching, Order.SJF)
    nobody = [False] * len(case.pending)
    for order, value in zip(switching.orders, found.values, strict=True):
        starts, place = _planned(case, order, nobody), _in_order(case, order, nobody)
        counted = sorted(starts, key=lambda job: (starts[job], place.index(job)))[:first_starts]
        waits = [starts[job] - (NOW - case.pending[job][0]) for job in counted]
        assert value == pytest.approx(sum(waits) / len(waits))


# By hand ------------------------------------------------------------------------------------------

# All processors are taken for 10 s; then a long job (100 s) that came first, and a short one (1 s).
TWO = Case(((4, 0, 10),), ((20, 4, 100), (10, 4, 1)))
SWITCHING = PolicySwitching()


def test_a_short_job_behind_a_long_one_brings_sjf() -> None:
    """FCFS: long 110 + 20 s from submission to end, short 111 + 10; SJF: 111 + 20 and 11 + 10."""
    found = tune_order(TWO.snapshot(), SWITCHING, Order.FCFS)
    assert found.values == ((130 + 121) / 2, (131 + 21) / 2, (130 + 121) / 2)
    assert (found.current, found.chosen, found.case) == (Order.FCFS, Order.SJF, "7")


def test_a_new_order_must_be_better_by_the_slackness() -> None:
    gain = 1 - 76 / 125.5
    for slackness, chosen in ((gain - 1e-9, Order.SJF), (gain + 1e-9, Order.FCFS)):
        found = tune_order(TWO.snapshot(), replace(SWITCHING, slackness=slackness), Order.FCFS)
        assert (found.best, found.chosen) == (Order.SJF, chosen)


def test_several_qualities_are_weighed_relative_to_the_current_order() -> None:
    both = ((Quality.ARTWW, 1.0), (Quality.MAKESPAN, 3.0))
    found = tune_order(TWO.snapshot(), replace(SWITCHING, quality=both), Order.FCFS)
    assert found.values == pytest.approx((4.0, 76 / 125.5 + 3.0, 4.0))


def test_nobody_within_the_horizon_is_worst() -> None:
    none = tune_order(TWO.snapshot(), replace(SWITCHING, horizon_s=9), Order.LJF)
    assert none.values == (math.inf,) * 3
    assert (none.chosen, none.case) == (Order.LJF, "1")
    some = tune_order(TWO.snapshot(), replace(SWITCHING, horizon_s=10), Order.LJF)
    assert some.values == (130.0, 21.0, 130.0)


def test_one_waiting_job_asks_nobody() -> None:
    alone = Case((), ((5, 1, 10),))
    found = tune_order(alone.snapshot(), SWITCHING, Order.LJF)
    assert (found.chosen, found.waiting, found.case) == (Order.LJF, 1, None)
    assert all(map(math.isnan, found.values))


def test_jobs_that_join_later_do_not_count() -> None:
    snapshot = TWO.snapshot()
    later = replace(snapshot.pending, eligible_time=_column([NOW - 20, NOW + 5]))
    assert waiting_now(replace(snapshot, pending=later)).tolist() == [True, False]


def test_with_samples_the_qualities_are_of_all_of_them() -> None:
    """The long job really takes 100 s, or 2 s: then the order hardly matters."""
    easy = Policy(backfill=Backfill.EASY)
    runtimes = np.array([[10, 100, 1], [10, 2, 1]], dtype=np.int64)
    found = tune_order(TWO.snapshot(), SWITCHING, Order.FCFS, policy=easy, runtimes=runtimes)
    fcfs = (130 + 121 + 32 + 23) / 4
    assert found.values == (fcfs, (131 + 21 + 33 + 21) / 4, fcfs)


def test_what_jobs_are_planned_with() -> None:
    """A running job that has outlived its plan is taken to run to its request."""
    snapshot = Case(((1, 5, 50), (1, 30, 50)), ((0, 1, 40),)).snapshot()
    running = replace(snapshot.running, scheduled_time=_column([20, 20]))
    pending = replace(snapshot.pending, scheduled_time=_column([7]))
    planned = replace(snapshot, running=running, pending=pending)
    slurm = Policy(backfill=Backfill.PLANNING, correction=Correction.SLURM)
    assert planned_runtimes(planned, slurm).tolist() == [[20, 50, 7]]


@pytest.mark.parametrize(
    ("qualities", "advanced", "cases"),
    [
        ((1, 1, 1), "FSL", "1 1 1"),
        ((2, 1, 3), "SSS", "2 2 2"),
        ((1, 2, 3), "FFF", "3 3 3"),
        ((2, 3, 1), "LLL", "4a 4a 4a"),
        ((2, 2, 1), "LLL", "4b 4b 4b"),
        ((3, 2, 1), "LLL", "4c 4c 4c"),
        ((1, 1, 2), "FSF", "6a 6b 6c"),
        ((2, 1, 2), "SSS", "7 7 7"),
        ((1, 2, 1), "FFL", "8a 8b 8c"),
        ((1, 2, 2), "FFF", "9 9 9"),
        ((2, 1, 1), "SSL", "10a 10b 10c"),
        ((math.inf, 2, math.inf), "SSS", "7 7 7"),
        ((math.inf, math.inf, math.inf), "FSL", "1 1 1"),
    ],
)
def test_the_choice_is_that_of_each_row_of_table_1(
    qualities: tuple[float, ...], advanced: str, cases: str
) -> None:
    values = [value if math.isinf(value) else Fraction(value) for value in qualities]
    found = [choose(values, current, Decider.ADVANCED) for current in range(3)]
    assert "".join("FSL"[chosen] for _, chosen in found) == advanced
    assert " ".join(str(case) for case, _ in found) == cases
    for current in range(3):
        assert choose(values, current, Decider.SIMPLE)[1] == values.index(min(values))


def test_what_can_not_be_asked_is_refused() -> None:
    snapshot = TWO.snapshot()
    with pytest.raises(InputError, match="basic compares no schedules"):
        tune_order(snapshot, PolicySwitching(Decider.BASIC), Order.FCFS)
    with pytest.raises(InputError, match="wfp, and is not among fcfs, sjf, ljf"):
        tune_order(snapshot, SWITCHING, Order.WFP)
