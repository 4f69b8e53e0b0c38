"""Sites of several kinds with jobs that start at once, through the daemon itself.

``python -m tests.sidecar.ordering.sites_trial JOBS DAYS WORKLOADS`` writes docs/start_now_sites.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.ordering.start_now import StartNow
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.scores.comparison import PairedRun
from foretime_sim.sites.slurm.limits import Association, Limits
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

PAGE = Path(__file__).resolve().parents[3] / "docs/start_now_sites.md"
DAY_S, WEEK_S, HOUR_S = 86_400, 604_800, 3600
ACCOUNTS = 5
_PROCESSORS = 32
_URGENT, _FAT = 0.12, 0.2  # shares of the jobs
_FLAT = Machine.flat(_PROCESSORS)
_PARTED = Machine(
    (NodeGroup("thin", nodes=20, cpus=1), NodeGroup("fat", nodes=12, cpus=1)),
    (
        SlurmPartition("main", ("thin", "fat"), default=True),
        SlurmPartition("fat", ("fat",)),
        SlurmPartition("urgent", ("thin", "fat"), priority_tier=5),
    ),
)
_PRIORITY = SlurmPriority(weight_age=1000, weight_fair_share=100_000, decay_half_life_s=7 * DAY_S)


def _associations(max_jobs: int | None = None) -> tuple[Association, ...]:
    found = [Association("root")]
    for number in range(ACCOUNTS):
        account = f"a{number}"
        found.append(Association(account, parent="root", shares=1 + number))
        users = (f"u{user}" for user in range(number, 4 * ACCOUNTS, ACCOUNTS))
        found += [Association(account, user, limits=Limits(max_jobs=max_jobs)) for user in users]
    return tuple(found)


def _site(machine: Machine, **more: object) -> SlurmSite:
    return replace(SlurmSite(machine), **more)  # type: ignore[arg-type]


SITES: Mapping[str, SlurmSite] = {
    "one partition": _site(_FLAT),
    "one reservation": _site(_FLAT, parameters=SlurmParameters(bf_job_part_count_reserve=1)),
    "three partitions, one of a higher tier": _site(_PARTED),
    "the same, one reservation each": _site(
        _PARTED, parameters=SlurmParameters(bf_job_part_count_reserve=1)
    ),
    "fair share of 100,000": _site(_FLAT, priority=_PRIORITY, associations=_associations()),
    "fair share and limits": _site(
        _FLAT,
        priority=_PRIORITY,
        associations=_associations(max_jobs=6),
        enforced=frozenset({"associations", "limits"}),
    ),
    "partitions, fair share and limits": _site(
        _PARTED,
        priority=_PRIORITY,
        associations=_associations(max_jobs=6),
        enforced=frozenset({"associations", "limits"}),
    ),
}


def made_jobs(jobs: int, days: int, seed: int, machine: Machine) -> Workload:
    """Give jobs of users with habits, from a minute to six hours, at a load of 0.95."""
    drawn = np.random.default_rng(seed)
    submit_time = np.sort(drawn.integers(0, days * DAY_S, jobs))
    user = drawn.integers(0, 4 * ACCOUNTS, jobs)
    processors = drawn.choice([1, 2, 4, 8, 12], jobs, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    long = drawn.lognormal(np.log(HOUR_S), 1.2, jobs)
    long *= 0.95 * days * DAY_S * _PROCESSORS / float(processors @ long)
    runtime = np.clip(long, 60, 12 * HOUR_S).astype(np.int64)
    habit = drawn.uniform(0.05, 0.8, 4 * ACCOUNTS)
    share = np.clip(habit[user] * drawn.uniform(0.6, 1.2, jobs), 0.02, 1)
    requested = np.ceil(runtime / share / 900).astype(np.int64) * 900
    kind = drawn.random(jobs)
    parts = np.where(kind < _URGENT, 2, np.where(kind < _URGENT + _FAT, 1, 0)).astype(np.int32)
    names = tuple(part.name for part in machine.slurm_partitions)
    queues = Labels(parts, ("main", "fat", "urgent")) if len(names) > 1 else None
    workload = Workload(
        name="made",
        machine_processors=_PROCESSORS,
        unix_start_time=1_200_000_000,
        job_id=np.arange(1, jobs + 1),
        submit_time=submit_time,
        processors=processors,
        actual_runtime=runtime,
        requested_time=requested,
        users=Labels(user.astype(np.int32), tuple(f"u{n}" for n in range(4 * ACCOUNTS))),
        projects=Labels(
            (user % ACCOUNTS).astype(np.int32), tuple(f"a{n}" for n in range(ACCOUNTS))
        ),
        queues=queues,
        requests=None if queues is None else ResourceRequests(slurm_partitions=queues),
    )
    return with_machine(workload, machine)


@dataclass(frozen=True, slots=True)
class HeadJobs:
    """Head jobs, as the daemon saw them.

    Attributes
    ----------
    planned
        By id: when each was planned to start, as it was first seen at the head, epoch seconds.
    """

    planned: dict[str, int] = field(default_factory=dict)


def replayed(
    workload: Workload, site: SlurmSite, *, learn: bool = True, **order: int
) -> tuple[PairedRun, HeadJobs]:
    """Replay without and with jobs that start at once; note the head jobs' first plans."""
    noted = HeadJobs()
    note_heads = StartNow._note_heads

    def note(starts: StartNow, heads: Mapping[str, QueuedJob], look: Look) -> None:
        note_heads(starts, heads, look)
        for name, planned in starts._promised.items():
            noted.planned.setdefault(name, planned)

    task = Replay(
        policy=Policy(backfill=Slurm(site)),
        queue_order=QueueOrderSettings.model_validate({"order": "start-now"} | order),
        learn=learn,
        check=True,
    )
    with mock.patch.object(StartNow, "_note_heads", note):
        return task(workload, 0), noted


