"""Random sites under PBS, and workloads for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from foretime_sim.sites.pbs.limits import EntityLimits, PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import (
    PbsHost,
    PbsQueue,
    PbsReservation,
    PbsServer,
    PbsSite,
    ShareGroup,
)
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import fit_requests
from foretime_sim.workloads.workload import Workload
from hypothesis import strategies as st

USERS = ("alice", "bob", "carol")
PROJECTS = ("red", "blue")
EPOCH = 1_000_000_000
_FORMULAS = (
    "ncpus",
    "-walltime",
    "queue_priority + 2 * ncpus / (1 + walltime)",
    "min(ncpus, 3) * 100 if soft_walltime else -1",
    "1 / (ncpus - 2)",
    "fairshare_factor * ncpus",
    "fairshare_perc - fairshare_tree_usage + sqrt(walltime) / 100",
)
_KEYS = ("ncpus", "walltime", "mem", "fair_share_perc", "soft_walltime", "preempt_priority")


@st.composite
def limits(draw: st.DrawFn, queue: bool) -> PbsLimits:
    """Few limits, most often none."""

    def some(least: int, most: int) -> EntityLimits:
        names = ("o:PBS_ALL", "u:PBS_GENERIC", "u:alice", "p:PBS_GENERIC", "p:red")
        return draw(st.dictionaries(st.sampled_from(names), st.integers(least, most), max_size=2))

    chosen = draw(st.sampled_from(["none", "none", "run", "resources", "queued"]))
    if chosen == "run":
        return PbsLimits(max_run=some(1, 3))
    if chosen == "resources":
        name = draw(st.sampled_from(["ncpus", "walltime", "mem", "soft_walltime", "foo"]))
        most = {"ncpus": (6, 12), "mem": (2**30, 2**34)}.get(name, (200, 900))
        return PbsLimits(max_run_res={name: some(*most)})
    if chosen == "queued" and queue:
        return PbsLimits(max_queued=some(4, 20), queued_jobs_threshold_res={"ncpus": some(20, 60)})
    return PbsLimits()


@st.composite
def pbs_sites(draw: st.DrawFn, *, pool: bool = False) -> PbsSite:
    """A site with a few hosts and queues; with one host alone it is a pool."""
    settings: dict[str, Any] = {
        name: draw(st.booleans()) for name in ("by_queue", "round_robin", "strict_ordering")
    }
    fair_share = draw(st.sampled_from([False, False, True]))
    formula = draw(st.none() | st.sampled_from(_FORMULAS))
    dedicated = draw(st.sampled_from([False, False, False, True]))
    names = ["workq", "other", "ded_q"] if dedicated else ["workq", "other"]
    queues = tuple(
        PbsQueue(
            name,
            draw(st.integers(0, 2)),
            limits=draw(limits(queue=True)),
            backfill_depth=draw(st.sampled_from([None, None, None, 0, 1, 2])),
            resources_available=draw(st.sampled_from([{}, {}, {"ncpus": 6}])),
            resources_min=draw(st.sampled_from([{}, {}, {"ncpus": 2}])),
            resources_default=draw(st.sampled_from([{}, {}, {"soft_walltime": 60}])),
        )
        for name in names
    )
    resources = ("ncpus", "mem", *(("soft_walltime",) if draw(st.booleans()) else ()))
    hosts = tuple(_hosts(draw, 1 if pool else draw(st.integers(1, 4)), pool=pool))
    return PbsSite(
        hosts,
        queues,
        PbsServer(
            limits=draw(limits(queue=True)),
            backfill_depth=draw(st.none() | st.integers(0, 3)),
            job_sort_formula=formula,
            job_sort_formula_threshold=draw(st.sampled_from([None, None, 0.0])),
            scheduler_iteration_s=draw(st.sampled_from([50, 600])),
            resources_available=draw(st.sampled_from([{}, {}, {"ncpus": 8}])),
        ),
        PbsScheduler(
            **settings,
            fair_share=fair_share,
            resources=resources,
            opt_backfill_fuzzy_s=draw(st.sampled_from([1, 60])),
            job_sort_key=tuple(
                draw(st.lists(st.tuples(st.sampled_from(_KEYS), st.booleans()), max_size=2))
            ),
            fairshare_usage_res=draw(st.sampled_from(["cput", "ncpus*walltime", "walltime**0.5"])),
            fairshare_entity=draw(st.sampled_from(["euser", "project", "queue"])),
            fairshare_decay_time_s=draw(st.sampled_from([0, 100, 86_400])),
            fairshare_decay_factor=draw(st.sampled_from([0.5, 0.7])),
            fairshare_enforce_no_shares=draw(st.booleans()),
            unknown_shares=draw(st.sampled_from([0, 7])),
            node_sort_key=draw(st.sampled_from([(), (("ncpus", True),), (("mem", False),)])),
        ),
        share_groups=_share_groups(draw),
        dedicated_time=((EPOCH + 150, EPOCH + 300),) if dedicated else (),
        reservations=_reservations(draw, hosts),
        usage_lag_s=draw(st.sampled_from([0, 6])),
    )


def _hosts(draw: st.DrawFn, count: int, *, pool: bool) -> list[PbsHost]:
    made = []
    for number in range(count):
        has = {"ncpus": 8 if pool else draw(st.sampled_from([2, 4]))}
        if draw(st.booleans()):
            has["mem"] = draw(st.sampled_from([4, 8])) * 2**30 + draw(st.sampled_from([0, 5]))
        if draw(st.sampled_from([False, False, True])):
            has["ngpus"] = 2
        owner = draw(st.sampled_from([None, None, None, "other"])) if number else None
        made.append(PbsHost(f"n{number}", has, queue=owner))
    return made


def _share_groups(draw: st.DrawFn) -> tuple[ShareGroup, ...]:
    """Give everybody a place of one depth, so that no two orders are equally right."""
    if draw(st.booleans()):
        return ()
    people = draw(st.permutations([*USERS, *PROJECTS, "workq"]))
    usage = st.sampled_from([1.0, 50.0, 1234.5])
    return (
        ShareGroup("staff", shares=2, usage=draw(usage)),
        ShareGroup("students", shares=3, usage=draw(usage)),
        *(
            ShareGroup(
                name, draw(st.sampled_from(["staff", "students"])), at + 1, usage=draw(usage)
            )
            for at, name in enumerate(people[: draw(st.integers(2, 6))])
        ),
        *draw(st.sampled_from([(), (ShareGroup("dan", "unknown", usage=77.0),)])),
    )


def _reservations(draw: st.DrawFn, hosts: Sequence[PbsHost]) -> tuple[PbsReservation, ...]:
    return tuple(
        PbsReservation(
            f"R{number}",
            EPOCH + start,
            EPOCH + start + length,
            {hosts[-1].name: {"ncpus": cpus}},
        )
        for number, (start, length, cpus) in enumerate(
            draw(
                st.lists(
                    st.tuples(
                        st.sampled_from([0, 100, 250]),
                        st.sampled_from([60, 200]),
                        st.integers(1, 2),
                    ),
                    max_size=draw(st.sampled_from([0, 0, 0, 1])),
                )
            )
        )
    )


def workload_on(
    site: PbsSite, jobs: Sequence[tuple[int, int, int, int]], **columns: Any
) -> Workload:
    """Give jobs (submission, processors, runtime, request) on a site's machine."""
    table = np.array(jobs, dtype=np.int64).reshape(-1, 4)
    submit, processors, runtime, requested = (np.ascontiguousarray(table[:, at]) for at in range(4))
    return Workload(
        "drawn",
        site.machine.cpus,
        EPOCH,
        np.arange(1, len(table) + 1),
        submit,
        processors,
        runtime,
        requested,
        machine=site.machine,
        **columns,
    )


