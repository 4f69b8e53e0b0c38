"""The native core schedules as the specification of Slurm does, job for job."""

from __future__ import annotations

import dataclasses

import numpy as np
from foretime_estimators.jobs.errors import InputError
from foretime_sim import Policy, simulate
from foretime_sim.engine.admission import After
from foretime_sim.engine.schedule import NEVER, StartedBy
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.policies.slurm import Slurm
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.reference.slurm.jobs.schedule import Loop, SlurmSchedule
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import fit_request
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.slurm.loop_settings import VERSIONS, loop_parameters
from tests.support.workloads.node_workloads import machines, workloads
from tests.support.workloads.small_workloads import workloads as flat_workloads

PARAMETERS = loop_parameters(
    time_min_as_soft_limit=st.booleans(),
    over_time_limit_s=st.sampled_from([0, 0, 60]),
    kill_wait_s=st.sampled_from([0, 30]),
    assoc_limit_stop=st.booleans(),
    bf_licenses=st.booleans(),
    bf_max_job_user_part=st.sampled_from([0, 0, 2]),
    bf_max_job_assoc=st.sampled_from([0, 0, 2]),
)


# Basic priorities count down from 2^32 - 2^16. (A forward run does not know where they began.)
MIN_PRIORITIES = st.sampled_from([0, 0, 0, 0xFFFF0000 - 5])


BASIC = SlurmPriority(multifactor=False)


def check_same(
    workload: Workload, site: SlurmSite, *, patience_s: int | None = None
) -> SlurmSchedule:
    """Both schedule alike, and never run the same jobs, for the same reason."""
    by_hand = simulate_slurm(workload, site, workload.site_jobs, patience_s=patience_s)
    native = simulate(workload, Policy(backfill=Slurm(site)), allocation=True)
    never = [index for index, job in enumerate(by_hand.jobs) if job.start is None]
    assert list(native.never_ran) == never
    times = zip(native.start_time.tolist(), native.end_time.tolist(), strict=True)
    ran = [(None, None) if start == NEVER else (start, end) for start, end in times]
    assert ran == [(job.start, job.end) for job in by_hand.jobs]
    assert native.used_up is not None
    assert native.used_up.tolist() == [job.used_up for job in by_hand.jobs]
    loops = {0: None, StartedBy.HEAD: Loop.MAIN, StartedBy.BACKFILLED: Loop.BACKFILL}
    assert [loops[how] for how in native.started_by.tolist()] == by_hand.loops
    assert native.slurm_partition is not None
    parts = zip(native.slurm_partition.tolist(), by_hand.jobs, strict=True)
    assert all(job.start is None or part == job.slurm_partition for part, job in parts)
    if native.allocation is not None:
        had: list[list[tuple[int, int]]] = [[] for _ in by_hand.jobs]
        columns = (native.allocation.job, native.allocation.node, native.allocation.cpus)
        for job, node, cpus in zip(*(column.tolist() for column in columns), strict=True):
            had[job].append((node, cpus))
        assert [tuple(sorted(rows)) for rows in had] == [job.nodes for job in by_hand.jobs]
    return by_hand


def labels(draw: st.DrawFn, jobs: int, names: tuple[str, ...]) -> Labels | None:
    """One of the names for each job or none, or no column."""
    if not names or not draw(st.booleans()):
        return None
    codes = draw(st.lists(st.integers(-1, len(names) - 1), min_size=jobs, max_size=jobs))
    return Labels(np.array(codes, dtype=np.int32), names)


