"""Random jobs as rows of numbers, for what the engine and its specification must agree on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from foretime_sim.workloads.workload import Workload
from hypothesis import strategies as st

JOB_VALUES = (
    st.sampled_from([0, 0, 1, 7, 60]),
    st.integers(1, 8),
    st.integers(0, 400),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 400),
    st.integers(0, 3),
)
"""Submission gap, processors, actual runtime, requested time, t_sched, time limit, priority."""
JOB_ROWS = st.tuples(*JOB_VALUES)


def workload_of_rows(
    rows: Sequence[tuple[int, ...]], *, unix_start_time: int | None = None
) -> tuple[Workload, np.ndarray]:
    """Give the rows as a workload for 8 processors, and their columns."""
    columns = np.array(rows, dtype=np.int64).T
    submit = np.cumsum(columns[0])
    processors, actual, requested = columns[1:4]
    ids = np.arange(len(rows))
    jobs = Workload("random", 8, unix_start_time, ids, submit, processors, actual, requested)
    return jobs, columns
