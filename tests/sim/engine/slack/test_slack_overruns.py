"""Jobs whose requested time is up (Talby and Feitelson 1999, section 4.7): by hand, and by law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.schedule import Schedule, ScheduleError, check
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import Slack
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.policies.slack import Overruns, SlackJobs, SlackSettings
from foretime_sim.reference import flat as reference
from foretime_sim.reference.slack import SlackPlan
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.engine.families.test_families import workload_of
from tests.sim.engine.slack.test_slack_laws import MACHINE, SETTINGS

PATIENT = SlackSettings(average_wait_s=100.0)
LATE = (0, 4, 15, 10)
"""Runs for 15 s, asked for 10."""


def run(
    jobs: Sequence[tuple[int, ...]],
    overruns: Overruns,
    chosen: SlackSettings = PATIENT,
    slack_jobs: SlackJobs | None = None,
    machine: int = 4,
) -> Schedule:
    workload = workload_of(jobs, machine)
    policy = Policy(backfill=Slack(replace(chosen, overruns=overruns)))
    found = reference.simulate(workload, policy, slack_jobs=slack_jobs)
    check(workload, found, workload.requested_time, may_overrun=overruns is not Overruns.KILL)
    return found


@pytest.mark.parametrize(
    ("overruns", "end"), [(Overruns.KILL, 10), (Overruns.KILL_BLOCKING, 15), (Overruns.EXTEND, 15)]
)
def test_where_nobody_waits_only_kill_ends_a_late_job(overruns: Overruns, end: int) -> None:
    found = run([LATE], overruns)
    assert found.end_time.tolist() == [end]
    assert found.killed.tolist() == [end < 15]


@pytest.mark.parametrize(
    ("overruns", "end"), [(Overruns.KILL, 10), (Overruns.KILL_BLOCKING, 10), (Overruns.EXTEND, 15)]
)
def test_where_somebody_waits_only_extend_lets_a_late_job_finish(
    overruns: Overruns, end: int
) -> None:
    """Five extensions of 1 s, each of which costs far less than to kill."""
    found = run([LATE, (1, 4, 10, 10)], overruns)
    assert found.end_time.tolist() == [end, end + 10]
    assert found.killed.tolist() == [end < 15, False]
    assert found.corrections[0] == 0


def test_a_spared_job_is_killed_when_somebody_comes() -> None:
    found = run([LATE, (12, 1, 10, 10)], Overruns.KILL_BLOCKING)
    assert found.end_time.tolist() == [12, 22]


def test_only_what_blocks_is_killed() -> None:
    """Of three that are over, those go that are over for longest, until there is room."""
    jobs = [(0, 1, 90, 12), (0, 1, 90, 10), (0, 2, 90, 11), (20, 2, 5, 5)]
    found = run(jobs, Overruns.KILL_BLOCKING)
    assert found.killed.tolist() == [False, True, True, False]
    assert found.start_time[3] == 20


def test_nobody_is_killed_in_vain() -> None:
    """The one who waits needs the whole machine, of which another job still has its part."""
    jobs = [(0, 2, 30, 10), (0, 2, 40, 40), (5, 4, 5, 5)]
    assert run(jobs, Overruns.KILL_BLOCKING).end_time.tolist() == [30, 40, 45]


def test_who_has_no_slack_is_not_delayed() -> None:
    found = run([LATE, (1, 4, 10, 10)], Overruns.EXTEND, replace(PATIENT, slack_factor=0))
    assert found.end_time.tolist() == [10, 20]


def test_whose_quota_is_exceeded_is_not_extended_at_the_cost_of_others() -> None:
    exceeded = SlackJobs(np.zeros(2), np.array([-np.inf, 0]))
    blocked = run([LATE, (1, 4, 10, 10)], Overruns.EXTEND, slack_jobs=exceeded)
    assert blocked.end_time.tolist() == [10, 20]
    beside = run([(0, 3, 15, 10), (1, 1, 10, 10)], Overruns.EXTEND, slack_jobs=exceeded)
    assert beside.end_time.tolist() == [15, 11]


@pytest.mark.parametrize(("processors", "killed"), [(9, False), (10, True)])
def test_a_late_job_is_killed_when_an_extension_costs_more(processors: int, killed: bool) -> None:
    """To kill 4 x 10 processor seconds costs 40.

    The job that waits has priority (1 + 1 + 0.045) / 3, 4.09 times that of the extension: a second
    of its delay costs 36.8 with 9 processors (38.4 the fifth time), 40.9 with 10.
    """
    important = SlackJobs(np.array([0, 0, 1.0]), np.array([0, 0, 1.0]))
    jobs = [LATE, (0, 6, 10, 10), (1, processors, 10, 10)]
    found = run(jobs, Overruns.EXTEND, slack_jobs=important, machine=10)
    assert found.killed.tolist() == [killed, False, False]


def test_ends_of_others_do_not_count_for_an_extension() -> None:
    """What they let others gain has been gained before an extension is priced."""
    asked: list[str] = []

    def noting(name: str) -> Any:
        did = getattr(SlackPlan, name)

        def note(self: SlackPlan, *options: Any) -> Any:
            asked.append(name)
            return did(self, *options)

        return patch.object(SlackPlan, name, note)

    with noting("remove"), noting("extend"):
        run([(0, 2, 11, 10), (0, 2, 10, 30), (1, 3, 5, 5)], Overruns.EXTEND)
    assert asked == ["remove", "extend"]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 8), st.integers(1, MACHINE), st.integers(0, 40), st.integers(1, 20)
        ),
        min_size=1,
        max_size=14,
    ),
    SETTINGS,
    st.sampled_from([Overruns.KILL_BLOCKING, Overruns.EXTEND]),
)
def test_promises_hold_whoever_overruns(
    jobs: Sequence[tuple[int, ...]], chosen: SlackSettings, overruns: Overruns
) -> None:
    found = run(jobs, overruns, chosen, machine=MACHINE)
    assert found.latest_start is not None
    assert (found.start_time <= found.latest_start).all()


@pytest.mark.parametrize("overruns", [Overruns.KILL_BLOCKING, Overruns.EXTEND])
def test_where_nobody_may_overrun(overruns: Overruns) -> None:
    policy = Policy(backfill=Slack(SlackSettings(overruns=overruns)))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"event_order": EventOrder.PER_EVENT}, "under per-event no pass follows"),
        ({"correction": Correction.DOUBLING}, "corrected to the requested time first"),
    ]
    for fields, said in wrong:
        with pytest.raises(InputError, match=said):
            replace(policy, **fields)
    jobs = workload_of([LATE], 4)
    with pytest.raises(InputError, match="with time limits of their own; take kill"):
        reference.simulate(jobs, policy, time_limit=jobs.requested_time)
    with pytest.raises(InputError, match="beside advance reservations; take kill"):
        reference.simulate(jobs, policy, reservations=[AdvanceReservation(50, 5, 1)])


def test_the_check_refuses_a_wrong_end_of_a_late_job() -> None:
    jobs = workload_of([LATE], 4)
    found = run([LATE], Overruns.KILL_BLOCKING)
    with pytest.raises(ScheduleError, match="spared against its time limit"):
        check(jobs, found, jobs.requested_time)
    early = replace(found, end_time=np.array([9]), killed=np.array([True]))
    with pytest.raises(ScheduleError, match="not at its time limit"):
        check(jobs, early, jobs.requested_time, may_overrun=True)
