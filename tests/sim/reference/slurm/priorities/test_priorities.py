"""Priorities worked out by hand, and when they change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.jobs.billing import billing
from foretime_sim.reference.slurm.priorities.priorities import NEVER, Priorities
from foretime_sim.reference.slurm.priorities.usage import (
    UsageClock,
    charge,
    decay_factor,
    next_reset,
)
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite

from tests.support.slurm.slurm_priority_sites import Job

MACHINE = Machine(
    (NodeGroup("cpu", nodes=10, cpus=10, memory_mib=1000, gpus=1),),
    (SlurmPartition("main", ("cpu",), default=True), SlurmPartition("fast", ("cpu",))),
)
TREE = (
    Association("root"),
    Association("root", user="ann", priority=10),
    Association("root", user="bob", priority=40),
)
SITE = SlurmSite(
    MACHINE,
    associations=TREE,
    qos={"normal": Qos("normal"), "high": Qos("high", priority=50), "low": Qos("low", priority=5)},
    rules={"main": PartitionRules(priority_job_factor=5), "fast": PartitionRules(20)},
)
NOW = 1_800_000_000
RELATIVE = "SMALL_RELATIVE_TO_TIME"
QUARTER = {"cpu": 20, "mem": 2500, "node": 3}


def priority_of(
    job: Job, flags: tuple[str, ...] = (), waited_s: int = 0, **settings: object
) -> int:
    """The priority that a job gets from one factor alone, some time after it came."""
    priority = replace(SlurmPriority(), flags=frozenset(flags), **settings)  # type: ignore[arg-type]
    priorities = Priorities(replace(SITE, priority=priority), NOW)
    job.eligible_time = job.submit_time = NOW - waited_s
    priorities.submitted(job, NOW)
    return priorities.priority_of(job, job.slurm_partitions[0], NOW)


def ann(**job: object) -> Job:
    return Job(0, user="ann", tres=QUARTER, **job)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "settings", "expected"),
    [
        (ann(), {"weight_age": 1000, "waited_s": 60, "max_age_s": 600}, 100),
        (ann(), {"weight_age": 1000, "waited_s": 700, "max_age_s": 600}, 1000),
        (ann(), {"weight_assoc": 1000}, 250),
        (ann(), {"weight_assoc": 1000, "flags": ("NO_NORMAL_ASSOC",)}, 10_000),
        (ann(), {"weight_job_size": 1000}, 250),
        (ann(), {"weight_job_size": 1000, "favor_small": True}, 750),
        (
            ann(time_limit_s=120),
            {"weight_job_size": 1000, "flags": ("SMALL_RELATIVE_TO_TIME",)},
            150,
        ),
        (ann(), {"weight_partition": 1000}, 250),
        (ann(slurm_partitions=("fast",)), {"weight_partition": 1000}, 1000),
        (ann(), {"weight_partition": 1000, "flags": ("NO_NORMAL_ALL",)}, 5000),
        (ann(qos="low"), {"weight_qos": 1000}, 100),
        (ann(qos="low"), {"weight_qos": 1000, "flags": ("NO_NORMAL_QOS",)}, 5000),
        (ann(), {"weight_qos": 1000}, 1),
        (ann(), {"weight_tres": {"cpu": 1000.0, "mem": 100.0}}, 225),
        (ann(), {"weight_tres": {"cpu": 10.0}, "flags": ("NO_NORMAL_TRES",)}, 200),
        (ann(), {"weight_tres": {"billing": 1000.0}}, 200),
        (ann(nice=100), {"weight_partition": 1000}, 150),
        (ann(nice=1000), {"weight_partition": 1000}, 1),
        (ann(site_factor=7), {"weight_partition": 1000}, 257),
        (ann(site_factor=2_000_000_000, nice=-2_147_483_645), {"weight_qos": 0}, 4_147_483_645),
        (ann(qos="high"), {"weight_qos": 2**31, "flags": ("NO_NORMAL_QOS",)}, 2**32 - 1),
    ],
)
def test_a_factor_alone(job: Job, settings: Mapping[str, object], expected: int) -> None:
    assert priority_of(job, **settings) == expected  # type: ignore[arg-type]


def test_a_job_has_a_priority_for_each_of_its_partitions() -> None:
    settings = SlurmPriority(weight_partition=1000)
    priorities = Priorities(replace(SITE, priority=settings), NOW)
    job = ann(slurm_partitions=("main", "fast"))
    priorities.submitted(job, NOW)
    assert [priorities.priority_of(job, name, NOW) for name in ("main", "fast")] == [250, 1000]


def test_without_associations_there_is_no_age_no_fair_share_and_no_tick() -> None:
    settings = SlurmPriority(weight_age=1000, weight_fair_share=1000, max_age_s=10)
    priorities = Priorities(replace(SITE, priority=settings, associations=()), NOW)
    job = ann()
    job.eligible_time = NOW - 100
    priorities.submitted(job, NOW)
    assert priorities.next_tick == NEVER
    priorities.tick(NOW + 300)
    assert priorities.priority_of(job, "main", NOW) == 1


def test_priorities_stand_still_between_ticks() -> None:
    settings = SlurmPriority(weight_age=1000, max_age_s=1000, calc_period_s=60)
    priorities = Priorities(replace(SITE, priority=settings), NOW)
    job, held = ann(), Job(1, user="bob")
    job.eligible_time = held.eligible_time = NOW
    priorities.submitted(job, NOW)
    priorities.submitted(held, NOW, held=True)
    assert priorities.next_tick == NOW + 60
    assert priorities.priority_of(job, "main", NOW + 59) == 1
    priorities.tick(NOW + 60)
    assert priorities.priority_of(job, "main", NOW + 60) == 60
    assert priorities.priority_of(held, "main", NOW + 60) == 0
    priorities.recompute(held, NOW + 90)
    assert priorities.priority_of(held, "main", NOW + 60) == 90
    assert priorities.next_tick == NOW + 120


def test_a_job_that_waits_for_others_does_not_age_unless_all_do() -> None:
    for flags, expected in ((frozenset[str](), 1), (frozenset({"ACCRUE_ALWAYS"}), 60)):
        settings = SlurmPriority(weight_age=1000, max_age_s=1000, calc_period_s=60, flags=flags)
        priorities = Priorities(replace(SITE, priority=settings), NOW)
        job = Job(0, user="ann", eligible_time=None, submit_time=NOW)
        priorities.submitted(job, NOW)
        priorities.tick(NOW + 60)
        assert priorities.priority_of(job, "main", NOW + 60) == expected


def test_usage_is_charged_at_ticks_and_where_limits_are_enforced_at_the_end() -> None:
    for enforced in (frozenset({"limits"}), frozenset[str]()):
        settings = SlurmPriority(decay_half_life_s=0, calc_period_s=60)
        site = replace(SITE, priority=settings, enforced=enforced)
        priorities = Priorities(site, NOW)
        used = priorities.fair_share.members[0]
        job = ann()
        priorities.submitted(job, NOW)
        priorities.started(job, {"cpu": 20}, NOW + 10)
        priorities.tick(NOW + 60)
        assert float(used.usage_raw) == 50 * 20
        priorities.ended(job, NOW + 90)
        expected = 80 * 20 if enforced else 50 * 20
        assert float(used.usage_raw) == expected
        priorities.tick(NOW + 120)
        assert float(used.usage_raw) == expected


def test_usage_decays_and_new_usage_with_it() -> None:
    settings = SlurmPriority(decay_half_life_s=600, calc_period_s=60)
    qos = {"double": Qos("double", usage_factor=2.0)}
    priorities = Priorities(replace(SITE, priority=settings, qos=qos), NOW)
    job = ann(qos="double")
    priorities.submitted(job, NOW)
    priorities.started(job, {"cpu": 3}, NOW)
    kept = math.pow(1 - 0.693 / 600, 60.0)
    priorities.tick(NOW + 60)
    first = 60 * kept * 3 * 2.0
    used = priorities.fair_share.members[1]
    assert float(used.usage_raw) == pytest.approx(first)
    priorities.tick(NOW + 120)
    assert float(used.usage_raw) == pytest.approx(first * kept + first)


def test_usage_halves_a_little_too_early() -> None:
    assert math.pow(decay_factor(3600), 3600) == pytest.approx(0.5, abs=1e-3)
    assert math.pow(decay_factor(60), 60) < 0.4985
    assert decay_factor(0) == 1
    assert charge(-5, 3.0, 0.5, None) == 0


def test_billing_takes_the_largest_of_a_node_with_max_tres() -> None:
    tres = {"cpu": 4, "mem": 3000, "node": 1, "gres/gpu": 2, "license/x": 5}
    weights = {"cpu": 1.0, "mem": 0.001, "gres/gpu": 3.0, "license/x": 0.5}
    assert billing(tres, weights, frozenset()) == 4 + 3 + 6 + 2.5
    assert billing(tres, weights, frozenset({"MAX_TRES"})) == 6 + 2.5
    assert billing(tres, weights, frozenset({"MAX_TRES_GRES"})) == 4 + 6 + 2.5
    assert billing(tres, {}, frozenset()) == 4


def test_with_basic_priorities_the_first_submitted_is_first() -> None:
    priorities = Priorities(replace(SITE, priority=SlurmPriority(multifactor=False)), NOW)
    jobs = [Job(0), Job(1, nice=100), Job(2), Job(3, nice=-50)]
    for job in jobs:
        priorities.submitted(job, NOW)
    top = 0xFFFF0000
    found = [priorities.priority_of(job, "main", NOW) for job in jobs]
    assert found == [top - 1, top - 2 - 100, top - 3, top - 4 + 50]
    assert priorities.next_tick == NEVER


def epoch(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("period", "last", "now", "expected"),
    [
        ("DAILY", "2026-11-22T10:00:00", "2026-11-22T10:00:00", "2026-11-23"),
        ("DAILY", "2026-11-20T10:00:00", "2026-11-22T10:00:00", "2026-11-22"),
        ("WEEKLY", "2026-11-22T10:00:00", "2026-11-22T10:00:00", "2026-11-29"),
        ("WEEKLY", "2026-11-20T10:00:00", "2026-11-20T10:00:00", "2026-11-22"),
        ("MONTHLY", "2026-12-31T23:59:59", "2026-12-31T23:59:59", "2027-01-01"),
        ("QUARTERLY", "2026-11-22T10:00:00", "2026-11-22T10:00:00", "2027-01-01"),
        ("QUARTERLY", "2026-06-30T10:00:00", "2026-06-30T10:00:00", "2026-07-01"),
        ("YEARLY", "2026-01-01T00:00:00", "2026-01-01T00:00:00", "2027-01-01"),
    ],
)
def test_usage_is_forgotten_at_midnight(period: str, last: str, now: str, expected: str) -> None:
    assert next_reset(period, epoch(last), epoch(now)) == epoch(expected)


def test_an_unknown_reset_period_is_refused() -> None:
    with pytest.raises(InputError, match="usage_reset_period is 'HOURLY': give one of NONE"):
        UsageClock(SlurmPriority(usage_reset_period="HOURLY"), NOW, None)


def test_ticks_go_on_from_when_usage_was_last_worked_out() -> None:
    settings = SlurmPriority(calc_period_s=300)
    assert UsageClock(settings, NOW, NOW - 700).next_tick == NOW + 200
    assert UsageClock(settings, NOW, None).next_tick == NOW + 300
