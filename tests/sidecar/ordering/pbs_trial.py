"""Whole logs under PBS's own rules: by itself, with soft_walltime, and with jobs started at once.

``python -m tests.sidecar.ordering.pbs_trial JOBS LOG...`` writes docs/start_now_pbs_logs.md. What
the daemon does is written a second time here, for one pool alone, as in
`tests.sidecar.ordering.start_trial`; every other way that was tried is an arm, too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from foretime_estimators.estimators.registry import parse_estimator
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import (
    finished_job,
    job_requests,
    logged_endings,
    role_predictor,
)
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.policies.role_times import JobTimesUpdate
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.workloads.resource_requests import job_resources, with_machine
from foretime_sim.workloads.workload import Workload

from tests.sidecar.ordering.looked_at_run import LookedAtRun
from tests.sidecar.ordering.start_trial import AGEING_S, HEAD_DELAY_S, figures

PAGE = Path(__file__).resolve().parents[3] / "docs/start_now_pbs_logs.md"
LOOK_S, ASKED_AGAIN_S = 10, 3600
_RAISED, _HEAD, _OTHERS = 3 * 10**9, 2 * 10**9, 10**9
_PAGE = """# Whole logs on PBS with jobs that start at once

    python -m tests.sidecar.ordering.pbs_trial {jobs} LOG...

OpenPBS's own rules ([the model](pbs_model.md)) with strict_ordering on, the processors of each log
as one host, its first {jobs} jobs. Each figure is over that of PBS by itself on the same jobs: one
run each. The daemon looks every {look} s. *Changes* counts the ranks that were set, by job.

| log | | mean wait | bounded slowdown | p99 of waits | p99.9 | longest | changes |
|---|---|---:|---:|---:|---:|---:|---:|
"""


@dataclass(frozen=True)
class Arm:
    """What is done.

    Attributes
    ----------
    strict
        Whether strict_ordering is on.
    estimator
        What tells how long jobs run.
    soft
        Whether that is their soft_walltime, and whether it stays so once they run.
    ordered, raises
        Whether jobs have ranks all the time, and whether those that should start are raised.
    """

    strict: bool = True
    estimator: str = "expected"
    soft: tuple[bool, bool] = (False, False)
    ordered: bool = False
    raises: bool = False


ARMS: Mapping[str, Arm] = {
    "strict_ordering off": Arm(strict=False),
    "soft_walltime by CESNET's rule": Arm(estimator="recent-maximum", soft=(True, True)),
    "soft_walltime as expected": Arm(soft=(True, True)),
    "the same, but not of jobs that run": Arm(soft=(True, False)),
    "jobs in order of ranks": Arm(ordered=True),
    "ranks and soft_walltime, not of jobs that run": Arm(soft=(True, False), ordered=True),
    "jobs raised": Arm(raises=True),
    "**start-now**: ranks, and jobs raised": Arm(ordered=True, raises=True),
}


def site_of(workload: Workload, arm: Arm) -> PbsSite:
    """Give the site; what a job's rank is, its priority is there."""
    site = PbsSite.flat(workload.machine_processors)
    scheduler = replace(
        site.scheduler,
        strict_ordering=arm.strict,
        resources=(*site.scheduler.resources, "soft_walltime"),
    )
    formula = "job_priority" if arm.ordered or arm.raises else None
    server = replace(site.server, job_sort_formula=formula)
    return replace(site, scheduler=scheduler, server=server)