def usage_by_week(workload: Workload, start: Int64Array) -> Float64Array:
    """Give each account's share of the processor time that was used in each week, in percent."""
    assert workload.projects is not None
    ran = np.minimum(workload.actual_runtime, workload.requested_time)
    weeks = int(workload.submit_time[-1] // WEEK_S) + 1
    used = np.zeros((weeks, ACCOUNTS))
    for week in range(weeks):
        begin, end = week * WEEK_S, (week + 1) * WEEK_S
        inside = np.clip(np.minimum(start + ran, end) - np.maximum(start, begin), 0, None)
        np.add.at(used[week], workload.projects.codes, inside * workload.processors)
    return np.asarray(100 * used / used.sum(axis=1, keepdims=True))


_HEAD = """# Jobs that start at once on sites of several kinds

    python -m tests.sidecar.ordering.sites_trial {jobs} {days} {workloads}

The daemon's own code in `foretime replay`, with its defaults, on {workloads} workloads a site of
{jobs} generated jobs in {days} days on 32 processors, under Slurm 26.05's rules. Five accounts have
1 to 5 shares, each has four users. Three partitions are `main` over all nodes, `fat` over 12 of
them, and `urgent` over all with PriorityTier 5; one job in twenty asks for 12 nodes, in `fat` too.
Limits are six running jobs a user. All is with `start-now` over without Foretime: the mean of the
workloads, and its standard deviation.

*Usage* is the share of processor time that an account used in a week, in points of percent: the
largest and the mean difference between with and without, over accounts, weeks and workloads.
*Heads* were first of their partition and had to wait. *Late* are those that started over an hour
later than first planned on requested times, without and with.

| site | mean wait | p99 | longest | usage: largest | mean | heads | late: without | with | missed |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of one workload on one site.

    Attributes
    ----------
    ratios
        Mean wait, p99 and longest wait, with Foretime over without.
    moved
        By how many points each account's share of each week differs.
    heads, late_without, late
        Head jobs, and how many were late, without and with Foretime.
    raised, missed
        How often jobs were raised, and had not started by the next look.
    """

    ratios: tuple[float, float, float]
    moved: Float64Array
    heads: int
    late_without: int
    late: int
    raised: int
    missed: int


def figures_of(name: str, jobs: int, days: int, seed: int) -> Figures:
    """Replay one workload on one site."""
    site = SITES[name]
    workload = made_jobs(jobs, days, seed, site.machine)
    run, heads = replayed(workload, site)
    statistics = run.statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.ordering is not None
    wait, without = (
        np.array([each.mean(), np.quantile(each, 0.99), each.max()])
        for each in (
            judged.start_time - workload.submit_time for judged in (run.adjusted, run.baseline)
        )
    )
    late_without, late = (
        int((later(workload, each.start_time, heads) > HOUR_S).sum())
        for each in (run.baseline, run.adjusted)
    )
    mean, p99, longest = (wait / without).tolist()
    return Figures(
        (mean, p99, longest),
        usage_moved(workload, run),
        len(heads.planned),
        late_without,
        late,
        statistics.ordering.raised,
        statistics.ordering.missed,
    )


def row_of(name: str, found: Sequence[Figures]) -> str:
    """Give the row of one site."""
    ratios = np.array([each.ratios for each in found])
    moved = np.concatenate([each.moved.ravel() for each in found])
    cells = [
        *(f"{each.mean():.2f} ± {each.std(ddof=1):.2f}" for each in ratios.T),
        f"{moved.max():.1f}",
        f"{moved.mean():.1f}",
        *(
            f"{sum(getattr(each, count) for each in found):,}"
            for count in ("heads", "late_without", "late")
        ),
        f"{sum(each.missed for each in found) / sum(each.raised for each in found):.1%}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def usage_moved(workload: Workload, run: PairedRun) -> Float64Array:
    """Give by how many points each account's share of each full week differs with Foretime."""
    shares = [usage_by_week(workload, each.start_time) for each in (run.adjusted, run.baseline)]
    return np.abs(shares[0] - shares[1])[:-1]


def later(workload: Workload, start: Int64Array, heads: HeadJobs) -> Int64Array:
    """Give how much later than first planned each head job started, seconds."""
    rows = np.array([int(name) - 1 for name in heads.planned], np.int64)
    planned = np.array(list(heads.planned.values()), np.int64)
    return np.asarray(start[rows] + workload.epoch_of_zero - planned)


def main(words: Sequence[str]) -> None:
    """Write the page."""
    jobs, days, workloads = map(int, words)
    if days < 14 or workloads < 2:
        raise SystemExit("give at least 14 DAYS, as usage is compared by weeks, and 2 WORKLOADS")
    with ProcessPoolExecutor() as workers:
        runs = {
            name: [workers.submit(figures_of, name, jobs, days, 1 + n) for n in range(workloads)]
            for name in SITES
        }
        rows = []
        for name, of_site in runs.items():
            rows.append(row_of(name, [run.result() for run in of_site]))
            print(rows[-1], flush=True)
    head = _HEAD.format(jobs=jobs, days=days, workloads=workloads)
    PAGE.write_text(head + "\n".join([*rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
