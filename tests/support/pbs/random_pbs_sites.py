"""Random sites under PBS."""

from __future__ import annotations

from typing import Any

from foretime_sim.files.durations import MAX_SECONDS
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import (
    PbsHost,
    PbsQueue,
    PbsReservation,
    PbsServer,
    PbsSite,
    ShareGroup,
)
from hypothesis import strategies as st

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters=" ,&|\t\n"),
    min_size=1,
    max_size=6,
) | st.sampled_from(["n001", "n002", "n003", "n9", "n10", "h[0]", "h[1]", "workq"])
COUNTS = st.integers(0, 2**40)
TIMES = st.integers(0, MAX_SECONDS)
RESOURCES = st.sampled_from(["ncpus", "mem", "walltime", "ngpus", "soft_walltime", "own res"])
AMOUNTS = st.dictionaries(RESOURCES, st.integers(1, 2**40) | st.just(2**33), max_size=3)
SOMEBODY = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters='"=]'),
    min_size=1,
    max_size=6,
)
WHO = st.builds("{}:{}".format, st.sampled_from("ougp"), SOMEBODY | st.just("PBS_GENERIC"))
LIMITS = st.dictionaries(WHO, COUNTS, max_size=3)
OF_RESOURCES = st.dictionaries(RESOURCES, LIMITS, max_size=2)
SORT_KEYS = st.lists(
    st.tuples(st.sampled_from(["ncpus", "job_priority", "ncpus unused"]), st.booleans()), max_size=3
).map(tuple)
MOMENTS = st.integers(-(10**9), 10**12)


def _resources(draw: st.DrawFn) -> dict[str, Any]:
    kinds = ("available", "min", "max", "default")
    return {f"resources_{kind}": draw(AMOUNTS) for kind in kinds}


def _limits(draw: st.DrawFn) -> PbsLimits:
    names = ("max_run", "max_queued", "queued_jobs_threshold")
    limits: dict[str, Any] = {name: draw(LIMITS) for name in names}
    limits |= {f"{name}_res": draw(OF_RESOURCES) for name in names}
    return PbsLimits(**limits)


def _share_groups(draw: st.DrawFn) -> tuple[ShareGroup, ...]:
    groups: list[ShareGroup] = []
    for name in draw(st.lists(TEXTS, max_size=4, unique=True)):
        if name in ("root", "unknown"):
            continue
        above = draw(st.sampled_from(["root", "unknown", *(group.name for group in groups)]))
        usage = draw(st.floats(0, 1e15))
        groups.append(ShareGroup(name, above, draw(COUNTS), usage))
    return tuple(draw(st.permutations(groups)))


def _hosts(draw: st.DrawFn, names: list[str], queues: list[str]) -> tuple[PbsHost, ...]:
    """Hosts of one or two kinds, so that neighbours are alike, and one that is no queue's."""
    kinds = [
        (
            draw(AMOUNTS) | {"ncpus": draw(st.integers(1, 10**6))},
            draw(st.dictionaries(st.sampled_from(["arch", "gpu", "host", "vnode"]), TEXTS)),
            draw(st.integers(-1024, 1023)),
            draw(st.none() | st.sampled_from(queues)),
        )
        for _ in range(2)
    ]
    hosts = [PbsHost(name, *kinds[draw(st.integers(0, 1))]) for name in names]
    return (*hosts, PbsHost("at-the-end", {"ncpus": 1}, queue=queues[0]))


@st.composite
def pbs_schedulers(draw: st.DrawFn) -> PbsScheduler:
    """Settings of any kind."""
    values: dict[str, Any] = {
        name: draw(st.booleans())
        for name in (
            "by_queue", "round_robin", "strict_ordering", "fair_share", "backfill_prime",
            "fairshare_enforce_no_shares", "prime_exempt_anytime_queues", "preemptive_sched",
        )
    }  # fmt: skip
    values |= {
        name: draw(TEXTS)
        for name in (
            "smp_cluster_dist", "fairshare_usage_res", "fairshare_entity", "dedicated_prefix",
            "primetime_prefix", "nonprimetime_prefix",
        )
    }  # fmt: skip
    return PbsScheduler(
        **values,
        job_sort_key=draw(SORT_KEYS),
        node_sort_key=draw(SORT_KEYS),
        resources=tuple(draw(st.lists(TEXTS, max_size=3))),
        fairshare_decay_time_s=draw(TIMES.filter(bool)),
        fairshare_decay_factor=draw(st.floats(0, 1)),
        unknown_shares=draw(COUNTS),
        prime_spill_s=draw(TIMES),
        preempt_queue_prio=draw(st.integers(-1024, 1023)),
        opt_backfill_fuzzy_s=draw(st.sampled_from([1, 60, 600, 3600]) | st.integers(1, 10**6)),
    )


@st.composite
def pbs_sites(draw: st.DrawFn) -> PbsSite:
    """A site with something of everything, which does not contradict itself."""
    queues = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    names = draw(st.lists(NAMES.filter("at-the-end".__ne__), max_size=6, unique=True))
    names = sorted(names) if draw(st.booleans()) else names
    hosts = _hosts(draw, names, queues)
    spans = [
        (begins, begins + draw(st.integers(1, 10**6)))
        for begins in draw(st.lists(MOMENTS, max_size=2))
    ]
    return PbsSite(
        hosts,
        tuple(
            PbsQueue(
                name,
                priority=draw(st.integers(-1024, 1023)),
                enabled=draw(st.booleans()),
                started=draw(st.booleans()),
                limits=_limits(draw),
                backfill_depth=draw(st.none() | COUNTS),
                **_resources(draw),
            )
            for name in queues
        ),
        server=PbsServer(
            default_queue=draw(st.sampled_from(queues)),
            limits=_limits(draw),
            backfill_depth=draw(st.none() | COUNTS),
            job_sort_formula=draw(st.none() | TEXTS),
            job_sort_formula_threshold=draw(st.none() | st.floats(-1e9, 1e9)),
            eligible_time_enable=draw(st.booleans()),
            scheduler_iteration_s=draw(st.integers(1, 10**9)),
            **_resources(draw),
        ),
        scheduler=draw(pbs_schedulers()),
        share_groups=_share_groups(draw),
        dedicated_time=tuple(spans),
        reservations=tuple(
            PbsReservation(
                name,
                begins := draw(MOMENTS),
                begins + draw(st.integers(1, 10**9)),
                {
                    host: draw(AMOUNTS)
                    for host in draw(st.lists(st.sampled_from([each.name for each in hosts])))
                },
            )
            for name in draw(st.lists(TEXTS, max_size=2, unique=True))
        ),
        version=draw(TEXTS),
        usage_at=draw(st.none() | MOMENTS),
        decayed_at=draw(st.none() | MOMENTS),
        usage_lag_s=draw(TIMES),
        not_modelled=tuple(draw(st.lists(TEXTS, max_size=2))),
    )