@st.composite
def pbs_workloads(draw: st.DrawFn, site: PbsSite) -> tuple[Workload, np.ndarray | None]:
    """Jobs that could run on the site's machine, and perhaps their scheduled times."""
    jobs = draw(st.integers(1, 20))
    rows, now = [], 0
    for _ in range(jobs):
        now += draw(st.sampled_from([0, 0, 1, 7, 40]))
        requested = draw(st.sampled_from([1, 30, 60, 100, 100, 250]))
        runtime = draw(st.sampled_from([0, 1, 30, 60, 80, 300]))
        rows.append((now, draw(st.integers(1, 6)), runtime, requested))

    def labels(names: Sequence[str]) -> Labels | None:
        if draw(st.booleans()):
            return None
        codes = draw(st.lists(st.integers(-1, len(names) - 1), min_size=jobs, max_size=jobs))
        return Labels(np.array(codes, dtype=np.int32), tuple(names))

    def column(values: Sequence[int | None]) -> np.ma.MaskedArray | None:
        if draw(st.booleans()):
            return None
        drawn = draw(st.lists(st.sampled_from(values), min_size=jobs, max_size=jobs))
        return np.ma.array(
            [value or 0 for value in drawn],
            mask=[value is None for value in drawn],
            dtype=np.int64,
        )

    requests = ResourceRequests(
        slurm_partitions=labels([part.name for part in site.machine.slurm_partitions]),
        nodes=column([None, None, 1, 2]),
        cpus_per_task=column([None, None, 2]),
        memory_per_cpu_mib=column([None, 512, 1000]),
        memory_per_node_mib=column([None, None, 2000]),
        gpus_per_node=column([None, None, None, 1]),
        exclusive=column([None, None, None, 1]),
    )
    workload = workload_on(
        site, rows, requests=requests, users=labels((*USERS, "dan")), projects=labels(PROJECTS)
    )
    fitted = fit_requests(workload)
    workload = workload.take(fitted.request_of >= 0)
    if draw(st.booleans()):
        return workload, None
    share = draw(st.lists(st.integers(1, 6), min_size=len(workload), max_size=len(workload)))
    soft = np.maximum(workload.requested_time * np.array(share, dtype=np.int64) // 6, 1)
    return workload, soft
