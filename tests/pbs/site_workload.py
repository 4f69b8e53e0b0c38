"""Jobs for live schedulers, drawn from a seed: more than the machine takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

HOSTS, CPUS_OF_A_HOST = 4, 4
USERS = ("alice", "bob", "carol")
_WALLTIMES_S = (60, 120, 180, 300, 600, 900, 1200, 2400)


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job of a live workload; times in seconds, `submit_s` from the beginning."""

    submit_s: int
    user: str
    queue: str
    chunks: int
    ncpus: int
    walltime_s: int
    runtime_s: int
    soft_walltime_s: int
    """What an estimator might say: half to one and a half of the runtime; at most the walltime."""

    @property
    def cpus(self) -> int:
        """Give all its CPUs."""
        return self.chunks * self.ncpus


def live_jobs(seed: int, count: int, load: float = 1.3) -> list[LiveJob]:
    """Draw jobs for four hosts of four CPUs, in the order of their submission.

    Runtimes are lognormal between 10 and 240 s. Walltimes are 1.1 to 10 times the runtime, rounded
    up as users do, so that many jobs are alike to the scheduler. They arrive `load` times as fast
    as the machine can run them.
    """
    draws = np.random.default_rng(seed)
    runtime = np.clip(draws.lognormal(np.log(40), 0.8, count), 10, 240).astype(int)
    wished = runtime * np.exp(draws.uniform(np.log(1.1), np.log(10), count))
    chunks = draws.choice([1, 2, 3, 4], count, p=[0.5, 0.3, 0.15, 0.05])
    ncpus = np.maximum(draws.integers(1, 5, count), np.where(chunks > 1, 2, 1))
    ncpus = np.where(chunks == 4, np.minimum(ncpus, 3), ncpus)  # no job fills the machine
    gaps = draws.exponential(1.0, count).cumsum()
    work = int((runtime * chunks * ncpus).sum())
    submit = (gaps / gaps[-1] * work / (HOSTS * CPUS_OF_A_HOST) / load).astype(int)
    users = draws.choice(USERS, count, p=[0.5, 0.3, 0.2])
    queues = draws.choice(["high", "low"], count, p=[0.35, 0.65])
    soft = (runtime * draws.uniform(0.5, 1.5, count)).astype(int) + 1
    walltimes = [next((s for s in _WALLTIMES_S if s >= w), _WALLTIMES_S[-1]) for w in wished]
    return [
        LiveJob(
            submit_s=int(submit[job]),
            user=str(users[job]),
            queue=str(queues[job]),
            chunks=int(chunks[job]),
            ncpus=int(ncpus[job]),
            walltime_s=walltimes[job],
            runtime_s=int(runtime[job]),
            soft_walltime_s=min(int(soft[job]), walltimes[job]),
        )
        for job in range(count)
    ]


def as_rows(jobs: list[LiveJob]) -> list[dict[str, Any]]:
    """Give jobs as JSON has them."""
    return [asdict(job) for job in jobs]
