"""Whole logs under Slurm's defaults, with and without jobs that start at once.

``nice python -m tests.sidecar.ordering.logs_trial COPIES LOG...`` writes the sections of these logs
into docs/start_now_logs.md, and leaves those of other logs as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.machine import Machine
from foretime_sim.scores.job_classes import JobClasses
from foretime_sim.scores.repeats import Repeats
from foretime_sim.scores.user_waits import FEWEST_JOBS, WORSE
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

from tests.sidecar.ordering.start_trial import (
    LOOK_S,
    MOST_BEHIND_S,
    MOST_LATE_S,
    PROTECT_AFTER_S,
    Trial,
    figures,
    plain,
)

PAGE = Path(__file__).resolve().parents[3] / "docs/start_now_logs.md"
ESTIMATOR = "weighted"
_SECTION = "\n## "
_HEAD = f"""# Whole logs with jobs that start at once

    python -m tests.sidecar.ordering.logs_trial COPIES LOG...

Slurm 26.05's own rules with its defaults, the processors of each log as one pool. Each figure is
over that of plain Slurm on the same jobs: the mean of some copies of the log with submissions moved
by up to a minute, and its standard deviation. The daemon looks every {LOOK_S} s. What it expects of
a job (`queue_order.estimator`: `{ESTIMATOR}`) is what was known in a run of EASY that lets the same
jobs first. Jobs that have waited for {PROTECT_AFTER_S // 3600} hours are protected
(`queue_order.protect_after_s`). With a day instead KTH's mean wait is 0.65 and its p99.9 1.15,
SDSC-SP2's 0.65 and 1.06. In the last column those are protected that are {MOST_LATE_S // 60}
minutes later than without Foretime (`beside.most_late_s`), and only they are raised while they have
work for over {MOST_BEHIND_S // 3600} hours of the whole machine (`beside.most_behind_s`), if the
daemon's model were exact: it has the starts that jobs really have. *One reservation* is Slurm with
`bf_job_part_count_reserve=1`, without Foretime. All jobs of the logs are scored, from the first on.

Users count who have over {FEWEST_JOBS - 1} jobs. A class of sizes counts from as many jobs on.
"""
_FIGURES = ("mean wait", "bounded slowdown", "p99 of waits", "p99.9", "longest")
_CLASSES = (
    "mean wait of jobs of up to 1/64 of the machine",
    "of up to 1/16",
    "of up to 1/4",
    "of more",
)


def start_now(workload: Workload) -> Int64Array:
    """Give when jobs start with Foretime."""
    return Trial(workload, estimator=ESTIMATOR).run()


def start_now_by_plain_starts(workload: Workload) -> Int64Array:
    """Give when jobs start if those are protected that are late over their plain start."""
    return Trial(workload, estimator=ESTIMATOR, plain_start=plain(workload)).run()


ARMS: dict[str, Callable[[Workload], Int64Array]] = {
    "one reservation": lambda workload: plain(workload, 1),
    "start-now": start_now,
    "protected by plain starts": start_now_by_plain_starts,
}


def group_sums(workload: Workload, groups: Int64Array, start: Int64Array) -> Float64Array:
    """Give the sum of waits of each group of jobs, by number."""
    waits = (start - workload.submit_time).astype(np.float64)
    return np.bincount(groups, weights=waits).astype(np.float64)


def section_of(path: Path, copies: int) -> tuple[str, str]:
    """Give a log's name and its section of the page."""
    logged, _ = workload_of_log(read_log(path))
    machine = Machine.flat(logged.machine_processors)
    users = logged.users
    # Jobs of nobody known come first.
    people = np.zeros(len(logged), np.int64) if users is None else users.codes.astype(np.int64) + 1
    groups = (JobClasses().size(logged), people)
    ratios: dict[str, list[Float64Array]] = {name: [] for name in ARMS}
    sums: dict[str, list[list[Float64Array]]] = {name: [] for name in ("plain", *ARMS)}
    repeats = Repeats(count=max(copies, 2), seed=1)
    for number in range(copies):
        copy = replace(repeats.varied(logged, number), queues=None, requests=None)
        workload = with_machine(copy, machine)
        without = plain(workload)
        base = figures(workload, without)
        found = {"plain": without} | {name: arm(workload) for name, arm in ARMS.items()}
        for name, start in found.items():
            sums[name].append([group_sums(workload, group, start) for group in groups])
            if name != "plain":
                ratios[name].append(figures(workload, start) / base)
    columns = []
    for name in ARMS:
        cells = [_cell(np.array(ratios[name])[:, place]) for place in range(len(_FIGURES))]
        by_size, by_user = (
            np.array([each[place] for each in sums[name]])
            / np.maximum([each[place] for each in sums["plain"]], 1)
            for place in range(2)
        )
        counts, jobs = (np.bincount(group) for group in groups)
        for size in range(len(_CLASSES)):
            enough = size < len(counts) and counts[size] >= FEWEST_JOBS
            cells.append(_cell(by_size[:, size]) if enough else "-")
        judged = (jobs >= FEWEST_JOBS) & (np.arange(len(jobs)) > 0)
        worse = judged & (by_user.mean(axis=0) > WORSE)
        cells.append(f"{worse.sum()} of {judged.sum()}")
        columns.append(cells)
    rows = zip((*_FIGURES, *_CLASSES, "users who wait over 5% longer"), *columns, strict=True)
    lines = [
        f"| {len(logged):,} jobs, {copies} copies | {' | '.join(ARMS)} |",
        "|---" * (len(ARMS) + 1) + "|",
    ]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return logged.name, "\n".join([logged.name, "", *lines, ""])


def _cell(ratios: Float64Array) -> str:
    return f"{ratios.mean():.2f} ± {ratios.std():.2f}"


def main(words: Sequence[str]) -> None:
    """Write the logs' sections of the page."""
    copies = int(words[0])
    for log in words[1:]:
        name, section = section_of(Path(log), copies)
        _, *old = PAGE.read_text(encoding="utf-8").split(_SECTION)
        sections = {each.split("\n", 1)[0]: each for each in old} | {name: section}
        PAGE.write_text(_SECTION.join([_HEAD, *sections.values()]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
