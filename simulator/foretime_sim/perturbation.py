"""Small changes to a workload that should not matter, to see how much of a result is chance.

With requested times, EASY is chaotic: moving submissions by up to a minute moves the mean bounded
slowdown of CTC by 6%. So runs are repeated on perturbed copies, and means have an interval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_estimators.errors import InputError

from foretime_sim.workload import Workload


def jittered(workload: Workload, rng: np.random.Generator, jitter_s: int = 60) -> Workload:
    """Give the workload with every submission moved by up to so many seconds, sorted again.

    Each job moves by a whole number of seconds drawn evenly from -jitter_s to jitter_s, but not to
    before the log's start. Ties keep the order that the jobs had.
    """
    if jitter_s < 0:
        raise InputError(f"a jitter of {jitter_s} s; give 0 or more")
    moved = workload.submit_time + rng.integers(-jitter_s, jitter_s + 1, size=len(workload))
    submit_time = np.maximum(moved, 0)
    order = np.argsort(submit_time, kind="stable").astype(np.int64)
    return replace(workload.take(order), submit_time=submit_time[order])


def shuffled_ties(workload: Workload, rng: np.random.Generator) -> Workload:
    """Give the workload with jobs that were submitted at the same second in a random order."""
    order = np.lexsort((rng.random(len(workload)), workload.submit_time)).astype(np.int64)
    return workload.take(order)
