"""What attacks bring and cost, in figures, under Slurm's model.

``python -m tests.sidecar.ordering.attack_trial WORKLOADS JOBS`` writes docs/start_now_attacks.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sim.workloads.workload import Workload

from tests.sidecar.ordering.attacks import ATTACKS, PROCESSORS, Scene, honest_scene
from tests.sidecar.ordering.start_trial import Trial, plain

PAGE = Path(__file__).resolve().parents[3] / "docs/start_now_attacks.md"
TEXT = Path(__file__).resolve().parent / "attacks_page.md"
ROBUST = "weighted"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attack came to, over the same jobs without it.

    Attributes
    ----------
    own, others
        The mean wait for the attacker's work, and that of everybody else, over that of before.
    burnt
        Processor time that it cost, over that of the work.
    jobs
        Submissions for each piece of work.
    """

    own: float
    others: float
    burnt: float
    jobs: float


Run = Callable[[Workload], Int64Array]


def started_by(estimator: str) -> Run:
    """Give the run of start-now by an estimator."""
    return lambda workload: Trial(workload, estimator=estimator).run()


def outcome(
    run: Run,
    attack: Callable[[Scene], Scene],
    scenes: Sequence[Scene],
    honest_starts: Sequence[Int64Array] | None = None,
) -> Outcome:
    """Give what an attack comes to over several workloads, each run with it and without."""
    sums = np.zeros((2, 2))
    burnt, jobs = [], []
    before = honest_starts or [run(honest.workload) for honest in scenes]
    for honest, start in zip(scenes, before, strict=True):
        attacked = attack(honest)
        for row, scene, starts in ((0, honest, start), (1, attacked, run(attacked.workload))):
            sums[row] += scene.waits(starts).mean(), scene.others_waits(starts).mean()
        burnt.append(attacked.burnt(honest))
        jobs.append(float((~attacked.others).sum() / len(honest.ready)))
    own, others = sums[1] / sums[0]
    return Outcome(own, others, float(np.mean(burnt)), float(np.mean(jobs)))


def main(words: Sequence[str]) -> None:
    """Write the page."""
    workloads, jobs = map(int, words)
    scenes = [honest_scene(seed, jobs) for seed in range(1, 1 + workloads)]
    ways: dict[str, Run] = {
        "plain": plain,
        "expected": started_by("expected"),
        ROBUST: started_by(ROBUST),
    }
    before = {way: [run(scene.workload) for scene in scenes] for way, run in ways.items()}
    rows = []
    for name, attack in ATTACKS.items():
        found = [outcome(run, attack, scenes, before[way]) for way, run in ways.items()]
        said = [f"{each.own:.2f} | {each.others:.2f}" for each in found]
        price = f"{found[0].jobs:.0f} | {100 * found[0].burnt:.1f}%"
        rows.append(f"| {name} | {price} | {' | '.join(said)} |")
        print(rows[-1], flush=True)
    text = TEXT.read_text(encoding="utf-8").format(
        workloads=workloads,
        jobs=jobs,
        processors=PROCESSORS,
        mine=len(scenes[0].ready),
        rows="\n".join(rows),
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
