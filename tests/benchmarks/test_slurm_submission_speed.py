"""What the hook costs a submission to a real slurmctld, with 100,000 users in the table."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest
from foretime_sidecar.table.table import TableRow

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease, why_no_cluster

SUBMISSIONS = 2_000
GOAL_RATIO = 1.02
ROWS = [
    TableRow("user", "alice", 0, 300_000),
    *(TableRow("user", f"user{number}", 0, 300_000, 10**12) for number in range(100_000)),
]


def submit(cluster: SlurmCluster) -> float:
    began = time.perf_counter()
    cluster.sbatch("-t", "60", "--hold")
    return time.perf_counter() - began


@pytest.mark.real_slurm
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("release", [each for each in RELEASES if not each.sampled], ids=str)
def test_submission_to_a_real_slurm(benchmark: Any, release: SlurmRelease) -> None:
    """Submit to a plain and to a hooked cluster in turn, so that both meet the same noise."""
    missing = why_no_cluster() or release.missing
    if missing:
        pytest.skip(f"no live Slurm: {missing}")
    with SlurmCluster(release, nodes=1) as plain, SlurmCluster(release, nodes=1) as hooked:
        hooked.install_hook(ROWS)
        for cluster in (plain, hooked):
            submit(cluster)
        plain_s: list[float] = []
        hooked_s: list[float] = []

        def in_turn() -> None:
            for number in range(SUBMISSIONS):
                pair = [(plain, plain_s), (hooked, hooked_s)]
                for cluster, times in pair if number % 2 else reversed(pair):
                    times.append(submit(cluster))

        benchmark.pedantic(in_turn, rounds=1)
        (last,) = [job for job in hooked.jobs() if job["JobId"] == str(SUBMISSIONS + 1)]
        assert "foretime:treq=60" in last["AdminComment"]
    ratio = statistics.median(hooked_s) / statistics.median(plain_s)
    benchmark.extra_info["submissions"] = SUBMISSIONS
    benchmark.extra_info["median_plain_ms"] = 1000 * statistics.median(plain_s)
    benchmark.extra_info["median_hooked_ms"] = 1000 * statistics.median(hooked_s)
    benchmark.extra_info["ratio"] = ratio
    benchmark.extra_info["goal_ratio"] = GOAL_RATIO
    assert ratio <= GOAL_RATIO
