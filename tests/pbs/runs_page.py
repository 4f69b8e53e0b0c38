"""The page with model and live OpenPBS side by side, for every configuration.

``python -m tests.pbs.runs_page`` writes docs/pbs_model_runs.md from the recorded runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Float64Array

from tests.support.pbs.pbs_runs import RUNS, LiveRun, model_of, same_cycles

PAGE = Path(__file__).resolve().parents[2] / "docs/pbs_model_runs.md"
LAGS_S = (3, 4, 5)
"""How old what MoM has told of usage may be: it looks each three seconds, and tells two later."""
LEAST_RUNS = 3
GOAL = 0.97

HEAD = """# OpenPBS and its model side by side

`python -m tests.pbs.runs_page` writes this page from the recorded runs, which
`tests/pbs/site_runs.py` makes ([the model](pbs_model.md#live-proof)).

## Whole runs

Each configuration was run live several times with the same jobs. The model is run from the
submissions and runtimes of each; under fair share also with what MoM told of usage 3, 4 and 5 s
old. A job's start in the model is the mean of these.

- **pairs**: jobs that were pending together in all live runs and that all started in one order.
- **model**: how many of those the model starts in that order. The goal is 97%.
- **live**: of pairs that were pending together in all live runs, how many two of the runs started
  in one order (mean).
- **waits**: mean wait in seconds, live from the shortest to the longest run. It holds if the
  model's is within that range, or within 5% of the mean of the live ones.

| configuration | live runs | pairs | model | live | model's wait | live waits | order | wait |
|---|---|---|---|---|---|---|---|---|
"""

CYCLES = """
## Cycle by cycle

The model is given what ran and waited on the live server before each cycle. Shown are cycles that
start the same jobs in the same order, of those in which either starts any. **told usage**: under
fair share, with what pbs_sched itself had charged to each user at that cycle, where that was
recorded.

| run | cycles the same | with told usage |
|---|---|---|
"""


@dataclass(frozen=True)
class SideBySide:
    """Live runs of one configuration, and the model."""

    runs: int
    pairs: int
    same: int
    live_same: float
    model_wait_s: float
    live_wait_s: tuple[float, ...]

    @property
    def order_holds(self) -> bool:
        """Whether as many pairs are in order as are to be."""
        return self.same >= GOAL * self.pairs

    @property
    def wait_holds(self) -> bool:
        """Whether the model's mean wait is one that a live run might have."""
        mean = float(np.mean(self.live_wait_s))
        within = min(self.live_wait_s) <= self.model_wait_s <= max(self.live_wait_s)
        return within or abs(self.model_wait_s - mean) <= 0.05 * mean


def side_by_side(runs: Sequence[LiveRun]) -> SideBySide:
    """Compare live runs of the same jobs with each other and with the model."""
    live = [_since_first(run, dict(enumerate(run.started))) for run in runs]
    models = [
        _since_first(run, model_of(replace(run, site=replace(run.site, usage_lag_s=lag_s))).start)
        for run in runs
        for lag_s in (LAGS_S if run.site.scheduler.fair_share else LAGS_S[:1])
    ]
    submits = [np.array([job.submit_time for job in run.jobs]) for run in runs]
    submit = [each - each[0] for each in submits]
    model = np.mean(models, axis=0)
    places = [{job: place for place, job in enumerate(run.start_order)} for run in runs]
    pairs = same = together = agreed = 0
    for a, b in combinations(range(len(model)), 2):
        if not all(
            max(came[a], came[b]) < min(start[a], start[b])
            for came, start in zip(submit, live, strict=True)
        ):
            continue
        firsts = [place[a] < place[b] for place in places]
        of_two = [one == other for one, other in combinations(firsts, 2)]
        together, agreed = together + len(of_two), agreed + sum(of_two)
        if all(of_two):
            pairs += 1
            same += bool(model[a] < model[b] if firsts[0] else model[b] < model[a])
    waits = tuple(float((at - came).mean()) for at, came in zip(live, submit, strict=True))
    model_wait_s = float((model - np.mean(submit, axis=0)).mean())
    return SideBySide(len(runs), pairs, same, agreed / max(together, 1), model_wait_s, waits)


def _since_first(run: LiveRun, start: Mapping[int, int]) -> Float64Array:
    """Give starts from the first submission on."""
    first = run.jobs[0].submit_time
    return np.array([start[job.index] - first for job in run.jobs], dtype=np.float64)


def recorded() -> dict[str, list[LiveRun]]:
    """Give the runs of each configuration that has been run often enough."""
    found: dict[str, list[LiveRun]] = {}
    for path in sorted(RUNS.glob("*.json")):
        found.setdefault(path.stem.split("-")[0], []).append(LiveRun.read(path))
    return {name: runs for name, runs in found.items() if len(runs) >= LEAST_RUNS}


def page() -> str:
    """Write the page."""
    lines, cycles = [HEAD], [CYCLES]
    for name, runs in recorded().items():
        both = side_by_side(runs)
        words = ["holds" if held else "differs" for held in (both.order_holds, both.wait_holds)]
        lines.append(
            f"| `{name}` | {both.runs} | {both.pairs:,} | {both.same / both.pairs:.1%}"
            f" | {both.live_same:.1%} | {both.model_wait_s:.0f}"
            f" | {min(both.live_wait_s):.0f} to {max(both.live_wait_s):.0f}"
            f" | {words[0]} | {words[1]} |\n"
        )
        for run in runs:
            told = "{} of {}".format(*same_cycles(run, told=True)) if run.charged else ""
            cycles.append(f"| `{run.name}` | {'{} of {}'.format(*same_cycles(run))} | {told} |\n")
    return "".join([*lines, *cycles])


if __name__ == "__main__":
    PAGE.write_text(page())
