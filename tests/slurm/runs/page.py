"""The page with model and live Slurm side by side, for every configuration and release.

``python -m tests.slurm.runs.page`` writes docs/slurm_model_runs.md from the recorded runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from foretime_estimators.arrays import Int64Array

from tests.slurm.runs.compare import agreement, live_agreement, specification
from tests.slurm.runs.decisions import LoopReplay, events_of_run
from tests.slurm.runs.recorded_runs import RecordedRun, model_input, recorded_runs
from tests.slurm.runs.run_configurations import CONFIGURATIONS

PAGE = Path(__file__).resolve().parents[3] / "docs/slurm_model_runs.md"
RELEASES = ("26.05", "22.05")
DRAWS = 9
"""Runs of the model for each configuration, spread over the submissions of its live runs."""

HEAD = """# Slurm and its model side by side

`python -m tests.slurm.runs.page` writes this page from the recorded runs.
[How they are made](real_slurm.md#recorded-runs) stands there.
"""

WHOLE = """## Whole runs

Two live runs of the same jobs differ, since a start that comes a second later changes all that
follow; so does the model when submissions and ends move by a second. The model is therefore run
nine times, each time from the submissions of one of the live runs with the phase of its backfill
loop, and a job's start is the mean of the nine.

- **pairs**: jobs that waited together in all live runs and that all started in one order.
- **model**: how many of those the model starts in that order; the goal is 97%. **one run** is the
  mean of the nine runs by themselves. **live**: the same for each live run held against the others
  (mean).
- **waits**: mean wait in seconds; live from the shortest to the longest run. It holds if the
  model's is within that range, or within 5% of its mean.
"""

DECISIONS = """## Decision by decision

The model is put into the state of the live cluster before each run of a loop, and decides. Runs
that start the same jobs, starts on the same nodes, and backfill's plans at the same second (2 s).
"""


def moved(run: RecordedRun, draw: int) -> RecordedRun:
    """Move submissions and ends by up to a second; the first draw is the run as it was."""
    if draw == 0:
        return run
    chance = np.random.default_rng(draw)
    here = run.submit >= 0
    submit = np.where(here, np.maximum(run.submit + chance.integers(-1, 2, len(here)), 0), -1)
    ran = (run.start >= 0) & (run.end > run.start + 1)
    return replace(run, submit=submit, end=run.end + ran * chance.integers(-1, 2, len(ran)))


def model_starts(name: str, runs: Sequence[RecordedRun]) -> list[Int64Array]:
    """Give the starts of `DRAWS` runs of the specification."""
    starts = []
    for draw in range(DRAWS):
        run = moved(runs[draw % len(runs)], draw // len(runs))
        workload, site, site_jobs = model_input(CONFIGURATIONS[name], [run])
        starts.append(specification(workload, site, site_jobs, run))
    return starts


def mean_order(starts: Sequence[Int64Array]) -> Int64Array:
    """Give each job's mean start in milliseconds; -1 of jobs that do not always start."""
    always = np.all([start >= 0 for start in starts], axis=0)
    return np.where(always, np.mean(starts, axis=0) * 1000, -1).astype(np.int64)


def whole_runs(name: str, release: str) -> dict[str, str] | None:
    """Give a row: the runs of a configuration on a release against the model."""
    runs = recorded_runs(name, release)
    if len(runs) < 2:
        return None
    starts = model_starts(name, runs)
    found = agreement(runs, mean_order(starts))
    each = [agreement(runs, start) for start in starts]
    live = [other.share for other in live_agreement(runs)]
    wait = float(np.mean([one.model_wait for one in each]))
    waits = replace(found, model_wait=wait)
    return {
        "configuration": name,
        "release": release,
        "live runs": str(len(runs)),
        "pairs": f"{found.pairs:,}",
        "model": f"{found.share:.1%}",
        "one run": f"{np.mean([one.share for one in each]):.1%}",
        "live": f"{np.mean(live):.1%}",
        "model's wait": f"{wait:,.0f}",
        "live waits": f"{min(found.live_waits):,.0f} to {max(found.live_waits):,.0f}",
        "order": "holds" if found.order_holds else "differs",
        "wait": "holds" if waits.wait_holds else "differs",
    }


def decisions(name: str, release: str) -> Iterator[dict[str, str]]:
    """Give a row for each recorded run: its loops, judged one by one."""
    for run in recorded_runs(name, release):
        main, backfill = LoopReplay(name, run, events_of_run(name, run.name)).replay()
        both = main.both + backfill.both
        yield {
            "configuration": name,
            "run": run.name,
            "main loop": f"{main.same_runs} of {main.runs}",
            "backfill": f"{backfill.same_runs} of {backfill.runs}",
            "same nodes": f"{main.same_nodes + backfill.same_nodes} of {both}",
            "plans": f"{backfill.same_plans:,} of {backfill.plans:,}",
        }


def table(rows: Sequence[dict[str, str]]) -> str:
    """Write rows as Markdown, figures to the right."""
    frame = pd.DataFrame(rows)
    words = ("configuration", "release", "run", "order", "wait")
    sides = ["left" if column in words else "right" for column in frame.columns]
    return frame.to_markdown(index=False, colalign=sides, disable_numparse=True)


def page() -> str:
    """Write the page."""
    cases = [(name, release) for name in CONFIGURATIONS for release in RELEASES]
    whole = [row for case in cases if (row := whole_runs(*case)) is not None]
    by_decision = [row for case in cases for row in decisions(*case)]
    return "\n".join((HEAD, WHOLE, table(whole), "", DECISIONS, table(by_decision), ""))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
