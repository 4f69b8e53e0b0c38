"""Conservative backfilling keeps its promises: no job starts later than first planned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import ScheduleError, check, check_promises
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import Backfill, Compression, Conservative
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

MACHINE = 8
# submission gap, processors, actual runtime, overestimate
rows = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 7, 60]),
        st.integers(1, MACHINE),
        st.integers(1, 300),
        st.integers(0, 300),
    ),
    min_size=1,
    max_size=40,
)
reservations = st.lists(
    st.builds(
        AdvanceReservation,
        start=st.integers(0, 600),
        duration=st.integers(1, 200),
        processors=st.integers(1, 2),
    ),
    max_size=4,
)


def workload_of(jobs: Sequence[tuple[int, ...]], machine: int) -> Workload:
    gaps, processors, actual, more = np.array(jobs, dtype=np.int64).T
    names = np.arange(len(jobs))
    return Workload(
        "jobs", machine, None, names, np.cumsum(gaps), processors, actual, actual + more
    )


@given(
    jobs=rows,
    exact=st.booleans(),
    compression=st.sampled_from([Compression.RESERVATION_ORDER, Compression.ONE_BY_ONE]),
    claims=reservations,
    event_order=st.sampled_from(EventOrder),
)
@settings(max_examples=300)
def test_never_later_than_first_planned(
    jobs: Sequence[tuple[int, ...]],
    exact: bool,
    compression: Compression,
    claims: list[AdvanceReservation],
    event_order: EventOrder,
) -> None:
    """With exact and with overestimated runtimes."""
    if exact:
        jobs = [(*job[:3], 0) for job in jobs]
    workload = workload_of(jobs, MACHINE)
    policy = Policy(backfill=Conservative(compression), event_order=event_order)
    check_promises(workload, simulate(workload, policy, reservations=claims, check=True))


@given(jobs=rows)
@settings(max_examples=50)
def test_exact_runtimes_start_exactly_as_planned(jobs: Sequence[tuple[int, ...]]) -> None:
    """Nothing ever moves, however it would be compressed."""
    workload = workload_of([(*job[:3], 0) for job in jobs], MACHINE)
    for compression in Compression:
        policy = Policy(backfill=Conservative(compression))
        schedule = simulate(workload, policy)
        assert schedule.first_planned_start is not None
        np.testing.assert_array_equal(schedule.start_time, schedule.first_planned_start)


# The third and the fourth job can't both gain from the early end of the first.
CONFLICT = [(0, 2, 4, 6), (0, 2, 6, 0), (0, 4, 5, 0), (0, 2, 4, 0)]


@pytest.mark.parametrize("simulated_by", [simulate, reference.simulate], ids=["core", "plain"])
def test_only_reinserting_by_submission_breaks_a_promise(simulated_by: object) -> None:
    """J1 ends at 4 instead of 10; J2 runs until 6. J3 (4 wide) was promised 10, J4 (2 wide) 6.

    By submission J3 comes first and takes 6 to 11; J4 (4 s) no longer fits before it.
    """
    assert callable(simulated_by)
    workload = workload_of(CONFLICT, 4)
    starts = {
        # J4 moves to 4, and J3 to its end.
        Compression.RESERVATION_ORDER: [0, 0, 8, 4],
        Compression.SUBMISSION_ORDER: [0, 0, 6, 11],
        # J3 is tried before J4 has moved; the end of J2 brings the second try.
        Compression.ONE_BY_ONE: [0, 0, 8, 4],
    }
    for compression, expected in starts.items():
        policy = Policy(backfill=Conservative(compression))
        schedule = simulated_by(workload, policy)
        assert schedule.first_planned_start.tolist() == [0, 0, 10, 6]
        assert schedule.start_time.tolist() == expected
        if compression is Compression.SUBMISSION_ORDER:
            with pytest.raises(ScheduleError, match="job 3 was promised 6 and started at 11"):
                check_promises(workload, schedule)
        else:
            check_promises(workload, schedule)


def test_an_underestimate_breaks_a_promise() -> None:
    """J1 was to end at 10, and runs until 20."""
    workload = workload_of([(0, 4, 20, 10), (0, 4, 5, 0)], 4)
    policy = Policy(backfill=Backfill.CONSERVATIVE)
    schedule = simulate(workload, policy, np.array([10, 5]), check=True)
    assert schedule.first_planned_start is not None
    assert schedule.first_planned_start.tolist() == [0, 10]
    assert schedule.start_time.tolist() == [0, 20]


def test_without_plans_there_are_no_promises() -> None:
    workload = workload_of(CONFLICT, 4)
    schedule = simulate(workload)
    assert schedule.first_planned_start is None
    with pytest.raises(ScheduleError, match="nothing was promised"):
        check_promises(workload, schedule)


def test_a_broken_reservation_is_named() -> None:
    workload = workload_of([(0, 3, 10, 0)], 4)
    claim = AdvanceReservation(5, 5, 2)
    lawless = simulate(workload)
    with pytest.raises(ScheduleError, match="5 processors in use or reserved at 5 s"):
        check(workload, lawless, workload.requested_time, [claim])
    kept = simulate(workload, reservations=[claim], check=True)
    assert kept.start_time.tolist() == [10]
