"""What every workload model asks of its arguments, and the random numbers that it draws from."""

from __future__ import annotations

import numpy as np
from foretime_estimators.jobs.errors import InputError

from foretime_sim.machines.largest_machine import MAX_PROCESSORS

MOST_JOBS = 50_000_000
_LEAST_LOAD = 0.001
MONDAY = 1_704_067_200
"""Time zero of models that belong to no date: midnight of Monday, 1 January 2024, UTC."""


def check_jobs(jobs: int) -> None:
    """Refuse a number of jobs that can't be generated.

    Raises
    ------
    InputError
        Unless there are 1 to `MOST_JOBS`.
    """
    if not 1 <= jobs <= MOST_JOBS:
        raise InputError(f"{jobs} jobs can't be generated; give 1 to {MOST_JOBS:,}")


def check_machine(processors: int, load: float | None) -> None:
    """Refuse a machine, or an offered load, that can't be generated for.

    Raises
    ------
    InputError
        Unless there are 2 to 100,000,000 processors, and the load is one of `check_load`.
    """
    if not 2 <= processors <= MAX_PROCESSORS:
        raise InputError(f"{processors:,} processors: the model needs 2 to {MAX_PROCESSORS:,}")
    check_load(load)


def check_load(load: float | None) -> None:
    """Refuse an offered load that can't be generated for.

    Raises
    ------
    InputError
        Unless it is from 0.001 to 10, or not given.
    """
    if load is not None and not _LEAST_LOAD <= load <= 10:
        raise InputError(f"load {load}: give {_LEAST_LOAD} to 10")


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