class Trial(LookedAtRun):
    """One run of a log.

    Parameters
    ----------
    workload
        On the one host.
    arm
        What is done.
    """

    def __init__(self, workload: Workload, arm: Arm) -> None:
        self.arm, site = arm, site_of(workload, arm)
        policy = Policy(backfill=Pbs(site), correction=Correction.PBS)
        looks = arm.ordered or arm.raises
        super().__init__(workload, policy, site.machine, LOOK_S if looks else None)
        self.requests, self.endings = job_requests(workload), logged_endings(workload)
        self.estimator = parse_estimator(arm.estimator)
        self.predict = role_predictor(self.estimator)
        jobs = len(workload)
        self.order, self.fits = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
        self.asked_at = np.full(jobs, -ASKED_AGAIN_S, np.int64)
        self.rank = np.zeros(jobs, np.int64)
        self.promised: dict[int, int] = {}
        self.changes = 0

    def _submit(self, job: int) -> None:
        planned, (short, stays) = None, self.arm.soft
        if short:
            soft = max(self.predict(self.requests[job], self.now).backfill, 1)
            planned = JobTimesUpdate(backfill=soft, drain=soft if stays else None)
        self.engine.submit(
            self.now,
            int(self.processors[job]),
            self.runtimes[job],
            int(self.asked[job]),
            scheduled_time=planned,
            resources=job_resources(self.workload, job),
        )

    def _learn(self, job: int) -> None:
        ran = self.engine.ran(job)
        self.estimator.learn_one(finished_job(self.requests[job], *ran, self.endings[job]))

    def _look(self) -> None:
        for job in self.waiting:
            if self.now - self.asked_at[job] >= ASKED_AGAIN_S:
                told = self.predict(self.requests[job], self.now)
                self.asked_at[job] = self.now
                self.order[job], self.fits[job] = told.queue, told.backfill
        wanted = dict.fromkeys(self.waiting, 0)
        if self.arm.ordered and wanted:
            for job in wanted:
                later = int(self.workload.submit_time[job] - self.begin) // 10
                wanted[job] = _OTHERS - later - int(self.order[job])
            wanted[next(iter(wanted))] = _HEAD
        if self.arm.raises:
            wanted |= {job: _RAISED - place for place, job in enumerate(self._plan())}
        for job, rank in wanted.items():
            if self.rank[job] != rank:
                self.rank[job] = rank
                self.changes += 1
                self.engine.update(job, priority=rank)

    def _plan(self) -> list[int]:
        """Give who should start now, first to last."""
        if not self.waiting:
            return []
        jobs = np.fromiter(self.waiting, np.int64, len(self.waiting))
        running = np.fromiter(self.running, np.int64, len(self.running))
        head, others = int(jobs[0]), jobs[1:]
        free = self.workload.machine_processors - int(self.processors[running].sum())
        if self.processors[head] <= free:
            return []  # it starts by itself
        ends = np.maximum(self.start[running] + self.asked[running], self.now)
        in_order = np.argsort(ends, kind="stable")
        room = free + np.cumsum(self.processors[running][in_order])
        shadow = int(ends[in_order][np.searchsorted(room, self.processors[head])])
        extra = free + int(self.processors[running][ends <= shadow].sum())
        extra -= int(self.processors[head])
        late_s = max(self.now - self.promised.setdefault(head, shadow), 0)
        share = min(late_s / HEAD_DELAY_S, 1.0)
        waited = self.now - self.workload.submit_time[others]
        others = others[np.argsort(self.order[others] / (1 + waited / AGEING_S), kind="stable")]
        need = self.fits[others] + (self.asked[others] - self.fits[others]) * share
        starts = []
        for job, needs in zip(others.tolist(), need.tolist(), strict=True):
            size = int(self.processors[job])
            in_time = self.now + needs <= shadow
            if size <= free and (in_time or size <= extra):
                free -= size
                extra -= 0 if in_time else size
                starts.append(job)
        return starts


def rows_of(path: Path, jobs: int) -> list[str]:
    """Give the rows of one log."""
    logged, _ = workload_of_log(read_log(path))
    plain = replace(logged.head(jobs), queues=None, requests=None)
    workload = with_machine(plain, site_of(plain, Arm()).machine)
    base = figures(
        workload, simulate(workload, Policy(backfill=Pbs(site_of(plain, Arm())))).start_time
    )
    rows = [f"| {logged.name} | by itself | {base[0]:,.0f} s | {base[1]:,.1f} | | | | |"]
    for name, arm in ARMS.items():
        trial = Trial(workload, arm)
        found = figures(workload, trial.run()) / base
        said = " | ".join(f"{value:.2f}" for value in found)
        rows.append(f"| {logged.name} | {name} | {said} | {trial.changes / len(workload):.1f} |")
        print(rows[-1], flush=True)
    return rows


def main(words: Sequence[str]) -> None:
    """Write the page."""
    jobs = int(words[0])
    rows = [row for log in words[1:] for row in rows_of(Path(log), jobs)]
    PAGE.write_text(_PAGE.format(jobs=f"{jobs:,}", look=LOOK_S) + "\n".join([*rows, ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
