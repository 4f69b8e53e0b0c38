"""What the columns of Graham's noon polls hold, and which of them a forecast may see.

The polls are those of B. Popa and G. Alain, "SLURM queue time prediction using neural networks",
1.0.0, Mila 2023: jobs of the cluster Graham that were pending at noon, with what accounting said
of them afterwards. So a row knows its job's future. Every column is in exactly one of the lists
here; a forecast is given `KNOWN` and what follows from it, nothing else.

What the augmented columns count was found by adding up jobs that are in the polls themselves
(`tests/studies/graham2021/test_graham2021_polls.py`): ``*_hours_above`` are requested hours of what
is queued, and requested hours that are left of what runs; ``*_run_hours`` are hours that queued
jobs *will* run.
"""

from __future__ import annotations

from foretime_studies.frame.published import published

WAIT = "poll_wait_sec"
"""What is forecast: seconds from the poll to the start."""
POLL, SUBMIT = "poll_time", "submit_time"
ACCOUNT, SLURM_PARTITION, TRES = "account_id", "partition_id_y", "req_tres"

_SCOPES = ("", "p_", "a_", "p_a_")
"""All jobs; those of the same slurm_partition, of the same account, of both."""

REQUESTS = ("req_cpus", "req_mem_total", "req_mem_per_cpu", "time_limit_sec")
QUEUED = tuple(
    f"q_{scope}{counted}_above"
    for scope in _SCOPES
    for counted in ("jobs", "cores", "mem", "core_hours", "gpus", "gpu_hours")
)
"""Pending jobs of higher priority."""
RUNNING = tuple(name.replace("q_", "r_", 1) for name in QUEUED)
"""Running jobs."""
FAIR_SHARE = (
    "priority_y", "raw_share_poll", "norm_share_poll", "raw_use_poll", "effect_use_poll",
    "level_fs_poll", "norm_use_poll",
)  # fmt: skip
"""Priority and fair share at the poll."""

KNOWN = REQUESTS + QUEUED + RUNNING + FAIR_SHARE
"""Numbers that squeue, sprio and sshare show at noon."""

_LEFT_OUT = published(__package__, "columns")
FUTURE, NOT_USED = (
    {name: row["why"] for name, row in _LEFT_OUT.items() if row["use"] == use}
    for use in ("future", "none")
)
"""Columns that hold what is not known at noon, and those that would be no use; and why."""
PUBLISHED_FUTURE = tuple(name for name, row in _LEFT_OUT.items() if row["published"])
"""Columns of the future among the features of the published network."""
