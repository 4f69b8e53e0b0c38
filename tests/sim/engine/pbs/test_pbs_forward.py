"""Forward runs of a real PBS's queue go on as the specification runs it from the beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim import Policy, Snapshot, forward_runs
from foretime_sim.engine.forward import (
    NEVER,
    HeldNodes,
    NodeRequests,
    PendingJobs,
    RunningJobs,
    SampledArrivals,
    ToldJob,
    ToldPbsJob,
)
from foretime_sim.engine.told_pbs_jobs import pbs_request
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction
from foretime_sim.reference.pbs import cycle
from foretime_sim.reference.pbs.fair_share import FairShare
from foretime_sim.reference.pbs.job import Chunk, PbsJob
from foretime_sim.reference.pbs.run import PbsRun, run_pbs
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.site import PbsServer, PbsSite, ShareGroup
from foretime_sim.workloads.node_request import HostChunk
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pbs.pbs_sites import job, site_of
from tests.support.pbs.pbs_workloads import EPOCH, PROJECTS, USERS, pbs_sites

_MIB = 2**20
_BY_SHARES = ("fairshare", "fair_share")


def policy_of(site: PbsSite) -> Policy:
    return Policy(backfill=Pbs(site), correction=Correction.PBS)


def told(each: PbsJob) -> ToldPbsJob:
    """What PBS tells of a job."""
    chunks = tuple(
        HostChunk(
            chunk.count,
            chunk.resources.get("ncpus", 0),
            chunk.resources.get("mem", 0),
            chunk.resources.get("ngpus", 0),
        )
        for chunk in each.chunks
    )
    return ToldPbsJob(
        each.user,
        each.project,
        each.queue,
        chunks,
        each.place,  # type: ignore[arg-type]
        each.exclusive,
        each.priority,
    )


def snapshot_of(site: PbsSite, jobs: Sequence[PbsJob], run: PbsRun, now: int) -> Snapshot:
    """What PBS tells at a moment, before its cycle: who runs, on which hosts, and who waits."""
    order = [each for each in run.start_order if run.start[each] < now]
    runs = [jobs[at] for at in order if run.start[at] + jobs[at].held_s > now]
    waits = [
        each
        for each in jobs
        if each.index not in run.refused and run.start.get(each.index, now) >= now
    ]
    machine = site.machine
    hosts = [host.name for host in site.hosts]
    queues = [part.name for part in machine.slurm_partitions]
    rows = [
        (
            row,
            hosts.index(name),
            1,
            has.get("ncpus", 0),
            has.get("mem", 0) // _MIB,
            has.get("ngpus", 0),
        )
        for row, each in enumerate(runs)
        for name, has in run.placement[each.index].items()
    ]
    asked = [pbs_request(machine, told(each), 1, queues.index(each.queue)) for each in waits]

    def column(of: Sequence[PbsJob], name: str) -> np.ndarray:
        return np.array([getattr(each, name) for each in of], dtype=np.int64)

    cpus = [int(each.list["ncpus"]) for each in runs]
    return Snapshot(
        now,
        machine.cpus,
        RunningJobs(
            np.array([run.start[each.index] for each in runs], dtype=np.int64),
            np.array(cpus, dtype=np.int64),
            column(runs, "hard_s"),
            column(runs, "planned_s"),
            slurm_partition=np.array([queues.index(each.queue) for each in runs], dtype=np.int64),
            held=HeldNodes.of_rows(rows),
        ),
        PendingJobs(
            column(waits, "submit_time"),
            NodeRequests.of_each(asked).processors(),
            column(waits, "hard_s"),
            column(waits, "planned_s"),
            priority=column(waits, "priority"),
            requests=NodeRequests.of_each(asked),
        ),
        machine=machine,
        told=tuple(map(told, (*runs, *waits))),
    )


def starts_of(
    site: PbsSite, snapshot: Snapshot, runtime_s: Sequence[int], **more: Any
) -> list[int]:
    runtimes = np.array([runtime_s], dtype=np.int64)
    starts = forward_runs(snapshot, policy_of(site), runtimes, threads=1, **more)[0]
    return [int(start) for start in starts]


@st.composite
def _jobs(draw: st.DrawFn, site: PbsSite) -> list[PbsJob]:
    """Jobs with select statements of one or two kinds of chunks, each at a second of its own."""
    jobs, now = [], EPOCH
    has_memory = all("mem" in host.resources for host in site.hosts)
    more = [{}, {}, {"ngpus": 1}, {"mem": 2**30} if has_memory else {}]
    queues = [part.name for part in site.machine.slurm_partitions]
    for index in range(draw(st.integers(2, 15))):
        now += draw(st.sampled_from([1, 2, 7, 40]))
        chunks = tuple(
            Chunk(
                draw(st.integers(1, 2 if site.machine.cpus >= 8 else 1)),
                {
                    "ncpus": draw(st.integers(1, 2 if site.machine.cpus >= 4 else 1)),
                    **draw(st.sampled_from(more)),
                },
            )
            for _ in range(draw(st.sampled_from([1, 1, 2])))
        )
        walltime_s = draw(st.sampled_from([1, 30, 60, 100, 250]))
        jobs.append(
            PbsJob(
                index,
                now,
                draw(st.sampled_from([1, 30, 60, 80, 300])),
                chunks,
                user=draw(st.sampled_from(USERS)),
                project=draw(st.sampled_from(PROJECTS)),
                queue=draw(st.sampled_from(queues)),
                walltime_s=walltime_s,
                soft_walltime_s=draw(st.none() | st.integers(1, walltime_s - 1))
                if walltime_s > 1
                else None,
                place=draw(st.sampled_from(["free", "free", "pack", "scatter"])),
                exclusive=draw(st.sampled_from([False, False, False, True])),
                priority=draw(st.integers(-2, 2)),
            )
        )
    return jobs


@st.composite
def _sites(draw: st.DrawFn) -> PbsSite:
    """A site at which nothing hangs on what was used before a moment."""
    site = draw(pbs_sites())
    formula = site.server.job_sort_formula or ""
    by_shares = any(word in formula for word in _BY_SHARES)
    keys = [key for key in site.scheduler.job_sort_key if key[0] != "fair_share_perc"]
    return replace(
        site,
        scheduler=replace(site.scheduler, fair_share=False, job_sort_key=tuple(keys)),
        server=replace(site.server, job_sort_formula=None if by_shares else formula or None),
        share_groups=(),
        queues=tuple(replace(queue, resources_default={}) for queue in site.queues),
    )


@st.composite
def _sites_with_shares(draw: st.DrawFn) -> PbsSite:
    """A site whose fair share decides."""
    site, drawn = draw(_sites()), draw(pbs_sites())
    scheduler = replace(
        drawn.scheduler,
        fair_share=True,
        job_sort_key=(),
        unknown_shares=0,
        fairshare_decay_time_s=draw(st.sampled_from([0, 20, 100, 86_400])),
    )
    return replace(
        site,
        scheduler=scheduler,
        share_groups=drawn.share_groups,
        usage_at=EPOCH,
        decayed_at=draw(st.none() | st.integers(EPOCH - 50, EPOCH + 50)),
    )


class _Watched(FairShare):
    """Notes at each cycle what its tree is by then, as pbs_sched's file of usage has it."""

    cycles: ClassVar[list[tuple[int, int, dict[str, float]]]] = []

    def begin_cycle(self, running: Sequence[tuple[PbsJob, int]], now: int) -> None:
        super().begin_cycle(running, now)
        used = {name: entity.usage for name, entity in self.by_name.items()}
        self.cycles.append((now, self.decayed_at, used))


