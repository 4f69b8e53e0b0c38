"""Priorities that a log's pending jobs would have: fair share by what has run until then."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S
from foretime_sim.machines.machine import Machine
from foretime_sim.models import lublin2003
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload
from foretime_studies.logged_policies.priorities import LoggedPriorities, with_people

WEEK_S = 7 * DAY_S
CLASSIC = SlurmPriority(
    weight_fair_share=10_000,
    weight_age=100,
    max_age_s=DAY_S,
    decay_half_life_s=WEEK_S,
    flags=frozenset(["NO_FAIR_TREE"]),
)


@pytest.fixture(scope="module")
def people() -> Workload:
    """Four jobs of three users in two projects."""
    workload = lublin2003.generate(jobs=4, seed=1)
    users = Labels(np.array([0, 1, 2, 0], dtype=np.int32), ("ann", "bob", "cid"))
    projects = Labels(np.array([0, 1, 1, 0], dtype=np.int32), ("physics", "biology"))
    return Workload(
        **{name: getattr(workload, name) for name in workload.__slots__}
        | {"users": users, "projects": projects}
    )


def priorities(people: Workload, settings: SlurmPriority = CLASSIC) -> LoggedPriorities:
    return LoggedPriorities(with_people(SlurmSite(Machine.flat(64), priority=settings), people))


def job(name: str, user: str, project: str, submit_time: int = 0) -> JobRequest:
    return JobRequest(name, user, project, 4, 3_600, submit_time)


def ran(told: LoggedPriorities, request: JobRequest, start: int, end: int) -> None:
    told.started(request, start)
    told.finished(FinishedJob(request, start, end, end - start, Ending.COMPLETED))


def asked(told: LoggedPriorities, now: int, submit_time: int) -> list[int]:
    pending = [
        job("9", "ann", "physics", submit_time),
        job("10", "bob", "biology", submit_time),
    ]
    found: list[int] = told.of(pending, ["all", "all"], now).tolist()
    return found


def test_every_project_and_every_user_of_it_has_the_same(people: Workload) -> None:
    site = with_people(SlurmSite(Machine.flat(64)), people)
    found = [(one.account, one.user, one.shares) for one in site.associations]
    assert found == [
        ("root", None, 1),
        *(("biology", None, 1), ("physics", None, 1)),
        *(("biology", "bob", 1), ("biology", "cid", 1), ("physics", "ann", 1)),
    ]


def test_use_counts_half_after_a_half_life(people: Workload) -> None:
    told = priorities(people)
    ran(told, job("1", "ann", "physics"), 0, 100)
    ran(told, job("2", "bob", "biology"), WEEK_S, WEEK_S + 100)
    ann, bob = asked(told, WEEK_S + 100, WEEK_S + 100)
    # Of all that counts physics has a third; Slurm: 2 ** -(usage / shares). Bob's own use is all of
    # biology's, of which half the shares are his: 2/3 + (2/3 - 2/3) / 2.
    assert ann == pytest.approx(10_000 * 2 ** -((1 / 3) / (1 / 2)), rel=1e-3)
    assert bob == pytest.approx(10_000 * 2 ** -((2 / 3) / (1 / 4)), rel=1e-3)


def test_running_jobs_are_charged_until_now_and_once(people: Workload) -> None:
    told, whole = priorities(people), priorities(people)
    ran(told, job("1", "ann", "physics"), 0, 100)
    ran(whole, job("1", "ann", "physics"), 0, 100)
    told.started(job("2", "bob", "biology"), 100)
    assert asked(told, 150, 150) == asked(told, 150, 150)
    ran(whole, job("2", "bob", "biology"), 100, 150)
    assert asked(told, 150, 150) == asked(whole, 150, 150)


def test_who_has_waited_longer_goes_before_its_equal(people: Workload) -> None:
    told = priorities(people)
    pending = [job("9", "ann", "physics", 0), job("10", "ann", "physics", DAY_S // 2)]
    older, younger = told.of(pending, ["all", "all"], DAY_S).tolist()
    assert (older, younger) == (10_100, 10_050)


def test_fair_tree_ranks_whoever_has_used_less_first(people: Workload) -> None:
    told = priorities(people, SlurmPriority(weight_fair_share=900))
    ran(told, job("1", "bob", "biology"), 0, 100)
    ran(told, job("2", "ann", "physics"), 100, 110)
    assert asked(told, 200, 200) == [900, 300]  # ann, cid, bob
