"""What ``foretime replay`` says of an arm: the same jobs, with submissions moved by seconds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import foretime_sidecar
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import AccuracySection
from foretime_sim.engine.engine import simulate
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.scores.repeats import Repeats

from foretime_studies.frame.code_digest import code_digest
from foretime_studies.frame.kept_results import kept_results
from foretime_studies.live_slurm.arms import (
    ARMS,
    LEAST_SCHEDULED_S,
    LOOK_S,
    LOOK_TAKES_S,
    site_of,
)
from foretime_studies.live_slurm.workloads import LiveWorkload

COPIES = 5
_DECIDING = ("arms.py", "foretold.py", "workloads.py")
JITTER_S = 2


def foretold_wait(workload: LiveWorkload, release: str, arm_name: str, copy: int) -> float:
    """Give the mean wait of a copy of the jobs in a replay, seconds."""
    arm = ARMS[arm_name]
    varied = Repeats(count=copy + 1, seed=1, jitter_s=JITTER_S).varied(workload.columns(), copy)
    policy = Policy(backfill=Slurm(site_of(arm, workload.users, release)))
    if arm.way == "none":
        start = simulate(varied, policy).start_time
    else:
        replay = Replay(
            policy,
            scheme="learned",
            accuracy=AccuracySection(minimum_scheduled_time_s=LEAST_SCHEDULED_S),
            publish_interval_s=LOOK_S,
            history=workload.columns_before(),
            plain_beside=arm.beside,
        )
        if arm.way == "start-now":
            order = QueueOrderSettings(order="start-now")
            replay = replace(
                replay, queue_order=order, look_interval_s=LOOK_S, look_takes_s=LOOK_TAKES_S
            )
        start = replay(varied, 0).adjusted.start_time
    return float((start - varied.submit_time).mean())


def foretold_waits(
    arms: Iterable[tuple[str, str, str]],
    copies: int,
    folder: Path,
    *,
    workers: int,
    progress: Callable[[int], None],
) -> dict[tuple[str, str, str], list[float]]:
    """Give the mean waits of so many copies of each arm: of workload, release and arm.

    They are kept in the folder, and not worked out again by the same code.
    """
    keys = sorted(set(arms))
    workloads = {name: LiveWorkload.named(name) for name, _, _ in keys}
    code = _code()
    ids = {(key, copy): " ".join((*key, str(copy), code)) for key in keys for copy in range(copies)}
    runs = {
        ids[key, copy]: partial(foretold_wait, workloads[key[0]], key[1], key[2], copy)
        for key, copy in ids
    }
    found = kept_results(runs, float, folder, workers=workers, progress=progress)
    return {key: [found[ids[key, copy]] for copy in range(copies)] for key in keys}


def _code() -> str:
    """Give a short name for all code that a replay runs."""
    hashed = hashlib.sha256(code_digest().encode())
    ours = Path(__file__).parent
    files = [ours / name for name in _DECIDING]
    files += sorted(Path(str(foretime_sidecar.__file__)).parent.rglob("*.py"))
    for path in files:
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]
