"""Jobs that choose their sizes at the head of the queue."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim.models.speedup import Speedup
from foretime_sim.self_tuning.malleable import (
    HeadState,
    MalleableJobs,
    draw_malleable_jobs,
    schedule_malleable,
)


def test_jobs_take_what_the_rule_says_in_order() -> None:
    """Linear jobs of 800 s of work: 8 processors at 0, then 4 each from 100 s on, in order."""
    jobs = MalleableJobs(np.array([0, 10, 20, 30]), np.full(4, 800.0), tuple([Speedup(100, 0)] * 4))
    seen: list[HeadState] = []

    def rule(job: int, state: HeadState) -> int:
        seen.append(state)
        return 8 if job == 0 else 4

    done = schedule_malleable(jobs, 8, rule)
    assert done.start_time.tolist() == [0, 100, 100, 300]
    assert done.end_time.tolist() == [100, 300, 300, 500]
    assert done.processors.tolist() == [8, 4, 4, 4]
    assert [state.time for state in seen] == [0, 10, 100, 100]
    assert [state.free for state in seen] == [8, 0, 4, 0]
    assert [state.queued for state in seen] == [0, 0, 1, 0]
    assert seen[1].age.tolist() == [10]


def test_drawn_jobs_have_the_load_and_are_the_same_again() -> None:
    jobs = draw_malleable_jobs(2_000, 128, 0.5, seed=1)
    offered = jobs.sequential_s.sum() / (128 * jobs.submit_time[-1])
    assert offered == pytest.approx(0.5, rel=0.1)
    assert (np.diff(jobs.submit_time) >= 0).all()
    again = draw_malleable_jobs(2_000, 128, 0.5, seed=1)
    assert (again.sequential_s == jobs.sequential_s).all()
