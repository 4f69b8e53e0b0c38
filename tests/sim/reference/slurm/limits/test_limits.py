"""Limits of partitions, QOS and associations: scenes worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.limits.limits import Limits
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.limits import Limits as Those
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite

from tests.sim.reference.slurm.limits.limited_jobs import Job

NO_LIMITS = Those()


def site(
    *,
    user: Those = NO_LIMITS,
    account: Those = NO_LIMITS,
    above: Those = NO_LIMITS,
    normal: Those = NO_LIMITS,
    flags: frozenset[str] = frozenset(),
    rules: PartitionRules | None = None,
    others: Mapping[str, Qos] | None = None,
    **more: Any,
) -> SlurmSite:
    """ann and bob in physics, which is below science."""
    machine = Machine(
        (NodeGroup("cpu", 8, 4, 1000),),
        (SlurmPartition("all", ("cpu",), max_time_s=more.pop("max_time_s", None)),),
    )
    values: dict[str, Any] = {
        "qos": {"normal": Qos("normal", limits=normal, flags=flags), **(others or {})},
        "associations": (
            Association("root"),
            Association("science", parent="root", limits=above),
            Association("physics", parent="science", limits=account),
            Association("physics", "ann", limits=user),
            Association("physics", "bob"),
        ),
        "enforced": frozenset({"limits"}),
        "rules": {"all": rules or PartitionRules()},
    }
    return SlurmSite(machine, **{**values, **more})


def run(limits: Limits, *jobs: Job, now: int = 0) -> None:
    for job in jobs:
        limits.submitted(job)
        limits.started(job, job.tres, now)


def kept(limits: Limits, job: Job, now: int = 0) -> str | None:
    return limits.why_not_considered(job, now) or limits.why_not_started(job, job.tres, now)


def cpus(count: int, nodes: int = 1) -> dict[str, int]:
    return {"cpu": count, "mem": 100, "node": nodes}


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("user", "AssocGrpCpuLimit"),
        ("account", "AssocGrpCpuLimit"),
        ("above", "AssocGrpCpuLimit"),
        ("normal", "QOSGrpCpuLimit"),
    ],
)
def test_a_group_has_no_more_cpus_than_its_limit(where: str, reason: str) -> None:
    those: dict[str, Any] = {where: Those(grp_tres={"cpu": 8})}
    limits = Limits(site(**those))
    run(limits, Job(0, tres=cpus(6)))
    assert kept(limits, Job(1, tres=cpus(2))) is None
    assert kept(limits, Job(2, tres=cpus(3))) == reason
    limits.ended(Job(0, tres=cpus(6)), 60)
    assert kept(limits, Job(2, tres=cpus(3))) is None


def test_a_limit_of_a_qos_hides_that_of_an_association_for_the_same_kind_alone() -> None:
    limits = Limits(
        site(user=Those(grp_tres={"cpu": 2, "mem": 150}), normal=Those(grp_tres={"cpu": 8}))
    )
    assert kept(limits, Job(0, tres=cpus(6))) is None
    run(limits, Job(0, tres=cpus(6)))
    assert kept(limits, Job(1, tres=cpus(1))) == "AssocGrpMemLimit"
    assert kept(limits, Job(1, tres=cpus(3))) == "QOSGrpCpuLimit"


@pytest.mark.parametrize(
    ("flags", "reason"), [(frozenset(), None), (frozenset({"OverPartQOS"}), "QOSGrpJobsLimit")]
)
def test_the_partitions_qos_goes_first_unless_the_jobs_overrides_it(
    flags: frozenset[str], reason: str | None
) -> None:
    limits = Limits(
        site(
            normal=Those(grp_jobs=1),
            flags=flags,
            others={"part": Qos("part", limits=Those(grp_jobs=2))},
            rules=PartitionRules(qos="part"),
        )
    )
    run(limits, Job(0))
    assert kept(limits, Job(1)) == reason


def test_a_user_limit_of_a_qos_is_for_each_user_and_one_of_an_account_for_all() -> None:
    limits = Limits(site(normal=Those(max_jobs=1, max_tres_per_account={"cpu": 5})))
    run(limits, Job(0, tres=cpus(2)))
    assert kept(limits, Job(1)) == "QOSMaxJobsPerUserLimit"
    assert kept(limits, Job(1, user="bob", tres=cpus(3))) is None
    assert kept(limits, Job(1, user="bob", tres=cpus(4))) == "MaxCpuPerAccount"


def test_a_limit_of_one_job_comes_down_from_the_account_and_one_of_a_group_stays() -> None:
    limits = Limits(site(account=Those(max_wall_s=600, max_jobs=1)))
    assert kept(limits, Job(0, time_limit_s=660)) == "AssocMaxWallDurationPerJobLimit"
    run(limits, Job(0))
    assert kept(limits, Job(1)) == "AssocMaxJobsLimit"
    assert kept(limits, Job(1, user="bob")) is None


def test_a_limit_of_minutes_still_to_run_goes_by_time_limits_and_is_freed_at_the_look() -> None:
    limits = Limits(site(account=Those(grp_tres_run_mins={"cpu": 40})))
    run(limits, Job(0, tres=cpus(3), time_limit_s=600))
    job = Job(1, tres=cpus(2), time_limit_s=600)
    assert kept(limits, job, 300) == "AssocGrpCPURunMinutesLimit"
    limits.tick(300)
    assert kept(limits, job, 300) is None  # 15 of 30 minutes are gone, and 20 more fit into 40


def test_under_priority_basic_minutes_to_run_are_freed_at_the_end_alone() -> None:
    limits = Limits(
        site(
            account=Those(grp_tres_run_mins={"cpu": 40}),
            priority=SlurmPriority(multifactor=False),
        )
    )
    first, job = Job(0, tres=cpus(3)), Job(1, tres=cpus(2))
    run(limits, first)
    limits.tick(300)
    assert kept(limits, job, 300) == "AssocGrpCPURunMinutesLimit"
    limits.ended(first, 310)
    assert kept(limits, job, 310) is None


@pytest.mark.parametrize(
    ("enforced", "reason"),
    [({"limits"}, None), ({"limits", "safe"}, "AssocGrpCPUMinutesLimit")],
)
def test_what_is_left_of_minutes_must_last_for_all_of_a_job_under_safe_alone(
    enforced: set[str], reason: str | None
) -> None:
    limits = Limits(
        site(user=Those(grp_tres_mins={"cpu": 30}), enforced=frozenset(enforced)), now=0
    )
    run(limits, Job(0, tres=cpus(2), time_limit_s=600))
    assert kept(limits, Job(1, tres=cpus(1), time_limit_s=660), 0) == reason
    assert kept(limits, Job(1, tres=cpus(1), time_limit_s=600), 0) is None


def test_minutes_that_are_used_up_let_nothing_start() -> None:
    limits = Limits(
        site(
            user=Those(grp_tres_mins={"cpu": 30}, grp_wall_s=1800),
            priority=SlurmPriority(decay_half_life_s=0),
        )
    )
    run(limits, Job(0, tres=cpus(2), time_limit_s=6000))
    limits.tick(899)
    assert kept(limits, Job(1), 899) is None
    limits.tick(900)
    assert kept(limits, Job(1), 900) == "AssocGrpCPUMinutesLimit"
    limits.tick(1800)
    assert kept(limits, Job(1), 1800) == "AssocGrpWallLimit"


@pytest.mark.parametrize(("safe", "killed"), [(set(), True), ({"safe"}, False)])
def test_jobs_are_ended_as_their_group_runs_out_of_minutes_but_under_safe(
    safe: set[str], killed: bool
) -> None:
    limits = Limits(
        site(user=Those(grp_tres_mins={"cpu": 30}), enforced=frozenset({"limits", *safe}))
    )
    job = Job(0, tres=cpus(4), time_limit_s=600)
    run(limits, job)
    assert not limits.is_killed(job, 599)
    limits.tick(480)
    assert limits.is_killed(job, 480) == killed


def test_a_job_is_ended_as_its_own_minutes_run_out() -> None:
    limits = Limits(site(normal=Those(max_tres_mins_per_job={"cpu": 20})))
    job = Job(0, tres=cpus(2))
    run(limits, job)
    assert not limits.is_killed(job, 599)
    assert limits.is_killed(job, 600)


def test_a_node_that_the_group_has_already_counts_once() -> None:
    limits = Limits(site(account=Those(grp_tres={"node": 2})))
    first = Job(0, tres=cpus(2, nodes=2))
    limits.submitted(first)
    limits.started(first, first.tres, 0, nodes=[3, 4])
    job = Job(1)
    assert limits.why_not_started(job, job.tres, 0, nodes=[4]) is None
    assert limits.why_not_started(job, job.tres, 0, nodes=[5]) == "AssocGrpNodeLimit"


@pytest.mark.parametrize(
    ("flags", "refused", "waits"),
    [
        (frozenset(), None, "QOSMaxCpuPerJobLimit"),
        (frozenset({"DenyOnLimit"}), "QOSMaxCpuPerJobLimit", "QOSMaxCpuPerJobLimit"),
    ],
)
def test_a_job_that_could_never_run_waits_unless_its_qos_denies(
    flags: frozenset[str], refused: str | None, waits: str
) -> None:
    limits = Limits(site(normal=Those(max_tres_per_job={"cpu": 4}), flags=flags))
    job = Job(0, tres=cpus(5))
    assert limits.why_refused(job) == refused
    assert kept(limits, job) == waits


def test_limits_on_submitted_jobs_refuse_and_count_the_tasks_of_an_array() -> None:
    limits = Limits(site(user=Those(max_submit_jobs=3), above=Those(grp_submit_jobs=4)))
    assert limits.why_refused(Job(0), jobs=4) == "AssocMaxSubmitJobLimit"
    for index in range(3):
        limits.submitted(Job(index))
    assert limits.why_refused(Job(3)) == "AssocMaxSubmitJobLimit"
    assert limits.why_refused(Job(3, user="bob"), jobs=2) == "AssocGrpSubmitJobsLimit"
    limits.ended(Job(0), 10)
    assert limits.why_refused(Job(3)) is None


@pytest.mark.parametrize(
    ("enforce", "refused"),
    [
        ("NO", None),
        ("ALL", "Requested time limit is invalid (missing or exceeds some limit)"),
    ],
)
def test_max_time_refuses_or_keeps_waiting(enforce: str, refused: str | None) -> None:
    limits = Limits(site(max_time_s=600, enforce_part_limits=enforce))
    job = Job(0, time_limit_s=601)
    assert limits.why_refused(job) == refused
    assert limits.why_not_considered(job, 0) == "PartitionTimeLimit"
    flagged = site(
        max_time_s=600, enforce_part_limits=enforce, flags=frozenset({"PartitionTimeLimit"})
    )
    assert Limits(flagged).why_refused(job) is None


def test_who_has_no_association_or_names_no_qos_of_his_is_refused() -> None:
    limits = Limits(site(enforced=frozenset({"associations"})))
    assert limits.why_refused(Job(0, user="eve")) == (
        "Invalid account or account/partition combination specified"
    )
    assert limits.why_refused(Job(0, qos="gold")) == "Invalid qos specification"
    strict = Limits(site(enforced=frozenset({"limits", "qos"})))
    assert strict.why_refused(Job(0)) == "Invalid qos specification"


def test_without_limits_enforced_nothing_of_accounting_counts() -> None:
    limits = Limits(site(user=Those(max_jobs=0, max_submit_jobs=0), enforced=frozenset()))
    assert limits.why_refused(Job(0)) is None
    assert kept(limits, Job(0)) is None


def test_licenses_and_throttles_of_arrays_are_given_back() -> None:
    limits = Limits(site(licenses={"matlab": 2}))
    job = Job(0, licenses={"matlab": 2}, array="5", array_most_running=1)
    run(limits, job)
    other = replace(job, index=1)
    assert limits.why_no_licenses(other) == "Licenses"
    assert limits.array_is_full(other)
    limits.ended(job, 10)
    assert limits.why_no_licenses(other) is None
    assert not limits.array_is_full(other)
    assert limits.why_refused(Job(2, licenses={"matlab": 3})) == "Invalid license specification"


def test_a_site_that_names_what_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="below account gone, which is not there"):
        Limits(site(associations=(Association("physics", parent="gone"),)))
    with pytest.raises(InputError, match="partition all has the QOS gone"):
        Limits(site(rules=PartitionRules(qos="gone")))
