"""Runs that begin with what the run of the day before has become."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition, HeldNode
from foretime_sidecar.plain_beside.beginnings import Beginning, RealMoment
from foretime_sidecar.plain_beside.days import Day
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.lived_days import Lived, lived
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.slurm.site import SlurmSite

HOUR = 3600
BEGAN = 20_000 * 86_400
END = BEGAN + 24 * HOUR
NAMES = [f"n{number}" for number in range(16)]
CLUSTER = Cluster(
    tuple(ClusterNode(name, 1) for name in NAMES),
    (ClusterPartition("all", frozenset(NAMES), default=True),),
    counts_memory=False,
)
MOMENT = RealMoment(BEGAN, CLUSTER, (), {}, SlurmSite(Machine.flat(16)))


def known_jobs(count: int = 80) -> list[KnownJob]:
    """More than the machine can take in a day; all have really run somehow."""
    rng = np.random.default_rng(5)
    jobs = []
    for number, at in enumerate(np.sort(rng.integers(BEGAN, END, count)).tolist()):
        runtime_s = int(rng.integers(600, 4 * HOUR))
        request = JobRequest(
            f"{number + 1}", "ann", None, int(rng.integers(1, 9)), 5 * HOUR, at, queue="all"
        )
        record = QueuedJob(request, QueueState.PENDING, eligible_time=at)
        start = at + int(rng.integers(0, HOUR))
        jobs.append(
            KnownJob(
                record,
                at,
                could_start=at,
                start_time=start,
                end_time=start + runtime_s,
                runtime_s=runtime_s,
            )
        )
    return jobs


def ended(run: Generator[None, None, Lived]) -> Lived:
    while True:
        try:
            next(run)
        except StopIteration as done:
            become: Lived = done.value
            return become


def test_the_queue_of_a_model_is_carried_as_it_stands() -> None:
    """It is nobody's real queue: in it jobs wait and run that have really ended."""
    jobs, half = known_jobs(), BEGAN + 12 * HOUR
    of_key = {job.key: job for job in jobs}
    nothing = Beginning({}, frozenset())
    whole = ended(lived(jobs, MOMENT, nothing, END + 9 * 86_400, END)).starts
    first = ended(lived(jobs, MOMENT, nothing, END + 9 * 86_400, half))

    def end_of(key: tuple[str, int]) -> int:
        return (whole[key] or 0) + (of_key[key].runtime_s or 0)

    begun = {key for key, start in whole.items() if start is not None and start <= half}
    running = {key for key in begun if end_of(key) > half}
    assert {key: start for key, (start, _) in first.then.running.items()} == {
        key: whole[key] for key in running
    }
    assert first.then.over == begun - running
    assert len(running) > 2
    held = [node for _, nodes in first.then.running.values() for node in nodes]
    assert len({node.name for node in held}) == len(held)
    assert len(held) == sum(of_key[key].job.request.processors for key in running)

    later = replace(MOMENT, began_at=half)
    then = ended(lived(jobs, later, first.then, END + 9 * 86_400, END)).starts
    assert then.keys() == whole.keys() - begun
    waits = [sum((starts[key] or 0) - key[1] for key in then) for starts in (then, whole)]
    assert waits[0] == pytest.approx(waits[1], rel=0.02), "loops of Slurm begin at other seconds"


def test_who_has_long_ended_really_holds_nobody_up_for_ever() -> None:
    jobs, half = known_jobs(), BEGAN + 12 * HOUR
    endless = replace(jobs[0], runtime_s=100 * HOUR, end_time=half - HOUR)
    long_ago = replace(endless, end_time=BEGAN - 39 * 86_400)
    for job, is_over in ((endless, False), (long_ago, True)):
        then = ended(lived([job, *jobs[1:]], MOMENT, Beginning({}, frozenset()), END, half)).then
        assert (job.key in then.over, job.key in then.running) == (is_over, not is_over)


def test_a_day_is_kept_with_how_jobs_stand_in_both_models() -> None:
    plain = Beginning({("7", BEGAN): (BEGAN + 5, (HeldNode("n1", 1),))}, frozenset({("3", 8)}))
    for beginnings in ({}, {False: plain}, {False: plain, True: Beginning({}, frozenset())}):
        day = Day(MOMENT, True, None, beginnings)
        assert Day.of_row(day.as_row()) == day
