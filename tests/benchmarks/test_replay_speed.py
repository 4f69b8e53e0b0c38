"""What a whole replay costs: each submission through the hook, each end through the sidecar."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.policies.families import Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.scheduler_defaults import default_policy
from foretime_sim.policies.site_machine import on_machine_of, on_one_pool
from pytest_benchmark.fixture import BenchmarkFixture

LOGS = {
    "KTH": ("KTH-SP2-1996-2.1-cln.swf.gz", None),
    "Curie": ("CEA-Curie-2011-2.1-cln.swf.gz", 80_640),
}


@pytest.mark.traces
@pytest.mark.parametrize(
    ("log", "mechanism"),
    [
        ("KTH", Mechanism.SLURM_SOFT_LIMIT),
        ("Curie", Mechanism.SLURM_SOFT_LIMIT),
        ("KTH", Mechanism.PBS_SOFT_WALLTIME),  # its hook is compiled once, but run anew each time
    ],
)
def test_replay(
    benchmark: BenchmarkFixture, trace: Callable[[str], Path], log: str, mechanism: Mechanism
) -> None:
    name, processors = LOGS[log]
    workload, _ = workload_of_log(read_log(trace(name)), processors=processors)
    policy = mechanism_policy(mechanism, Policy(backfill=Easy(guard=Guard(6 * 3600))))
    replay = Replay(policy, mechanism=mechanism)
    # pytest-benchmark leaves pedantic untyped.
    benchmark.pedantic(replay, args=(workload, 0))  # type: ignore[no-untyped-call]
    benchmark.extra_info["jobs"] = len(workload)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    benchmark.extra_info["peak_mib"] = peak / 1024


@pytest.mark.traces
@pytest.mark.benchmark(group="jobs that start at once, over planning short")
def test_the_default_replay_over_combined(benchmark: Any, trace: Callable[[str], Path]) -> None:
    """CPU of both ways on the same jobs under Slurm's own rules, turn by turn."""
    workload, _ = workload_of_log(read_log(trace(LOGS["KTH"][0])))
    workload = on_one_pool(workload.head(1000))
    policy = mechanism_policy(Mechanism.SLURM_SOFT_LIMIT, default_policy("slurm", workload))
    workload = on_machine_of(policy, workload)
    order = QueueOrderSettings(order="start-now")
    ways = Replay(policy), Replay(policy, scheme="learned", queue_order=order)
    taken = [0.0, 0.0]

    def both() -> None:
        for at, way in enumerate(ways):
            began = time.process_time()
            way(workload, 0)
            taken[at] += time.process_time() - began

    benchmark.pedantic(both, rounds=3)
    benchmark.extra_info["ratio"] = taken[1] / taken[0]
    benchmark.extra_info["goal_ratio"] = 2
