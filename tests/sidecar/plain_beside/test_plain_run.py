"""The run that goes on with the clock stands where one from the beginning stands."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple, TypeVar

import pytest
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.cluster import (
    AskedNodes,
    Cluster,
    ClusterNode,
    ClusterPartition,
    HeldNode,
)
from foretime_sidecar.plain_beside import plain_run
from foretime_sidecar.plain_beside.beginnings import Beginning, RealMoment
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.lived_days import lived
from foretime_sidecar.plain_beside.plain_run import PlainRun
from foretime_sidecar.queue.queue_events import Key
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.slurm.limits import Association, Limits
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from hypothesis import example, given, settings
from hypothesis import strategies as st

HOUR = 3600
NODES = 8
BEGAN = 20_000 * 86_400
NAMES = [f"n{number}" for number in range(NODES)]
CLUSTER = Cluster(
    tuple(ClusterNode(name, 1) for name in NAMES),
    (ClusterPartition("all", frozenset(NAMES), default=True),),
    counts_memory=False,
)
USERS = ("ann", "bob", "eve")
FAIR = SlurmSite(
    Machine.flat(NODES),
    priority=SlurmPriority(weight_fair_share=1000, weight_age=100, decay_half_life_s=86_400),
    associations=(
        Association("root"),
        Association("lab", parent="root"),
        *(Association("lab", user=name) for name in USERS[1:]),
        Association("lab", user=USERS[0], limits=Limits(max_jobs=2)),
    ),
    enforced=frozenset({"associations", "limits"}),
)
SITES = (SlurmSite(Machine.flat(NODES)), FAIR)
_Result = TypeVar("_Result")


class Job(NamedTuple):
    """What really becomes of a job; times in minutes."""

    at: int
    joins_after: int
    processors: int
    requested: int
    runtime: int
    waits: int
    expected: int
    withdrawn: bool
    user: str


JOBS = st.builds(
    Job,
    st.integers(0, 900),
    st.sampled_from([0, 0, 0, 20]),
    st.integers(1, NODES),
    st.integers(10, 300),
    st.integers(1, 320),
    st.integers(0, 500),
    st.integers(1, 300),
    st.sampled_from([False, False, False, True]),
    st.sampled_from(USERS),
)


TOGETHER = [
    Job(0, 0, 1, 10, 1, 0, 1, withdrawn=False, user="ann"),
    Job(723, 0, 8, 10, 1, 0, 1, withdrawn=False, user="ann"),
    Job(703, 20, 1, 10, 1, 0, 1, withdrawn=False, user="ann"),
]
"""The last two can start from one second on."""
WITHDRAWN = [
    *[Job(0, 0, 1, 10, 1, 0, 1, withdrawn=False, user="ann")] * 3,
    Job(0, 0, 6, 10, 1, 105, 1, withdrawn=True, user="ann"),
    Job(104, 0, 3, 136, 137, 0, 1, withdrawn=False, user="ann"),
]
"""The last can start once the one before it is withdrawn, and nothing else happens then."""


def as_known(number: int, job: Job, now: int) -> KnownJob | None:
    """What is known of a job at a time; ``None``: nothing yet."""
    at = BEGAN + 60 * job.at
    if at > now:
        return None
    request = JobRequest(
        f"{number}", job.user, "lab", job.processors, 60 * job.requested, at, queue="all"
    )
    known = KnownJob(
        QueuedJob(request, QueueState.PENDING),
        at,
        RolePrediction(*(60 * job.expected,) * 3),
    )
    joins = at + 60 * job.joins_after
    start, end = joins + 60 * job.waits, joins + 60 * (job.waits + job.runtime)
    if joins <= now:
        known.could_start = joins
    if job.withdrawn:
        known.end_time = start if start <= now else None
        return known
    if start <= now:
        known.start_time = start
    if end <= now:
        known.end_time, known.runtime_s = end, end - start
    return known


def known_at(jobs: list[Job], now: int) -> list[KnownJob]:
    each = (as_known(number, job, now) for number, job in enumerate(jobs))
    return [job for job in each if job is not None]


def ended(run: Generator[None, None, _Result]) -> _Result:
    while True:
        try:
            next(run)
        except StopIteration as done:
            result: _Result = done.value
            return result


def from_the_beginning(
    known: list[KnownJob], moment: RealMoment, beginning: Beginning, now: int
) -> dict[Key, int | None]:
    return dict(ended(lived(known, moment, beginning, now, now + 1)).starts)


def by(starts: dict[Key, int | None], now: int) -> dict[Key, int | None]:
    """Give the starts that are before now."""
    return {key: start if (start or now) < now else None for key, start in starts.items()}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(JOBS, min_size=1, max_size=25),
    st.sampled_from(SITES),
    st.lists(st.integers(1, 200), min_size=1, max_size=12),
    st.sampled_from([48, 4]),
)
@example(TOGETHER, SITES[0], [56, 115, 132, 142, 144, 151], 48)
@example(WITHDRAWN, SITES[0], [1, 104, 136], 48)
def test_it_stands_where_a_run_from_the_beginning_does(
    jobs: list[Job], site: SlurmSite, steps: list[int], kept_h: int
) -> None:
    """Whatever came to be known later than it mattered, and the starts ahead are the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_run, "_FORGOTTEN_AFTER_S", kept_h * HOUR)
        check_it_stands_so(jobs, site, steps)


def check_it_stands_so(jobs: list[Job], site: SlurmSite, steps: list[int]) -> None:
    moment = RealMoment(BEGAN, CLUSTER, (), {}, site)
    first = JobRequest("first", "bob", "lab", 3, 5 * HOUR, BEGAN - HOUR, queue="all")
    runs = KnownJob(QueuedJob(first, QueueState.PENDING), BEGAN, could_start=BEGAN - HOUR)
    runs.start_time = BEGAN - HOUR
    held = tuple(HeldNode(name, 1) for name in NAMES[:3])
    beginning = Beginning({runs.key: (BEGAN - HOUR, held)}, frozenset())
    run, now = PlainRun(moment, beginning), BEGAN
    for step in steps:
        now += 60 * step
        known = [replace(runs), *known_at(jobs, now)]
        ended(run.go_on(known, now))
        whole = from_the_beginning(known, moment, beginning, now)
        assert by(run.starts(), now) == by(whole, now)
        assert ended(run.starts_ahead()) == whole


def test_a_job_that_names_nodes_has_them_told_apart_from_the_beginning_on() -> None:
    """Three jobs of the whole machine, and one of a node that nobody had named before."""
    moment, beginning = RealMoment(BEGAN, CLUSTER, (), {}, SITES[0]), Beginning({}, frozenset())
    wide = [Job(0, 0, NODES, 60, 50, 1000, 50, withdrawn=False, user="ann")] * 3
    run, now = PlainRun(moment, beginning), BEGAN + 70 * 60
    known = known_at(wide, now)
    ended(run.go_on(known, now))
    request = JobRequest("named", "bob", "lab", 1, HOUR, now, queue="all")
    asked = AskedNodes(required=frozenset({"n3"}), tasks=1)
    record = QueuedJob(request, QueueState.PENDING, asked=asked)
    named = KnownJob(record, now, could_start=now)
    now += 10 * HOUR
    ended(run.go_on([*known, named], now))
    whole = from_the_beginning([*known, named], moment, beginning, now)
    assert by(run.starts(), now) == by(whole, now)
    assert run.starts()[named.key] is not None
