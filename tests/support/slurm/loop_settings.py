"""Random settings of Slurm's loops, to run model and core under."""

from __future__ import annotations

from typing import Any

from foretime_sim.sites.slurm.parameters import SlurmParameters
from hypothesis import strategies as st

VERSIONS = st.sampled_from([(22, 5), (24, 5), (24, 11), (25, 11), (26, 5)])


def loop_parameters(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[SlurmParameters]:
    """Draw SchedulerParameters; ``more`` are those that not every test can stand."""
    return st.builds(
        SlurmParameters,
        backfill=st.sampled_from([True, True, True, False]),
        batch_sched_delay=st.sampled_from([0, 3, 10]),
        sched_interval=st.sampled_from([20, 60]),
        sched_min_interval_us=st.sampled_from([2, 2_000_000]),
        default_queue_depth=st.sampled_from([1, 100]),
        partition_job_depth=st.sampled_from([0, 0, 2]),
        sched_max_job_start=st.sampled_from([0, 0, 1]),
        defer=st.booleans(),
        epilog=st.booleans(),
        bf_interval=st.sampled_from([5, 30]),
        bf_resolution=st.sampled_from([1, 60, 300]),
        bf_window=st.sampled_from([600, 86_400]),
        bf_max_job_test=st.sampled_from([3, 500]),
        bf_max_job_part=st.sampled_from([0, 0, 2]),
        bf_max_job_user=st.sampled_from([0, 0, 2]),
        bf_max_job_start=st.sampled_from([0, 0, 1]),
        bf_max_job_array_resv=st.sampled_from([1, 20]),
        bf_job_part_count_reserve=st.sampled_from([0, 0, 1, 2]),
        bf_min_age_reserve=st.sampled_from([0, 0, 100]),
        bf_one_resv_per_job=st.booleans(),
        bf_running_job_reserve=st.booleans(),
        **more,
    )
