"""Ways to make jobs look short, each as a change of one user's jobs in a workload.

Mallory has long jobs, and asks for about what they take. Each attack gives the same work in other
jobs. What it brings is how much sooner that work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.jobs import Ending
from foretime_sim.machines.machine import Machine
from foretime_sim.models.workload_models import generate
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import ENDINGS, Workload

PROCESSORS = 64
MALLORY, FRIENDS = "mallory", ("mallet", "malfoy", "malta")
_USERS, _PROJECTS = 24, 6
_HOUR, _MINUTE = 3600, 60
_ASKED_H = np.array([0.25, 0.5, 1, 2, 4, 8, 12, 24, 48, 96])
_BEFORE_S = 20 * _MINUTE  # decoys come so long before the job that they are for
_DECOY_S = 1
_PIECES = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One submission.

    Attributes
    ----------
    work
        Which piece of the attacker's work it does; ``None`` if it is another's, or a decoy.
    """

    submit_time: int
    processors: int
    runtime: int
    requested: int
    user: str
    project: str
    work: int | None = None
    ending: Ending = Ending.COMPLETED


@dataclass(frozen=True, slots=True)
class Scene:
    """A workload, and whose jobs are in it.

    Attributes
    ----------
    jobs
        By submission.
    ready, runtime
        Of each piece of the attacker's work: when it could first be submitted, and how long it
        runs as one job, seconds.
    """

    jobs: tuple[Job, ...]
    ready: Int64Array
    runtime: Int64Array
    others: BoolArray = field(init=False)
    work: Int64Array = field(init=False)

    def __post_init__(self) -> None:
        in_order = tuple(sorted(self.jobs, key=lambda job: job.submit_time))
        object.__setattr__(self, "jobs", in_order)
        mine = {MALLORY, *FRIENDS}
        object.__setattr__(self, "others", np.array([j.user not in mine for j in in_order]))
        work = [-1 if job.work is None else job.work for job in in_order]
        object.__setattr__(self, "work", np.array(work))

    @property
    def workload(self) -> Workload:
        """The jobs as the engine takes them."""

        def column(name: str) -> Int64Array:
            return np.array([getattr(job, name) for job in self.jobs], np.int64)

        def labels(name: str) -> Labels:
            names = sorted({getattr(job, name) for job in self.jobs})
            codes = [names.index(getattr(job, name)) for job in self.jobs]
            return Labels(np.array(codes, np.int32), tuple(names))

        codes = np.array([ENDINGS.index(job.ending) for job in self.jobs], np.int8)
        workload = Workload(
            name="attack",
            machine_processors=PROCESSORS,
            unix_start_time=None,
            job_id=np.arange(1, len(self.jobs) + 1),
            submit_time=column("submit_time"),
            processors=column("processors"),
            actual_runtime=column("runtime"),
            requested_time=column("requested"),
            endings=np.ma.MaskedArray(codes),
            users=labels("user"),
            projects=labels("project"),
        )
        return with_machine(workload, Machine.flat(PROCESSORS))

    def waits(self, start_time: Int64Array) -> Int64Array:
        """Give how much later than at once each piece of the attacker's work was done, seconds."""
        last = np.zeros(len(self.ready), np.int64)
        for job, start in zip(self.jobs, start_time.tolist(), strict=True):
            if job.work is not None:
                last[job.work] = max(last[job.work], start + job.runtime)
        return last - self.ready - self.runtime

    def others_waits(self, start_time: Int64Array) -> Int64Array:
        """Give the waits of everybody else's jobs, seconds."""
        submitted = np.array([job.submit_time for job in self.jobs])
        return np.asarray(start_time - submitted)[self.others]

    def burnt(self, honest: Scene) -> float:
        """Give the attackers' processor time over that of the same work as honest jobs, less 1."""

        def used(scene: Scene) -> int:
            return sum(
                job.processors * job.runtime
                for job, others in zip(scene.jobs, scene.others.tolist(), strict=True)
                if not others
            )

        return used(self) / used(honest) - 1


