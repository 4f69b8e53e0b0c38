"""Jobs made up for a live run: short runtimes, limits of whole minutes, a load above one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.slurm.harness.slurm_conf import USERS
from tests.slurm.runs.run_job import RunJob


@dataclass(frozen=True, slots=True)
class JobRecipe:
    """How jobs are drawn.

    Attributes
    ----------
    jobs
        Submissions.
    load
        CPU seconds of all jobs, over those of the machine while they are submitted.
    median_runtime_s, longest_runtime_s
        Of a lognormal distribution (sigma 0.8), at least 10 s.
    most_cpus
        Of one job; log-uniform from 1 to 50 and cut there.
    longest_limit_min
        Requests are 1 to 10 times the runtime, log-uniform, in whole minutes up to this.
    adorn
        Changes a job as drawn: partitions, accounts, features, ...
    """

    jobs: int = 200
    load: float = 1.35
    median_runtime_s: float = 36.0
    longest_runtime_s: int = 300
    most_cpus: int = 40
    longest_limit_min: int = 40
    adorn: Callable[[RunJob, random.Random], RunJob] | None = None


def jobs_of(recipe: JobRecipe, machine_cpus: int, seed: int) -> list[RunJob]:
    """Draw jobs; the same seed gives the same jobs.

    The time of submissions follows from the load, so that the recipe alone says how busy it is.
    """
    rng = random.Random(seed)
    # Users differ in how much they ask for, as they do on real sites.
    overestimates = {user: rng.uniform(0.3, math.log(8)) for user in USERS}
    drawn = []
    for _ in range(recipe.jobs):
        user = rng.choices(USERS, weights=(5, 4, 3, 2, 1))[0]
        runtime = round(rng.lognormvariate(math.log(recipe.median_runtime_s), 0.8))
        runtime = min(recipe.longest_runtime_s, max(10, runtime))
        factor = min(10.0, max(1.0, math.exp(rng.gauss(overestimates[user], 0.5))))
        # Some seconds more, so that the limit's check every 30 s never ends it.
        limit = max(math.ceil((runtime + 5) / 60), round(runtime * factor / 60))
        cpus = min(recipe.most_cpus, max(1, round(math.exp(rng.uniform(0, math.log(50))))))
        job = RunJob(
            submit_s=0,
            user=user,
            time_limit_min=min(recipe.longest_limit_min, limit),
            runtime_s=runtime,
            tasks=cpus,
        )
        drawn.append(recipe.adorn(job, rng) if recipe.adorn else job)
    area = sum(
        job.runtime_s * job.tasks * (job.cpus_per_task or 1) * (job.array_tasks or 1)
        for job in drawn
    )
    duration = area / machine_cpus / recipe.load
    times = sorted(int(rng.uniform(0, duration)) for _ in drawn)
    return [replace(job, submit_s=time) for job, time in zip(drawn, times, strict=True)]
