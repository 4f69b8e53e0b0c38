"""How Slurm's two loops are set up: SchedulerParameters and the settings beside them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlurmParameters:
    """What of slurm.conf decides when Slurm looks at the queue, and how far it looks.

    Names of ``SchedulerParameters`` are Slurm's own (``man slurm.conf``); times in seconds
    (``bf_window`` there is in minutes). Defaults are those of 22.05 to 26.05.

    Attributes
    ----------
    backfill
        ``sched/backfill``; otherwise ``sched/builtin``: first in the queue's order, nothing else.
    batch_sched_delay, sched_interval, sched_min_interval_us, default_queue_depth
        When the main loop runs, and how many jobs it looks at.
    defer, assoc_limit_stop, partition_job_depth, max_sched_time, sched_max_job_start
        Further words of the main loop.
    bf_interval, bf_resolution, bf_window, bf_max_time, bf_yield_interval_us, bf_yield_sleep_us
        When the backfill loop runs, how coarse and how far it plans, and when it stops.
    bf_max_job_test, bf_max_job_user, bf_max_job_part, bf_max_job_user_part, bf_max_job_assoc
        How many jobs it looks at; 0 of the last four: no limit.
    bf_max_job_start, bf_max_job_array_resv, bf_job_part_count_reserve
        How many jobs it starts, and plans; 0 of the first and the last: no limit.
    bf_min_prio_reserve, bf_min_age_reserve
        Which jobs it plans.
    epilog
        Whether jobs leave something to do on their nodes when they end: an Epilog, or
        PrologFlags=Contain. If so, their ends run the main loop at once; if not, it waits for
        batch_sched_delay.
    bf_continue, bf_one_resv_per_job, bf_running_job_reserve, bf_licenses
        Words that are set or not.
    time_min_as_soft_limit
        Jobs are planned by TimeMin (23.11 and newer).
    over_time_limit_s, kill_wait_s, complete_wait_s
        OverTimeLimit, KillWait, CompleteWait.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.parameters import SlurmParameters
    >>> wide = SlurmParameters(bf_window=7 * 86_400, bf_continue=True)
    >>> wide.bf_window, wide.bf_interval
    (604800, 30)
    """

    backfill: bool = True
    batch_sched_delay: int = 3
    sched_interval: int = 60
    sched_min_interval_us: int = 2
    default_queue_depth: int = 100
    partition_job_depth: int = 0
    max_sched_time: int = 2
    sched_max_job_start: int = 0
    defer: bool = False
    assoc_limit_stop: bool = False
    max_rpc_cnt: int = 0
    epilog: bool = False
    bf_interval: int = 30
    bf_resolution: int = 60
    bf_window: int = 86_400
    bf_max_time: int = 30
    bf_yield_interval_us: int = 2_000_000
    bf_yield_sleep_us: int = 500_000
    bf_max_job_test: int = 500
    bf_max_job_user: int = 0
    bf_max_job_part: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_assoc: int = 0
    bf_max_job_start: int = 0
    bf_max_job_array_resv: int = 20
    bf_job_part_count_reserve: int = 0
    bf_min_prio_reserve: int = 0
    bf_min_age_reserve: int = 0
    bf_continue: bool = False
    bf_one_resv_per_job: bool = False
    bf_running_job_reserve: bool = False
    bf_licenses: bool = False
    time_min_as_soft_limit: bool = False
    over_time_limit_s: int = 0
    kill_wait_s: int = 30
    complete_wait_s: int = 0
