"""The native core orders and holds jobs by a site's own priorities and limits as specified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import MaskedInt64Array
from foretime_sim import Policy, simulate
from foretime_sim.engine.schedule import NEVER
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.slurm import Slurm
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.site_jobs import SiteJob
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.engine.slurm import test_slurm_agreement
from tests.sim.engine.slurm.test_slurm_agreement import PARAMETERS
from tests.support.slurm.drawn_rules import ruled_sites, ruled_workloads
from tests.support.slurm.loop_settings import VERSIONS
from tests.support.workloads.node_workloads import machines
from tests.support.workloads.node_workloads import workloads as node_workloads
from tests.support.workloads.small_workloads import workloads as flat_workloads

PATIENCE_S = 8_000
"""Whom a limit holds for longer it holds for ever: usage halves every 600 s, or never decays."""


def what_it_says(workload: Workload, job: int) -> tuple[SiteJob, str | None]:
    """What a job says to its site, and its reservation."""
    said = workload.site_jobs
    assert said is not None

    def number(column: MaskedInt64Array | None) -> int | None:
        missing = column is None or bool(np.ma.getmaskarray(column)[job])
        return None if column is None or missing else int(column.data[job])

    def name(column: Labels | None) -> str | None:
        return None if column is None else column.get(job)

    return SiteJob(
        qos=name(said.qos),
        nice=number(said.nice) or 0,
        site_factor=number(said.site_factor) or 0,
        time_min_s=number(said.time_min_s),
        begin_time=number(said.begin_time),
        licenses=name(said.licenses),
        array=name(workload.array_ids),
        array_most_running=number(said.array_most_running),
        after=number(said.after),
        after_what=number(said.after_what),
    ), name(said.reservations)


def stepwise(workload: Workload, site: SlurmSite, *, finish: bool = True) -> Engine:
    """An engine to which each job has been submitted at its time; and that has ended them all."""
    engine = Engine(
        site.machine.cpus,
        Policy(backfill=Slurm(site)),
        int(workload.submit_time[0]),
        epoch_of_zero=workload.epoch_of_zero,
    )
    for job in range(len(workload)):
        engine.advance(int(workload.submit_time[job]))
        said, reservation = what_it_says(workload, job)
        resources = JobResources(reservation=reservation)
        if workload.machine is not None:
            resources = replace(job_resources(workload, job), reservation=reservation)
        engine.submit(
            int(workload.submit_time[job]),
            int(workload.processors[job]),
            int(workload.actual_runtime[job]),
            int(workload.requested_time[job]),
            user=None if workload.users is None else workload.users.get(job),
            project=None if workload.projects is None else workload.projects.get(job),
            resources=resources,
            said=said,
        )
    if finish:
        engine.finish()
    return engine


def check_same(workload: Workload, site: SlurmSite) -> None:
    """Both let the same jobs run, at the same times."""
    by_hand = simulate_slurm(workload, site, workload.site_jobs, patience_s=PATIENCE_S)
    engine = stepwise(workload, site)
    views = [engine.job(job) for job in range(len(workload))]
    starts = by_hand.start_times
    assert [view.start_time for view in views] == starts
    assert [view.end_time for view in views] == [job.end for job in by_hand.jobs]
    whole = simulate(workload, Policy(backfill=Slurm(site)))
    assert [None if start == NEVER else start for start in whole.start_time.tolist()] == starts
    assert list(engine.schedule().never_ran) == list(whole.never_ran)
    assert [view.used_up for view in views] == [job.used_up for job in by_hand.jobs]


@settings(max_examples=100)
@given(st.data(), PARAMETERS, VERSIONS)
def test_a_pool_goes_by_priorities_alike(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int]
) -> None:
    machine = Machine.flat(data.draw(st.integers(1, 8)))
    workload = data.draw(ruled_workloads(data.draw(flat_workloads(machine.cpus))))
    check_same(workload, data.draw(ruled_sites(machine, version, parameters, limited=False)))


@settings(max_examples=100)
@given(st.data(), PARAMETERS, VERSIONS)
def test_a_pool_goes_by_limits_alike(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int]
) -> None:
    machine = Machine.flat(data.draw(st.integers(1, 8)))
    workload = data.draw(ruled_workloads(data.draw(flat_workloads(machine.cpus))))
    check_same(workload, data.draw(ruled_sites(machine, version, parameters, limited=True)))


@settings(max_examples=50)
@given(st.data(), PARAMETERS, VERSIONS, st.booleans())
def test_nodes_go_by_rules_alike(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int], limited: bool
) -> None:
    machine = data.draw(machines())
    workload = data.draw(node_workloads(machine, most_jobs=15))
    workload = data.draw(ruled_workloads(workload))
    site = data.draw(ruled_sites(machine, version, parameters, limited=limited))
    test_slurm_agreement.check_same(workload, site, patience_s=PATIENCE_S)
