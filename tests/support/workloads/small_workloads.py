"""Random small workloads, to run on both mock schedulers."""

from __future__ import annotations

from typing import Any

import numpy as np
from foretime_sim.workloads.workload import Workload
from hypothesis import strategies as st


@st.composite
def workloads(draw: st.DrawFn, processors: int) -> Workload:
    jobs = draw(st.integers(1, 25))

    def column(values: st.SearchStrategy[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array(draw(st.lists(values, min_size=jobs, max_size=jobs)), dtype=np.int64)

    return Workload(
        name="drawn",
        machine_processors=processors,
        unix_start_time=None,
        job_id=np.arange(1, jobs + 1),
        submit_time=np.sort(column(st.integers(0, 300))),
        processors=column(st.integers(1, processors)),
        actual_runtime=column(st.integers(1, 400)),
        requested_time=column(st.integers(1, 400)),
    )
