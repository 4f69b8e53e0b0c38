"""What every workload model asks of its arguments, and the random numbers that it draws from."""

from __future__ import annotations

import numpy as np
from foretime_estimators.errors import InputError

MOST_JOBS = 50_000_000


def check_jobs(jobs: int) -> None:
    """Refuse a number of jobs that can't be generated.

    Raises
    ------
    InputError
        Unless there are 1 to `MOST_JOBS`.
    """
    if not 1 <= jobs <= MOST_JOBS:
        raise InputError(f"{jobs} jobs can't be generated; give 1 to {MOST_JOBS:,}")


def random_streams(seed: int, subjects: int) -> list[np.random.Generator]:
    """Give one stream of random numbers a subject: a change to one leaves the others as they were.

    Raises
    ------
    InputError
        If the seed is negative.
    """
    if seed < 0:
        raise InputError(f"seed {seed}: give 0 or more")
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(subjects)]
