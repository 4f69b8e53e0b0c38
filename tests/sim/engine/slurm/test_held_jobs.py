"""A job that a limit holds is let go when it should be, though it is not asked about each time."""

from __future__ import annotations

from dataclasses import replace

from foretime_sim import Policy, simulate
from foretime_sim.engine.schedule import NEVER
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.slurm import Slurm
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.resource_requests import with_machine
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.slurm.slurm_jobs import Asked, workload_of

CPUS = 6
FEW = st.sampled_from([None, 0, 1, 2])
WALLS = st.sampled_from([None, 600, 3000])
JOBS = st.builds(
    Asked,
    submit=st.integers(0, 600),
    runtime=st.integers(20, 400),
    limit=st.sampled_from([60, 240, 600]),
    tasks=st.integers(1, CPUS),
    users=st.sampled_from(["ann", "ann", "bob"]),
)


@st.composite
def sites(draw: st.DrawFn) -> SlurmSite:
    """Sites whose users, account and QOS have few jobs, or little time; used time decays."""
    qos = Limits(max_jobs=draw(FEW), max_jobs_per_account=draw(FEW), grp_jobs=draw(FEW))
    account = Limits(grp_jobs=draw(FEW), grp_wall_s=draw(WALLS))
    return SlurmSite(
        Machine.flat(CPUS),
        version=draw(st.sampled_from([(22, 5), (26, 5)])),
        parameters=SlurmParameters(
            default_queue_depth=draw(st.sampled_from([1, 3, 100])),
            assoc_limit_stop=draw(st.booleans()),
            bf_one_resv_per_job=draw(st.booleans()),
        ),
        priority=SlurmPriority(
            weight_fair_share=draw(st.sampled_from([0, 1000])), decay_half_life_s=600
        ),
        qos={"normal": Qos("normal", limits=draw(st.sampled_from([Limits(), qos])))},
        associations=(
            Association("root", default_qos="normal", qos=("normal",)),
            Association("lab", parent="root", limits=draw(st.sampled_from([Limits(), account]))),
            Association("lab", user="ann", limits=Limits(max_jobs=draw(FEW)), default=True),
            Association("lab", user="bob", default=True),
        ),
        enforced=frozenset({"associations", "limits"}),
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(JOBS, min_size=4, max_size=25), sites())
def test_held_jobs_are_let_go_alike(asked: list[Asked], site: SlurmSite) -> None:
    workload, site_jobs = workload_of(sorted(asked, key=lambda job: job.submit))
    by_hand = simulate_slurm(workload, site, site_jobs, patience_s=8_000)
    workload = with_machine(replace(workload, site_jobs=site_jobs), site.machine)
    start = simulate(workload, Policy(backfill=Slurm(site))).start_time.tolist()
    assert [None if each == NEVER else each for each in start] == by_hand.start_times