@st.composite
def saying(draw: st.DrawFn, workload: Workload, site: SlurmSite) -> Workload:
    """Let some jobs say each thing that they can say; Slurm refuses TimeMin above a limit."""
    jobs = len(workload)

    def column(values: st.SearchStrategy[int]) -> np.ma.MaskedArray | None:
        if not draw(st.booleans()):
            return None
        return column_of(draw(st.lists(st.none() | values, min_size=jobs, max_size=jobs)))

    def column_of(said: list[int | None]) -> np.ma.MaskedArray:
        return np.ma.array(
            [0 if one is None else one for one in said],
            mask=[one is None for one in said],
            dtype=np.int64,
        )

    time_min = column(st.sampled_from([60, 120, 600]))
    if time_min is not None:
        time_min = np.ma.minimum(time_min, -(-workload.requested_time // 60) * 60)
    arrays = labels(draw, jobs, ("a", "b"))
    most_running = None
    if arrays is not None and draw(st.booleans()):
        most = {name: draw(st.sampled_from([None, 1, 2])) for name in arrays.names}
        most_running = column_of([None if name is None else most[name] for name in arrays.by_job()])
    after = None
    if draw(st.sampled_from([False, False, True])):
        after = column_of(
            [draw(st.none() | st.integers(0, job - 1)) if job else None for job in range(jobs)]
        )
    reservations = labels(draw, jobs, tuple(one.name for one in site.reservations))
    if reservations is not None:
        codes = reservations.codes.copy()
        for job in np.flatnonzero(codes >= 0).tolist():
            if not fits_in(workload, job, reservations.get(job), site):
                codes[job] = -1
        reservations = dataclasses.replace(reservations, codes=codes)
    said = SiteJobs(
        nice=column(st.sampled_from([-50, 10, 100])),
        time_min_s=time_min,
        begin_time=column(st.sampled_from([0, 100, 1000])),
        reservations=reservations,
        licenses=labels(draw, jobs, ("matlab", "matlab:2,ansys") if site.licenses else ()),
        array_most_running=most_running,
        after=after,
        after_what=None if after is None else column(st.sampled_from([After.START, After.END])),
    )
    return dataclasses.replace(
        workload,
        users=labels(draw, jobs, ("u", "v")),
        projects=labels(draw, jobs, ("p", "q")),
        array_ids=arrays,
        unix_start_time=draw(st.sampled_from([None, 1_000_000_017])),
        site_jobs=said,
    )


def fits_in(workload: Workload, job: int, reservation: str | None, site: SlurmSite) -> bool:
    """Whether a job could ever run in a reservation."""
    try:
        fit_request(
            site.machine,
            dataclasses.replace(job_resources(workload, job), reservation=reservation),
            int(workload.processors[job]),
            int(workload.requested_time[job]),
            site.reservations,
        )
    except InputError:
        return False
    return True


@st.composite
def rules(draw: st.DrawFn) -> PartitionRules:
    """State of a partition and what else the loops go by; most are up."""
    return PartitionRules(
        state=draw(st.sampled_from([*["UP"] * 20, "DOWN", "DRAIN", "INACTIVE"])),
        over_time_limit_s=draw(st.sampled_from([None, None, 120])),
        default_memory_per_node_mib=draw(st.sampled_from([0, 0, 4])),
        max_cpus_per_node=draw(st.sampled_from([None, None, 1, 3])),
    )


@settings(max_examples=100)
@given(st.data(), PARAMETERS, MIN_PRIORITIES, VERSIONS)
def test_a_pool_is_scheduled_alike(
    data: st.DataObject, parameters: SlurmParameters, least: int, version: tuple[int, int]
) -> None:
    processors = data.draw(st.integers(1, 8))
    parameters = dataclasses.replace(parameters, bf_min_prio_reserve=least)
    site = SlurmSite(Machine.flat(processors), version, parameters, BASIC)
    workload = data.draw(flat_workloads(processors))
    workload = data.draw(saying(workload, site))
    check_same(workload, site)


@st.composite
def on_nodes(
    draw: st.DrawFn, parameters: SlurmParameters, version: tuple[int, int]
) -> tuple[Workload, SlurmSite]:
    """Jobs that say all that jobs may, and nodes with partitions, reservations and licenses."""
    machine = draw(machines())
    workload = draw(workloads(machine, most_jobs=15))
    reservations = tuple(
        NodeReservation(f"r{number}", start, length, (group.name,))
        for number, group in enumerate(machine.node_groups)
        for start, length in draw(
            st.lists(
                st.tuples(st.sampled_from([0, 60, 500]), st.sampled_from([60, 1000])), max_size=1
            )
        )
    )
    site = SlurmSite(
        machine,
        version,
        parameters,
        BASIC,
        rules={part.name: draw(rules()) for part in machine.slurm_partitions},
        reservations=reservations,
        licenses=draw(st.sampled_from([{}, {"matlab": 2, "ansys": 1}])),
    )
    return draw(saying(workload, site)), site


@settings(max_examples=100)
@given(st.data(), PARAMETERS, MIN_PRIORITIES, VERSIONS)
def test_nodes_are_given_out_alike(
    data: st.DataObject, parameters: SlurmParameters, least: int, version: tuple[int, int]
) -> None:
    parameters = dataclasses.replace(parameters, bf_min_prio_reserve=least)
    workload, site = data.draw(on_nodes(parameters, version))
    check_same(workload, site)


MACHINE = Machine(
    (NodeGroup("n", 3, 4), NodeGroup("spare", 1, 4)),
    (SlurmPartition("all", ("n",), default=True), SlurmPartition("other", ("spare",))),
)


def jobs_of(rows: list[tuple[int, int, int]], nodes: list[int]) -> Workload:
    """Jobs with submission, CPUs, runtime and ``--nodes`` (0: none); their limit is an hour."""
    submit_time, processors, runtime = np.array(rows, dtype=np.int64).T
    return Workload(
        "by hand", MACHINE.cpus, None, np.arange(len(rows)), submit_time, processors, runtime,
        np.full(len(rows), 3600), machine=MACHINE, site_jobs=SiteJobs(),
        requests=ResourceRequests(nodes=np.ma.masked_equal(nodes, 0)),
    )  # fmt: skip


def test_a_job_that_poor_nodes_would_not_hold_is_given_others() -> None:
    workload = jobs_of([(0, 3, 900), (10, 8, 60)], nodes=[0, 2])
    schedule = check_same(workload, SlurmSite(MACHINE))
    assert [node for node, _ in schedule.jobs[1].nodes] == [1, 2]


def test_the_main_loop_runs_as_a_reservation_ends_though_nobody_waits() -> None:
    parameters = SlurmParameters(
        sched_min_interval_us=2_000_000, batch_sched_delay=0, backfill=False
    )
    workload = jobs_of([(0, 1, 2000), (1001, 1, 60)], nodes=[0, 0])
    reservations = (NodeReservation("over", 900, 100, ("spare",)),)
    quiet = SlurmSite(MACHINE, parameters=parameters)
    site = dataclasses.replace(quiet, reservations=reservations)
    assert check_same(workload, quiet).start_times[1] == 1002
    assert check_same(workload, site).start_times[1] == 1003


def test_tasks_are_tested_again_once_the_window_holds_a_plan_of_the_one_before() -> None:
    """The plan of job 12 ends beyond the window, so that job 13 can be planned only later."""
    processors = np.array([3, 1, 1, 1, 1, 5, 1, 2, 6, 1, 1, 1, 4, 5, *[1] * 11])
    jobs = len(processors)
    runtime, requested = np.ones(jobs, np.int64), np.ones(jobs, np.int64)
    runtime[[0, 5]] = 224, 298
    requested[12] = 372
    workload = Workload(
        "array", 6, None, np.arange(jobs), np.zeros(jobs, np.int64), processors, runtime, requested,
        array_ids=Labels(np.zeros(jobs, np.int32), ("a",)),
    )  # fmt: skip
    parameters = SlurmParameters(
        batch_sched_delay=0, sched_interval=20, default_queue_depth=1, bf_interval=5,
        bf_resolution=1, bf_window=600, kill_wait_s=0,
    )  # fmt: skip
    schedule = check_same(workload, SlurmSite(Machine.flat(6), (22, 5), parameters, BASIC))
    assert schedule.start_times[14] == 65


def test_a_limit_that_backfill_shortened_stays_as_the_engine_corrects_an_estimate() -> None:
    parameters = SlurmParameters(
        batch_sched_delay=0, bf_interval=5, bf_resolution=1, epilog=False, over_time_limit_s=60
    )
    workload = jobs_of([(0, 1, 1), (10, 1, 73), (88, 1, 1)], nodes=[0, 0, 0])
    workload = dataclasses.replace(
        workload,
        requested_time=np.array([1, 69, 1]),
        site_jobs=SiteJobs(time_min_s=np.ma.masked_equal([0, 60, 0], 0)),
    )
    check_same(workload, SlurmSite(MACHINE, (24, 11), parameters))


def test_jobs_that_run_over_their_limits_as_the_site_lets_them_pass_the_check() -> None:
    site = SlurmSite(
        MACHINE,
        parameters=SlurmParameters(over_time_limit_s=60),
        rules={"all": PartitionRules(over_time_limit_s=120)},
    )
    workload = dataclasses.replace(
        jobs_of([(0, 1, 230), (0, 1, 500)], nodes=[0, 0]), requested_time=np.array([120, 120])
    )
    schedule = simulate(workload, Policy(backfill=Slurm(site)), check=True)
    assert (schedule.end_time - schedule.start_time).tolist() == [230, 240]
    assert schedule.killed.tolist() == [False, True]