def honest_scene(seed: int, jobs: int = 1500, load: float = 0.8) -> Scene:
    """Give a workload whose users ask for too much, each by a habit, and Mallory for little."""
    made = generate("lublin2003", jobs=jobs, processors=PROCESSORS, load=load, seed=seed)
    drawn = np.random.default_rng(seed)
    runtime = np.clip(made.actual_runtime, 30, 40 * _HOUR)
    long = np.flatnonzero((runtime > _HOUR) & (runtime < 12 * _HOUR) & (made.processors <= 16))
    mine = set(drawn.choice(long, jobs // 25, replace=False).tolist())
    user = drawn.zipf(1.5, jobs) % _USERS
    habit = np.append(drawn.uniform(0.05, 0.7, _USERS), 0.8)
    user = np.where(np.isin(np.arange(jobs), list(mine)), _USERS, user)
    share = np.clip(habit[user] * drawn.uniform(0.7, 1.2, jobs), 0.02, 0.95)
    asked = _popular(runtime / share)
    # Every sixth job of the others fails at once.
    fails = (drawn.random(jobs) < 1 / 6) & (user < _USERS)
    runtime = np.where(fails, drawn.integers(2, 60, jobs), np.minimum(runtime, asked))
    found: list[Job] = []
    ready: list[int] = []
    ran: list[int] = []
    for number in range(jobs):
        work = None
        at, takes = int(made.submit_time[number]), int(runtime[number])
        name, project = f"u{user[number]}", f"p{user[number] % _PROJECTS}"
        if number in mine:
            work, name, project = len(ready), MALLORY, "p0"
            ready.append(at)
            ran.append(takes)
        found.append(
            Job(at, int(made.processors[number]), takes, int(asked[number]), name, project, work)
        )
    return Scene(tuple(found), np.array(ready), np.array(ran))


def _popular(seconds: Float64Array) -> Int64Array:
    """Give the next time that people ask for."""
    places = np.searchsorted(_ASKED_H * _HOUR, seconds).clip(max=len(_ASKED_H) - 1)
    return np.asarray(_ASKED_H[places] * _HOUR, np.int64)


def _each(scene: Scene, change: Callable[[Job], tuple[Job, ...]]) -> Scene:
    """Change the jobs that do the attacker's work."""
    jobs = [new for job in scene.jobs for new in ((job,) if job.work is None else change(job))]
    return Scene(tuple(jobs), scene.ready, scene.runtime)


def _decoys(count: int, ending: Ending = Ending.COMPLETED) -> Callable[[Scene], Scene]:
    def change(job: Job) -> tuple[Job, ...]:
        at = max(job.submit_time - _BEFORE_S, 0)
        decoy = replace(job, submit_time=at, runtime=_DECOY_S, work=None, ending=ending)
        return (*[decoy] * count, job)

    return lambda scene: _each(scene, change)


def _narrow_decoys(scene: Scene) -> Scene:
    """Sleep on one processor: another kind of jobs for the finest kind, the same for the others."""

    def change(job: Job) -> tuple[Job, ...]:
        at = max(job.submit_time - _BEFORE_S, 0)
        decoy = replace(job, submit_time=at, runtime=_DECOY_S, work=None, processors=1)
        return (*[decoy] * 8, job)

    return _each(scene, change)


def _split(scene: Scene) -> Scene:
    def change(job: Job) -> tuple[Job, ...]:
        piece = replace(
            job,
            runtime=max(-(-job.runtime // _PIECES), 1),
            requested=max(-(-job.requested // _PIECES // _MINUTE) * _MINUTE, _MINUTE),
        )
        return (piece,) * _PIECES

    return _each(scene, change)


def _twice(scene: Scene) -> Scene:
    """Submit each job twice; the later one finds the work done, and ends."""

    def change(job: Job) -> tuple[Job, ...]:
        return job, replace(job, submit_time=job.submit_time + 1, runtime=5, work=None)

    return _each(scene, change)


def _alternating(scene: Scene) -> Scene:
    """Ask for two days for every job, with an own job of two minutes between any two."""

    def change(job: Job) -> tuple[Job, ...]:
        long = replace(job, requested=48 * _HOUR)
        short = replace(long, submit_time=job.submit_time + _MINUTE, runtime=120, work=None)
        return long, short

    return _each(scene, change)


def _other_account(scene: Scene) -> Scene:
    """Submit to the account whose jobs are shortest, of those that may be charged."""
    ran: dict[str, list[float]] = {}
    for job in scene.jobs:
        if job.user != MALLORY:
            ran.setdefault(job.project, []).append(job.runtime / job.requested)
    best = min(ran, key=lambda name: float(np.mean(ran[name])))
    return _each(scene, lambda job: (replace(job, project=best),))


def _group(scene: Scene) -> Scene:
    """Share the work out among four users of one account, who also sleep for each other."""
    names = (MALLORY, *FRIENDS)

    def change(job: Job) -> tuple[Job, ...]:
        assert job.work is not None
        at = max(job.submit_time - _BEFORE_S, 0)
        own = replace(job, user=names[job.work % 4], project="gang")
        others = [
            replace(own, user=name, submit_time=at, runtime=_DECOY_S, work=None) for name in names
        ]
        return (*others, own)

    return _each(scene, change)


def _asking(factor: float) -> Callable[[Scene], Scene]:
    def change(job: Job) -> tuple[Job, ...]:
        minutes = max(-(-round(job.requested * factor) // _MINUTE), 1)
        asked = max(minutes * _MINUTE, job.runtime) if factor < 1 else minutes * _MINUTE
        return (replace(job, requested=asked),)

    return lambda scene: _each(scene, change)


ATTACKS: Mapping[str, Callable[[Scene], Scene]] = {
    "one job of a second before each": _decoys(1),
    "eight jobs of a second before each": _decoys(8),
    "eight such jobs on one processor": _narrow_decoys,
    "four jobs before each, cancelled after a second": _decoys(4, Ending.CANCELLED),
    "each job twice, the second ends at once": _twice,
    "two days asked for, short and long in turn": _alternating,
    "each job in four pieces": _split,
    "another account's name": _other_account,
    "four users in agreement, a sleep each before each job": _group,
    "five times the limit": _asking(5),
    "limits as short as the jobs": _asking(0.01),
}
