"""The ways of shortening waits on Slurm beside each other, on whole logs.

``python -m tests.sidecar.ordering.ways_trial COPIES JOBS LOG...`` writes docs/start_now_ways.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.estimators.registry import parse_estimator
from foretime_sim.engine.estimated_run import simulate_with_estimator
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.scores.repeats import Repeats
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

from tests.sidecar.ordering.start_trial import AGEING_S, LOOK_S, Trial, figures, plain

PAGE = Path(__file__).resolve().parents[3] / "docs/start_now_ways.md"
_FIRST = 10**7
_HEAD = """# The ways of shortening waits on Slurm, compared

    python -m tests.sidecar.ordering.ways_trial {copies} {jobs} LOG...

Slurm 26.05's own rules with its defaults. The processors of each log are one pool, and the first
{jobs} jobs of each are run. Each figure is over that of plain Slurm on the same jobs: the mean of
{copies} copies with submissions moved by up to a minute, and its standard deviation. All ways go
by the estimator `expected`. The daemon looks every {look} s.

| way | setting | what changes |
|---|---|---|
| start-now | `queue_order.order = "start-now"` | a job is raised as it should start |
| order only | `queue_order.order = "sjf"` | the shortest expected job is first |
| order only, head first | and `queue_order.head_first` | the site's own first job stays first |
| soft limit | `hook.mode = "enforce"` | Slurm plans all jobs by `TimeMin` |
| lowered and raised | `rewrite-limit` | the limit is lowered until a job starts |
| one reservation | `bf_job_part_count_reserve=1` | Slurm alone, which plans the first job only |

| log | way | mean wait | bounded slowdown | p99 of waits | p99.9 | longest |
|---|---|---:|---:|---:|---:|---:|
"""


class OrderTrial(Trial):
    """One run of a log whose queue is put in order, the shortest expected job first.

    Parameters
    ----------
    workload
        On one pool.
    head_first
        Whether the first job of the site's own order that has to wait stays before them.
    """

    def __init__(self, workload: Workload, *, head_first: bool) -> None:
        super().__init__(workload)
        self._head_first = head_first
        self._factors: dict[int, int] = {}

    def _look(self) -> None:
        jobs = np.fromiter(self.waiting, np.int64, len(self.waiting))
        if not len(jobs):
            return
        waited = self.now - self.workload.submit_time[jobs]
        shortest = np.argsort(self.order[jobs] / (1 + waited / AGEING_S), kind="stable")
        in_order = jobs[shortest].tolist()
        if self._head_first:
            in_order.sort(key=lambda job: job != int(jobs[0]))
        for place, job in enumerate(in_order):
            factor = _FIRST - place
            if self._factors.get(job) != factor:
                self.engine.update(job, site_factor=factor)
        self._factors = {job: _FIRST - place for place, job in enumerate(in_order)}


def planned_shorter(workload: Workload, mechanism: Mechanism) -> Int64Array:
    """Give when jobs start if Slurm plans with what is expected."""
    assert isinstance(workload.machine, Machine)
    policy = mechanism_policy(mechanism, Policy(backfill=Slurm(SlurmSite(workload.machine))))
    return simulate_with_estimator(workload, policy, parse_estimator("expected")).start_time


WAYS: Mapping[str, Callable[[Workload], Int64Array]] = {
    "start-now": lambda workload: Trial(workload).run(),
    "order only": lambda workload: OrderTrial(workload, head_first=False).run(),
    "order only, head first": lambda workload: OrderTrial(workload, head_first=True).run(),
    "soft limit": lambda workload: planned_shorter(workload, Mechanism.SLURM_SOFT_LIMIT),
    "lowered and raised": lambda workload: planned_shorter(workload, Mechanism.REWRITE_LIMIT),
    "one reservation": lambda workload: plain(workload, 1),
}


def rows_of(path: Path, copies: int, jobs: int) -> list[str]:
    """Give the rows of one log."""
    logged, _ = workload_of_log(read_log(path))
    logged = logged.take(np.arange(min(jobs, len(logged))))
    repeats = Repeats(count=max(copies, 2), seed=1)
    found: dict[str, list[Float64Array]] = {}
    for number in range(copies):
        copy = replace(repeats.varied(logged, number), queues=None, requests=None)
        workload = with_machine(copy, Machine.flat(logged.machine_processors))
        base = figures(workload, plain(workload))
        for name, way in WAYS.items():
            found.setdefault(name, []).append(figures(workload, way(workload)) / base)
            print(logged.name, name, found[name][-1], flush=True)
    rows = []
    for name, ratios in found.items():
        means, spread = np.mean(ratios, axis=0), np.std(ratios, axis=0)
        said = [f"{mean:.2f} ± {by:.2f}" for mean, by in zip(means, spread, strict=True)]
        rows.append(f"| {logged.name} | {name} | {' | '.join(said)} |")
    return rows


def main(words: Sequence[str]) -> None:
    """Write the page."""
    copies, jobs = int(words[0]), int(words[1])
    rows = [row for log in words[2:] for row in rows_of(Path(log), copies, jobs)]
    text = _HEAD.format(copies=copies, jobs=jobs, look=LOOK_S) + "\n".join([*rows, ""])
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
