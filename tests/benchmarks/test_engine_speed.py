"""Speed of the engine by log and policy, against the plain Python reference, and its memory.

`make bench` runs these and tells jobs/s, ratios to the reference and the goals in its table. Where
a real log is missing, a generated workload of its own runs all the same.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Backfill, Compression, Conservative, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload

from tests.support.plans.availability_profile import AvailabilityProfile

TimesReference = Callable[[Callable[[], object], Callable[[], object]], int]
GENERATED = "generated"
LOGS = {
    GENERATED: None,
    "KTH-SP2-1996-2.1-cln": None,
    "CTC-SP2-1996-3.1-cln": None,
    "SDSC-SP2-1998-4.2-cln": None,
    "SDSC-BLUE-2000-4.2-cln": None,
    "CEA-Curie-2011-2.1-cln": 80_640,
}
POLICIES = {
    "fcfs": Policy(backfill=Backfill.NONE),
    "easy": Policy(),
    "easy-sjbf": Policy(backfill=Backfill.EASY_SJBF),
    "wfp-easy": Policy(order=Order.WFP),
    "sjf-easy": Policy(order=Order.SJF),
    "easy-slurm-guard": Policy(backfill=Easy(guard=Guard(3_600)), correction=Correction.SLURM),
    "first-fit": Policy(backfill=Backfill.FIRST_FIT),
    "easy-depth-10": Policy(backfill=Easy(depth=10)),
    "easy-depth-100": Policy(backfill=Easy(depth=100)),
    "conservative": Policy(backfill=Backfill.CONSERVATIVE),
    "conservative-one-by-one": Policy(backfill=Conservative(Compression.ONE_BY_ONE)),
    "planning": Policy(backfill=Backfill.PLANNING),
}
EASY_GOALS = {log: 1_500_000 for log in LOGS if log != GENERATED}
GOALS_JOBS_PER_S: dict[str, dict[str, int]] = {
    "fcfs": EASY_GOALS,
    "easy": EASY_GOALS,
    "wfp-easy": {"CEA-Curie-2011-2.1-cln": 1_000_000},
    "conservative": {"KTH-SP2-1996-2.1-cln": 200_000, "CEA-Curie-2011-2.1-cln": 50_000},
}
"""By policy and log."""
DEEP = {"planning": 60_000, "easy-depth-100": 100_000}
"""Most jobs that are simulated where a pass costs as much as the queue is deep."""
SLICE = 1_000
"""Jobs on which the reference runs too."""


@cache
def generated() -> Workload:
    return lublin2003.generate(100_000, load=0.9)


@cache
def read_workload(path: Path, processors: int | None) -> Workload:
    return workload_of_log(read_log(path), processors=processors)[0]


@pytest.fixture(params=LOGS)
def jobs(request: pytest.FixtureRequest, trace: Callable[[str], Path]) -> Workload:
    name: str = request.param
    if name == GENERATED:
        return generated()
    return read_workload(trace(f"{name}.swf.gz"), LOGS[name])


def planned(jobs: Workload, policy: Policy) -> np.ndarray | None:
    """Give scheduled times that many jobs outlive where there is a correction to be measured."""
    if policy.correction is Correction.REQUESTED:
        return None
    return (jobs.actual_runtime + jobs.requested_time) // 4


def plain_scan_steps(jobs: Workload, schedule: Schedule) -> int:
    """Count the jobs that a scheduler would look at which walks its whole queue at each pass."""
    times = np.union1d(jobs.submit_time, schedule.end_time)
    submitted = np.searchsorted(jobs.submit_time, times, side="right")
    started_before = np.searchsorted(np.sort(schedule.start_time), times, side="left")
    return int((submitted - started_before).sum())


# The benchmark fixture is Any: its own types are incomplete.


@pytest.mark.parametrize("policy", POLICIES)
def test_engine_speed(
    benchmark: Any, jobs: Workload, policy: str, times_reference: TimesReference
) -> None:
    chosen = POLICIES[policy]
    jobs = jobs.head(DEEP.get(policy, len(jobs)))
    benchmark.group = f"engine {policy}"
    scheduled = planned(jobs, chosen)
    several = chosen.backfill in (Backfill.NONE, Backfill.EASY, Backfill.EASY_SJBF)
    schedule = benchmark.pedantic(
        simulate,
        args=(jobs, chosen, scheduled),
        rounds=3 if several else 1,
        warmup_rounds=1 if several else 0,
    )
    middle = len(jobs) // 2
    some = jobs.take(np.arange(middle, min(middle + SLICE, len(jobs))))
    benchmark.extra_info["times_reference"] = times_reference(
        lambda: reference.simulate(
            some, chosen, planned(some, chosen), new_profile=AvailabilityProfile
        ),
        lambda: simulate(some, chosen, planned(some, chosen)),
    )
    benchmark.extra_info["jobs"] = len(jobs)
    benchmark.extra_info["deepest_queue"] = schedule.counters.deepest_queue
    benchmark.extra_info["plain_scan_steps"] = plain_scan_steps(jobs, schedule)
    if goal := GOALS_JOBS_PER_S.get(policy, {}).get(jobs.name):
        benchmark.extra_info["goal_jobs_per_s"] = goal


MEASURE_MEMORY = """
import ctypes, sys
from pathlib import Path
from foretime_sim.models import lublin2003
from tests.support.plans.availability_profile import AvailabilityProfile
from foretime_sim.engine.engine import simulate

def resident_bytes(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(kind)) * 1024

workload = lublin2003.generate(int(sys.argv[1]), load=0.9)
simulate(workload.head(1000))
ctypes.CDLL(None).malloc_trim(0)  # or memory left by the generator is used again unseen
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from now on
before = resident_bytes("VmRSS:")
schedule = simulate(workload)
print((resident_bytes("VmHWM:") - before) / len(workload))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_memory_per_job(benchmark: Any) -> None:
    """Peak of a process's resident memory over a whole run, above its workload; result included."""
    benchmark.group = "engine memory"
    jobs = 1_000_000

    def measure() -> float:
        command = [sys.executable, "-c", MEASURE_MEMORY, str(jobs)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout)

    bytes_per_job: float = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["bytes_per_job"] = round(bytes_per_job)
    benchmark.extra_info["goal_bytes_per_job"] = 200
    assert bytes_per_job < 200
