"""Users of a log whom a site does not name: found, named, and taken in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.policies.unknown_users import UnknownUsers, with_names, with_users
from foretime_sim.sites.slurm.limits import Association, Limits
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

SITE = SlurmSite(
    Machine.flat(4),
    associations=(
        Association("root"),
        Association("physics", parent="root"),
        Association("guests", parent="root", limits=Limits(grp_jobs=1)),
        Association("physics", user="ann", default=True),
        Association("physics", user="eve", slurm_partition="other"),
    ),
    enforced=frozenset({"associations", "limits"}),
)
USERS = ("ann", "bob", "carl", "eve")
PROJECTS = ("physics", "biology")


def workload_of(*whose: tuple[int, int]) -> Workload:
    """A job of one CPU and a minute for each user and project, by their places; -1: none."""
    users, projects = np.array(whose, dtype=np.int32).T
    jobs = len(whose)
    times, ones = np.zeros(jobs, dtype=np.int64), np.ones(jobs, dtype=np.int64)
    return Workload(
        "by hand", 4, None, np.arange(jobs), times, ones, 60 * ones, 60 * ones,
        users=Labels(users, USERS), projects=Labels(projects, PROJECTS),
    )  # fmt: skip


def test_who_has_no_association_is_unknown() -> None:
    found = UnknownUsers.of(SITE, workload_of((0, -1), (0, 1), (1, 0), (1, 0), (-1, -1), (3, 0)))
    assert found.jobs == 5
    assert set(found.pairs) == {
        ("ann", "biology"), ("bob", "physics"), (None, None), ("eve", "physics"),
    }  # fmt: skip
    assert "bob (account physics)" in str(found)
    assert "jobs without a user" in str(found)


def test_unknown_users_join_their_account_or_one_below_the_one_named() -> None:
    workload = with_names(workload_of((0, 0), (1, 0), (1, 1), (2, -1), (-1, -1)))
    site = with_users(SITE, workload, "guests")
    new = [one for one in site.associations if one not in SITE.associations]
    added = {(one.account, one.user): one for one in new}
    assert set(added) == {
        ("physics", "bob"), ("biology", None), ("biology", "bob"), ("guests", "carl"),
        ("guests", "unknown"),
    }  # fmt: skip
    assert added["biology", None].parent == "guests"
    assert not UnknownUsers.of(site, workload).jobs
    schedule = simulate(workload, Policy(backfill=Slurm(site)))
    assert not schedule.never_ran
    # Of the account guests, and those below it, one job runs at a time.
    assert len(set(schedule.start_time[2:].tolist())) == 3


def test_jobs_without_users_are_given_one_name() -> None:
    assert with_names(workload_of((0, 0))).users is not None
    named = with_names(replace(workload_of((0, 0)), users=None)).users
    assert named is not None
    assert named.by_job() == ["unknown"]


def test_an_account_that_is_not_there_takes_nobody_in() -> None:
    with pytest.raises(InputError, match=r"account:guest: the site has no account 'guest'.*guests"):
        with_users(SITE, workload_of((1, 0)), "guest")
