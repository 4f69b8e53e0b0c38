"""The page with model and live Slurm side by side, for every configuration and release.

``python -m tests.slurm.runs.page`` writes docs/slurm_model_runs.md from the recorded runs, in some
six minutes of CPU, and says how far it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

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

Row: TypeAlias = dict[str, str]

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
- **faultless**: what chance leaves to a model without a fault. Three of the nine runs, one from
  each live run's submissions, are taken for live ones; the mean of the other six is held against
  them. It is the mean of all 27 choices.
"""

WAITS = """Mean waits in seconds: of the model the mean and the standard deviation of its nine runs,
of live Slurm the runs from the shortest to the longest. It holds if the model's is within that
range, or within 5% of its mean.
"""

DECISIONS = """## Decision by decision

The model is put into the state of the live cluster before each run of a loop, and decides. Runs
that start the same jobs, starts on the same nodes, and backfill's plans at the same second (2 s),
of all recorded runs together.
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


def faultless(runs: Sequence[RecordedRun], starts: Sequence[Int64Array]) -> float:
    """Give the share in order of the model's runs held against three of themselves."""
    of_each = [range(place, len(starts), len(runs)) for place in range(len(runs))]
    shares = []
    for taken in itertools.product(*of_each):
        as_live = [
            replace(moved(run, draw // len(runs)), start=starts[draw])
            for run, draw in zip(runs, taken, strict=True)
        ]
        others = [start for draw, start in enumerate(starts) if draw not in taken]
        shares.append(agreement(as_live, mean_order(others)).share)
    return float(np.mean(shares))


def whole_runs(name: str, release: str) -> tuple[Row, Row]:
    """Give the order and the waits of a configuration on a release against the model."""
    runs = recorded_runs(name, release)
    if len(runs) < 2:
        return {}, {}
    print(f"{name} {release}: {DRAWS} runs of the model", flush=True)
    starts = model_starts(name, runs)
    found = agreement(runs, mean_order(starts))
    each = [agreement(runs, start) for start in starts]
    live = [other.share for other in live_agreement(runs)]
    waits = [one.model_wait for one in each]
    mean = float(np.mean(waits))
    order = {
        "pairs": f"{found.pairs:,}",
        "model": f"{found.share:.1%}",
        "one run": f"{np.mean([one.share for one in each]):.1%}",
        "live": f"{np.mean(live):.1%}",
        "faultless": f"{faultless(runs, starts):.1%}",
        "order": "holds" if found.order_holds else "differs",
    }
    wait = {
        "model": f"{mean:,.0f} ± {np.std(waits):,.0f}",
        "live": f"{min(found.live_waits):,.0f} to {max(found.live_waits):,.0f}",
        "wait": "holds" if replace(found, model_wait=mean).wait_holds else "differs",
    }
    return order, wait


def decisions(name: str, release: str) -> Row:
    """Give the loops of all recorded runs, judged one by one."""
    runs = recorded_runs(name, release)
    if not runs:
        return {}
    loops = [LoopReplay(name, run, events_of_run(name, run.name)).replay() for run in runs]

    def share(parts: Iterable[int], wholes: Iterable[int]) -> str:
        return f"{sum(parts):,} of {sum(wholes):,}"

    return {
        "runs": str(len(runs)),
        "main loop": share((m.same_runs for m, _ in loops), (m.runs for m, _ in loops)),
        "backfill": share((b.same_runs for _, b in loops), (b.runs for _, b in loops)),
        "same nodes": share(
            (m.same_nodes + b.same_nodes for m, b in loops), (m.both + b.both for m, b in loops)
        ),
        "plans": share((b.same_plans for _, b in loops), (b.plans for _, b in loops)),
    }


def table(rows: Mapping[str, Mapping[str, Row]]) -> str:
    """Write rows by configuration and release as Markdown, the releases side by side."""
    frame = pd.DataFrame(
        {
            name: {
                f"{release}: {column}": value
                for release, row in by_release.items()
                for column, value in row.items()
            }
            for name, by_release in rows.items()
            if any(by_release.values())
        }
    ).T.fillna("")
    frame = frame[sorted(frame.columns, key=lambda column: -float(str(column).split(":")[0]))]
    frame = frame.rename_axis("configuration").reset_index()
    words = ("configuration", "order", "wait")
    sides = ["left" if str(name).split(": ")[-1] in words else "right" for name in frame.columns]
    return frame.to_markdown(index=False, colalign=sides, disable_numparse=True)


def page() -> str:
    """Write the page."""
    whole = {
        name: {release: whole_runs(name, release) for release in RELEASES}
        for name in CONFIGURATIONS
    }
    order, wait = (
        table({name: {at: pair[kind] for at, pair in row.items()} for name, row in whole.items()})
        for kind in (0, 1)
    )
    by_decision = table(
        {name: {at: decisions(name, at) for at in RELEASES} for name in CONFIGURATIONS}
    )
    return "\n".join((HEAD, WHOLE, order, "", WAITS, wait, "", DECISIONS, by_decision, ""))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