def run_and_read(site: PbsSite, jobs: Sequence[PbsJob], now: int) -> tuple[PbsRun, PbsSite]:
    """Run jobs, and give the site as it was read after the last cycle before a moment."""
    _Watched.cycles.clear()
    with mock.patch.object(cycle, "FairShare", _Watched):
        run = run_pbs(site, jobs)
    before = [each for each in _Watched.cycles if each[0] < now]
    if not before:
        return run, site
    charged_at, decayed_at, used = before[-1]
    groups = tuple(replace(group, usage=used[group.name]) for group in site.share_groups)
    return run, replace(site, share_groups=groups, usage_at=charged_at, decayed_at=decayed_at)


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from([_sites, _sites_with_shares]))
def test_a_told_queue_goes_on_as_the_specification_runs_it(
    data: st.DataObject, sites: Callable[[], st.SearchStrategy[PbsSite]]
) -> None:
    begun = data.draw(sites())
    jobs = data.draw(_jobs(begun))
    run, site = run_and_read(begun, jobs, jobs[-1].submit_time)
    # The cycle of the moment is the one after the last submission, and there is no other.
    now = jobs[-1].submit_time
    ends = {run.start[at] + jobs[at].held_s for at in run.start_order}
    timed = {at for each in site.reservations for at in (each.start, each.end)}
    timed |= {end + site.server.scheduler_iteration_s for _, end in site.dedicated_time}
    if now in ends | timed or len(jobs) - 1 in run.refused:
        return
    runs = [at for at in run.start_order if run.start[at] < now < run.start[at] + jobs[at].held_s]
    waits = [
        each.index
        for each in jobs
        if each.index not in run.refused and run.start.get(each.index, now) >= now
    ]
    snapshot = snapshot_of(site, jobs, run, now)
    starts = starts_of(site, snapshot, [jobs[at].runtime_s for at in (*runs, *waits)])
    assert starts == [run.start.get(at, NEVER) for at in (*runs, *waits)]


# Fair share: one host of four CPUs that ann has had for 100 s, and two jobs that want all of it.

SHARES = (ShareGroup("ann", shares=1, usage=1000.0), ShareGroup("bob", shares=1, usage=1000.0))
_FAIR = {"fair_share": True, "fairshare_usage_res": "ncpus*walltime"}


