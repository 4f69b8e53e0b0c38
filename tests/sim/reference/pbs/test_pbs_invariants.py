"""What holds of PBS's scheduler on any site and any jobs."""

from __future__ import annotations

from collections import Counter

from foretime_sim.reference.pbs.job import Chunk, PbsJob
from foretime_sim.reference.pbs.run import PbsRun, run_pbs
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.site import PbsQueue, PbsServer, PbsSite, ShareGroup
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pbs.pbs_sites import site_of

USERS = ("alice", "bob", "carol")
HOSTS, CPUS = 3, 4


@st.composite
def pbs_sites(draw: st.DrawFn) -> PbsSite:
    most = draw(st.none() | st.integers(1, 3))
    limits = PbsLimits(max_run={} if most is None else {"u:PBS_GENERIC": most})
    queues = (PbsQueue("workq", draw(st.integers(0, 2))), PbsQueue("other", 1, limits=limits))
    names = ("by_queue", "round_robin", "strict_ordering", "fair_share")
    scheduler: dict[str, object] = {name: draw(st.booleans()) for name in names}
    scheduler["opt_backfill_fuzzy_s"] = draw(st.sampled_from([1, 60]))
    return site_of(
        HOSTS,
        CPUS,
        scheduler | {"fairshare_usage_res": "ncpus*walltime"},
        queues=queues,
        server=PbsServer(
            backfill_depth=draw(st.none() | st.integers(0, 3)),
            job_sort_formula=draw(st.sampled_from([None, "ncpus", "-walltime"])),
        ),
        share_groups=tuple(ShareGroup(user, shares=at + 1) for at, user in enumerate(USERS)),
    )


@st.composite
def pbs_jobs(draw: st.DrawFn, exact: bool = False) -> list[PbsJob]:
    jobs, now = [], 0
    for index in range(draw(st.integers(1, 25))):
        unit = 10 if exact else 1
        now += unit * draw(st.integers(0, 20))
        walltime = unit * draw(st.integers(1, 60))
        jobs.append(
            PbsJob(
                index,
                now,
                walltime if exact else draw(st.integers(1, 70)),
                (Chunk(draw(st.integers(1, 3)), {"ncpus": draw(st.integers(1, CPUS))}),),
                user=draw(st.sampled_from(USERS)),
                queue=draw(st.sampled_from(["workq", "other"])),
                walltime_s=walltime,
                soft_walltime_s=None if exact else draw(st.none() | st.integers(1, walltime)),
                place=draw(st.sampled_from(["free", "scatter"])),
            )
        )
    return jobs


def check_room(site: PbsSite, jobs: list[PbsJob], run: PbsRun) -> None:
    """Check that no host ever has more than its CPUs in use, nor a user more jobs than allowed."""
    limit = site.queue("other").limits.max_run.get("u:PBS_GENERIC")
    for moment in set(run.start.values()):
        running = [
            job
            for job in jobs
            if run.start[job.index] <= moment < run.start[job.index] + job.held_s
        ]
        used: Counter[str] = Counter()
        for job in running:
            used.update({host: has["ncpus"] for host, has in run.placement[job.index].items()})
        assert all(cpus <= CPUS for cpus in used.values())
        if limit is not None:
            of_users = Counter(job.user for job in running if job.queue == "other")
            assert all(count <= limit for count in of_users.values())


@given(pbs_sites(), pbs_jobs())
def test_every_job_starts_where_there_is_room_within_its_limits(
    site: PbsSite, jobs: list[PbsJob]
) -> None:
    run = run_pbs(site, jobs)
    assert sorted(run.start_order) == [job.index for job in jobs]
    assert all(run.start[job.index] >= job.submit_time for job in jobs)
    for job in jobs:
        placed = sum(has["ncpus"] for has in run.placement[job.index].values())
        assert placed == job.list["ncpus"]
    check_room(site, jobs, run)


@given(pbs_sites(), pbs_jobs())
def test_jobs_that_are_alike_start_in_their_order(site: PbsSite, jobs: list[PbsJob]) -> None:
    run = run_pbs(site, jobs)
    place = {index: place for place, index in enumerate(run.start_order)}
    seen: dict[str, int] = {}
    for job in jobs:
        same = repr((job.chunks, job.user, job.queue, job.walltime_s, job.place))
        if same in seen:
            assert place[seen[same]] < place[job.index]
        seen[same] = job.index


# Where two jobs end in one second, the first one's cycle takes the other to end a second later, and
# a job of one second may start before the top job: so all times here are tens of seconds.
@given(pbs_jobs(exact=True), st.integers(1, 3))
def test_a_top_job_starts_by_its_plan_where_walltimes_are_exact(
    jobs: list[PbsJob], depth: int
) -> None:
    site = site_of(
        HOSTS,
        CPUS,
        {"strict_ordering": True, "by_queue": False},
        queues=(PbsQueue("workq"), PbsQueue("other")),
        server=PbsServer(backfill_depth=depth),
    )
    run = run_pbs(site, jobs)
    first: dict[int, int] = {}
    for _, index, planned in run.top_jobs:
        first.setdefault(index, planned)
        assert run.start[index] <= first[index]


@given(pbs_jobs())
def test_without_strict_ordering_nobody_is_planned_and_nobody_waits_who_fits(
    jobs: list[PbsJob],
) -> None:
    site = site_of(HOSTS, CPUS, queues=(PbsQueue("workq"), PbsQueue("other")))
    run = run_pbs(site, jobs)
    assert not run.top_jobs
    waited = [job for job in jobs if run.start[job.index] > job.submit_time]
    for job in waited:
        # When it was submitted there was no room for it, or it would have started.
        now = job.submit_time
        used: Counter[str] = Counter()
        for other in jobs:
            begins = run.start[other.index]
            if begins <= now < begins + other.held_s:
                used.update({h: has["ncpus"] for h, has in run.placement[other.index].items()})
        free = sum(CPUS - used[host.name] for host in site.hosts)
        each = job.chunks[0].resources["ncpus"]
        rooms = [(CPUS - used[host.name]) // each for host in site.hosts]
        if job.place == "scatter":
            rooms = [min(room, 1) for room in rooms]
        assert sum(rooms) < job.chunks[0].count or free < job.list["ncpus"]
