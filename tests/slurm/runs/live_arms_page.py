"""The page with live arms side by side, and what the replay foretells of each.

``python -m tests.slurm.runs.live_arms_page FOLDER`` writes docs/live_arms.md from the runs that
`tests.slurm.runs.live_arms` has made in FOLDER.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sim.engine.engine import simulate
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.workload import Workload

from tests.slurm.harness.slurm_releases import RELEASES
from tests.slurm.runs.job_generator import jobs_of
from tests.slurm.runs.live_arms import LOOK_S, history_of, recipe_of, site_of_arm
from tests.slurm.runs.run_configurations import TEN_BY_TEN
from tests.slurm.runs.run_job import RunJob, workload_of

PAGE = Path(__file__).resolve().parents[3] / "docs/live_arms.md"
_TAU_S = 10
_EPOCH = 1_800_000_000
_COPIES = Repeats(count=5, seed=1, jitter_s=2)
_ABOUT = {
    "plain": "Slurm's defaults",
    "plain-one": "`bf_job_part_count_reserve=1`",
    "start": "Slurm's defaults, `start-now`",
    "start-one": "`bf_job_part_count_reserve=1`, `start-now`",
}
_COLUMNS = (
    *("jobs", "Slurm", "arm", "mean wait, s", "beside plain", "bounded slowdown", "p90, s"),
    *("longest, s", "foretold, s"),
)
_HEAD = """# Live Slurms side by side: with and without jobs that start at once

Each row is one run of the same {jobs} jobs on a live Slurm of ten nodes of ten CPUs, with
priorities by age. Requests are 1 to 10 times the runtimes, whose median is 75 s, and jobs come for
an hour at {load} times what the cluster does. The daemon looks every {look} s, and knows 500 other
jobs of the same users. *Foretold* is what `foretime replay` says of the same jobs, with submissions
moved by two seconds: the mean of five copies, and their range.

    python -m tests.slurm.runs.live_arms FOLDER SEED RELEASE ARM
    python -m tests.slurm.runs.live_arms_page FOLDER
"""


@dataclass(frozen=True, slots=True)
class Arm:
    """One live run.

    Attributes
    ----------
    seed, release, arm
        Which jobs, on which Slurm, how.
    wait
        Of each job, seconds.
    runtime
        Likewise.
    """

    seed: int
    release: str
    arm: str
    wait: Int64Array
    runtime: Int64Array

    @property
    def slowdown(self) -> Float64Array:
        """Bounded slowdown of each job."""
        return bounded_slowdown(self.wait, self.runtime)


def bounded_slowdown(wait: Int64Array, runtime: Int64Array) -> Float64Array:
    """Give the bounded slowdown of jobs."""
    slowdown: Float64Array = np.maximum((wait + runtime) / np.maximum(runtime, _TAU_S), 1)
    return slowdown


def read_arms(folder: Path) -> list[Arm]:
    """Read the runs of a folder, by seed, release and arm."""
    arms = []
    for path in sorted(folder.glob("*.json")):
        seed, release, arm = path.stem.rsplit("-", 1)[0].split("-", 2)
        told = json.loads(path.read_text(encoding="utf-8"))
        at = {name: place for place, name in enumerate(told["columns"])}
        rows = [job for job in told["jobs"] if job[at["state"]] == "COMPLETED"]
        assert len(rows) == len(told["jobs"]), f"{path}: jobs did not complete"
        submit, start, end = (
            np.array([row[at[name]] for row in rows]) for name in ("submit", "start", "end")
        )
        arms.append(Arm(int(seed), release, arm, start - submit, end - start))
    return arms


def foretold(seed: int, release: str, arm: str, jobs: int, load: float) -> list[float]:
    """Give the mean waits that copies of the same jobs have in a replay, seconds."""
    recipe = recipe_of(jobs, load)
    version = next(each.version for each in RELEASES if each.name == release)
    site = replace(site_of_arm(arm), version=(version or (26, 5))[:2])
    workload = _workload(jobs_of(recipe, TEN_BY_TEN.cpus, seed), _EPOCH)
    past = _workload(history_of(recipe, seed), _EPOCH - 3 * 86_400)
    policy = Policy(backfill=Slurm(site))
    waits = []
    for number in range(_COPIES.count):
        copy = _COPIES.varied(workload, number)
        if arm.startswith("start"):
            task = Replay(
                policy,
                queue_order=QueueOrderSettings(order="start-now"),
                look_interval_s=LOOK_S,
                history=past,
            )
            start = task(copy, 0).adjusted.start_time
        else:
            start = simulate(copy, policy).start_time
        waits.append(float((start - copy.submit_time).mean()))
    return waits


def _workload(jobs: Sequence[RunJob], epoch: int) -> Workload:
    return workload_of("arm", TEN_BY_TEN, jobs, unix_start_time=epoch)[0]


def page_of(arms: Sequence[Arm], load: float = 1.3) -> str:
    """Write the page."""
    lines = [_HEAD.format(jobs=len(arms[0].wait), load=load, look=LOOK_S)]
    plain: Mapping[tuple[int, str], list[float]] = defaultdict(list)
    for each in arms:
        if each.arm == "plain":
            plain[each.seed, each.release].append(float(each.wait.mean()))
    lines += [
        f"| {' | '.join(_COLUMNS)} |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    known: dict[tuple[int, str, str], list[float]] = {}
    for each in arms:
        key = each.seed, each.release, each.arm
        if key not in known:
            known[key] = foretold(*key, jobs=len(each.wait), load=load)
        base = plain[each.seed, each.release]
        beside = f"{100 * (each.wait.mean() / np.mean(base) - 1):+.0f}%" if base else ""
        said = known[key]
        lines.append(
            f"| {each.seed} | {each.release} | {_ABOUT[each.arm]} | {each.wait.mean():.0f} |"
            f" {beside} | {each.slowdown.mean():.2f} | {np.quantile(each.wait, 0.9):.0f} |"
            f" {each.wait.max()} | {np.mean(said):.0f} ({min(said):.0f} to {max(said):.0f}) |"
        )
    return "\n".join([*lines, ""])


def main(words: Sequence[str]) -> None:
    """Write the page of a folder's runs."""
    PAGE.write_text(page_of(read_arms(Path(words[0]))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