def fair(usage_at: int | None = None, bobs: float = 1000.0, **more: Any) -> PbsSite:
    groups = (SHARES[0], replace(SHARES[1], usage=bobs))
    return site_of(1, 4, _FAIR, share_groups=groups, usage_at=usage_at, **more)


def two_wait(site: PbsSite) -> Snapshot:
    jobs = [
        job(0, 4, 300, user="ann", submit_time=0),
        job(1, 4, 100, user="ann", submit_time=10),
        job(2, 4, 100, user="bob", submit_time=20),
    ]
    return snapshot_of(site, jobs, PbsRun({0: 0}, {0: {"n0": {"ncpus": 4}}}, [0]), 100)


@pytest.mark.parametrize(
    ("decayed_at", "bobs", "starts"),
    [
        # Due at 100 s: ann's 1,000 are halved, and her job uses 4 * 150 s more by 250 s: 1,100.
        (-110, 2_199.0, [400, 300]),
        (-110, 2_201.0, [300, 400]),
        # Due after 110 s: at 250 s, when all of hers, 1,600, is halved, and bob's with it.
        (-90, 1_599.0, [400, 300]),
        (-90, 1_601.0, [300, 400]),
        # The site was read later: decays were at 90 s and before.
        (290, 1_599.0, [400, 300]),
        (290, 1_601.0, [300, 400]),
    ],
)
def test_usage_decays_on_from_when_it_last_did(
    decayed_at: int, bobs: float, starts: list[int]
) -> None:
    site = fair(None, bobs, server=PbsServer(scheduler_iteration_s=150))
    scheduler = replace(site.scheduler, fairshare_decay_time_s=200)
    site = replace(site, scheduler=scheduler, decayed_at=decayed_at)
    assert starts_of(site, two_wait(site), [300, 100, 100])[1:] == starts


@pytest.mark.parametrize(
    ("usage_at", "bobs", "starts"),
    [
        # From 100 s to the last cycle before her job ends, at 250 s, ann uses 4 * 150 s: 1,600.
        (None, 1_599.0, [400, 300]),
        (None, 1_601.0, [300, 400]),
        # The site's usage is as of 50 s: 4 * 200 s more, 1,800.
        (50, 1_799.0, [400, 300]),
        (50, 1_801.0, [300, 400]),
    ],
)
def test_fair_share_goes_on_from_the_usage_of_the_site(
    usage_at: int | None, bobs: float, starts: list[int]
) -> None:
    site = fair(usage_at, bobs, server=PbsServer(scheduler_iteration_s=150))
    assert starts_of(site, two_wait(site), [300, 100, 100])[1:] == starts


def test_limits_of_users_hold_for_a_told_queue_and_for_who_comes_later() -> None:
    limits = PbsLimits(max_run={"u:PBS_GENERIC": 1})
    site = site_of(2, 4, server=PbsServer(limits=limits))
    jobs = [
        job(0, 4, 300, user="ann", submit_time=0),
        job(1, 4, 100, user="ann", submit_time=10),
        job(2, 4, 200, user="bob", submit_time=20),
    ]
    snapshot = snapshot_of(site, jobs, PbsRun({0: 0}, {0: {"n0": {"ncpus": 4}}}, [0]), 100)
    assert starts_of(site, snapshot, [300, 100, 200]) == [0, 300, 100]
    # Bob's comes at 110 s. Carl, who comes before, has the second host; Ann's is first at 300 s.
    pending = replace(snapshot.pending, eligible_time=np.array([10, 110]))
    snapshot = replace(snapshot, pending=pending)
    later = SampledArrivals(
        sample=np.array([0]),
        submit_time=np.array([104]),
        processors=np.array([4]),
        requested_time=np.array([1000]),
        actual_runtime=np.array([1000]),
        owner=np.array([0]),
        owners=(ToldPbsJob("carl"),),
    )
    assert starts_of(site, snapshot, [300, 100, 50], arrivals=later) == [0, 300, 400]
    # A second one of Ann's may not start while hers runs.
    anns = replace(later, owners=(ToldPbsJob("ann"),))
    assert starts_of(site, snapshot, [300, 100, 50], arrivals=anns) == [0, 300, 110]


def test_what_never_starts_is_told_as_such() -> None:
    limits = PbsLimits(max_run={"u:ann": 0})
    site = site_of(1, 4, server=PbsServer(limits=limits))
    jobs = [job(0, 4, 300, user="ann"), job(1, 4, 100, user="bob")]
    assert starts_of(site, snapshot_of(site, jobs, PbsRun(), 5), [300, 100]) == [NEVER, 5]


def test_what_is_told_of_jobs_is_of_the_right_scheduler() -> None:
    site = site_of(1, 4)
    snapshot = snapshot_of(site, [job(0, 4, 300)], PbsRun(), 5)
    with pytest.raises(InputError, match="is not a ToldPbsJob each"):
        starts_of(site, replace(snapshot, told=(ToldJob(),)), [300])
