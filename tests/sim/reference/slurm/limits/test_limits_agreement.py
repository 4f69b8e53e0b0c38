"""The native core's limits and the specification's answer alike, question for question."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foretime_sim.engine.native.limits_core import NativeLimits
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.limits.limits import Limits
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.reference.slurm.limits.limited_jobs import Job
from tests.support.slurm.drawn_rules import BILLINGS, KINDS, QOS, QOS_FLAGS, limits_of_groups, some

USERS = ("ann", "bob", None, "nobody")
ACCOUNTS = ("root", "physics", "biology", "lab")


@st.composite
def sites(draw: st.DrawFn) -> SlurmSite:
    """A site of two partitions, three QOS and a tree of accounts."""
    machine = Machine(
        (NodeGroup("cpu", 4, 4, 1000), NodeGroup("gpu", 2, 2, 1000, gpus=2)),
        (
            SlurmPartition(
                "all", ("cpu", "gpu"), max_nodes=draw(st.none() | st.integers(1, 6)),
                max_time_s=draw(st.none() | st.sampled_from([300, 1200])),
            ),
            SlurmPartition("few", ("cpu",), max_nodes=draw(st.none() | st.integers(1, 4))),
        ),
    )  # fmt: skip
    qos = {
        name: Qos(
            name,
            limits=draw(limits_of_groups()),
            flags=draw(st.frozensets(st.sampled_from(QOS_FLAGS), max_size=2)),
            usage_factor=draw(st.sampled_from([1.0, 1.0, 0.5, 0.0, 2.0])),
            limit_factor=draw(st.sampled_from([None, None, 0.5, 2.0, 0.0])),
            used_tres_s=draw(st.dictionaries(st.sampled_from(KINDS), st.floats(0, 9000))),
            used_wall_s=draw(st.sampled_from([0.0, 700.0])),
        )
        for name in QOS
    }
    parents = {"root": None, "physics": "root", "biology": "root", "lab": "physics"}
    allowed = st.lists(st.sampled_from(QOS), unique=True).map(tuple)
    associations = [
        Association(account, parent=parent, limits=draw(limits_of_groups()), qos=draw(allowed))
        for account, parent in parents.items()
    ]
    for user in ("ann", "bob"):
        for account in draw(st.lists(st.sampled_from(ACCOUNTS[1:]), unique=True, min_size=1)):
            where = draw(st.sampled_from([None, None, "few"]))
            associations.append(
                Association(
                    account, user, where, limits=draw(limits_of_groups()),
                    default_qos=draw(st.none() | st.sampled_from(QOS)),
                    default=draw(st.booleans()),
                    used_tres_s=draw(st.dictionaries(st.sampled_from(KINDS), st.floats(0, 9000))),
                )
            )  # fmt: skip
    rules = {
        name: PartitionRules(
            qos=draw(st.sampled_from([None, None, "part", "normal"])),
            allow_accounts=draw(some(ACCOUNTS)),
            deny_accounts=draw(some(ACCOUNTS)),
            allow_qos=draw(some(QOS)),
            deny_qos=draw(some(QOS)),
            min_nodes=draw(st.sampled_from([0, 0, 2])),
            max_cpus_per_node=draw(st.none() | st.integers(1, 3)),
            billing_weights=draw(st.sampled_from(BILLINGS)),
            state=draw(st.sampled_from(["UP", "UP", "UP", "DOWN", "DRAIN", "INACTIVE"])),
        )
        if draw(st.booleans())
        else PartitionRules()
        for name in ("all", "few")
    }
    words = ["associations", "limits", "qos", "safe"]
    return SlurmSite(
        machine,
        version=draw(st.sampled_from([(22, 5), (23, 11), (26, 5)])),
        parameters=SlurmParameters(assoc_limit_stop=draw(st.booleans())),
        priority=SlurmPriority(
            multifactor=draw(st.booleans()),
            decay_half_life_s=draw(st.sampled_from([0, 3600])),
            flags=draw(
                st.sampled_from([frozenset(), *map(frozenset, ({"MAX_TRES"}, {"MAX_TRES_GRES"}))])
            ),
        ),
        rules=rules,
        qos=qos,
        associations=tuple(associations),
        enforced=draw(st.just(frozenset({"limits"})) | st.frozensets(st.sampled_from(words))),
        licenses={"matlab": 3},
        enforce_part_limits=draw(st.sampled_from(["NO", "ALL", "ANY"])),
    )


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[str, Job, list[int]]]:
    """Jobs, and what happens to them in turn; nodes of a start."""
    jobs = [
        Job(
            index,
            user=draw(st.sampled_from(USERS)),
            account=draw(st.none() | st.sampled_from(ACCOUNTS[1:])),
            qos=draw(st.none() | st.sampled_from([*QOS, "wrong"])),
            slurm_partitions=draw(st.sampled_from([("all",), ("few",), ("all", "few")])),
            time_limit_s=draw(st.integers(1, 1500)),
            tres={
                "cpu": draw(st.integers(1, 5)),
                "mem": draw(st.integers(0, 5)),
                "node": draw(st.integers(1, 3)),
                "gres/gpu": draw(st.integers(0, 2)),
            },
            licenses=draw(st.sampled_from([{}, {}, {"matlab": 2}, {"wrong": 1}])),
            array=draw(st.sampled_from([None, None, "a"])),
            array_most_running=draw(st.integers(0, 2)),
        )
        for index in range(draw(st.integers(1, 8)))
    ]
    steps = []
    for job in [draw(st.sampled_from(jobs)) for _ in range(24)]:
        nodes = draw(st.lists(st.integers(0, 5), unique=True, max_size=3))
        steps.append((draw(st.sampled_from(["go", "go", "go", "end", "tick"])), job, nodes))
    return steps


class Both:
    """The specification and the core, told and asked the same."""

    def __init__(self, site: SlurmSite) -> None:
        self.site = site
        self.spec = Limits(site, 0)
        self.native = NativeLimits(site, 0)

    def row(self, job: Job) -> Any:
        return self.native.numbers.row(
            job.index, user=job.user, account=job.account, qos=job.qos,
            slurm_partitions=job.slurm_partitions, time_limit_s=job.time_limit_s,
            tres=job.tres, licenses=job.licenses, array=job.array,
            array_most_running=job.array_most_running,
        )  # fmt: skip

    def check(self, job: Job, now: int, nodes: list[int]) -> str | None:
        """Ask both everything about a job in a partition; give what keeps it."""
        row, core, word = self.row(job), self.native.core, self.native.word
        name = job.slurm_partition or job.slurm_partitions[0]
        place, minutes = self.native.numbers.slurm_partition(name), -(-job.time_limit_s // 60)
        numbers = self.native.numbers.counts(job.tres)
        considered = self.spec.why_not_considered(job, now)
        assert considered == word(core.why_not_considered(row, place, minutes))
        started = self.spec.why_not_started(job, job.tres, now, nodes)
        code = core.why_not_started(row, numbers, place, nodes, minutes)
        assert started == word(code)
        licenses = self.spec.why_no_licenses(job)
        if set(job.licenses) <= set(self.site.licenses):
            assert licenses == word(core.why_no_licenses(row))
        if started:
            assert self.spec.blocks_lower_jobs(started) == core.blocks_lower_jobs(code)
        return considered or licenses or started


@given(site=sites(), steps=streams())
def test_both_answer_alike_whatever_happens(
    site: SlurmSite, steps: list[tuple[str, Job, list[int]]]
) -> None:
    both = Both(site)
    core, numbers = both.native.core, both.native.numbers
    known: dict[int, str] = {}
    now = 0
    for number, (what, plain, nodes) in enumerate(steps):
        now += 37 * (number % 5)
        job = plain
        if what == "tick":
            both.spec.tick(now)
            core.tick(now)
        elif what == "end" and job.index in known:
            both.spec.ended(job, now)
            if known.pop(job.index) == "running":
                core.ended(both.row(job), now)
            else:
                core.withdrawn(both.row(job))
        elif job.index not in known:
            for asked in (job, replace(job, slurm_partitions=job.slurm_partitions[:1])):
                assert both.spec.why_refused(asked) == both.native.word(
                    core.why_refused(both.row(asked), 1)
                )
            both.spec.submitted(job)
            core.submitted(both.row(job))
            known[job.index] = "pending"
        elif known[job.index] == "pending":
            for name in job.slurm_partitions:
                job = replace(plain, slurm_partition=name)
                kept = both.check(job, now, nodes)
            if kept is None or number % 4 == 0:
                both.spec.started(job, job.tres, now, nodes)
                core.started(
                    both.row(job), numbers.counts(job.tres), now,
                    numbers.slurm_partition(name), nodes, -(-job.time_limit_s // 60),
                )  # fmt: skip
                known[job.index] = "running"
        for index, state in known.items():
            (running,) = {each.index: each for _, each, _ in steps if each.index == index}.values()
            if state == "running":
                later = now + 300 * (number % 3)
                killed = both.spec.is_killed(running, later)
                assert killed == core.is_killed(both.row(running), later)
