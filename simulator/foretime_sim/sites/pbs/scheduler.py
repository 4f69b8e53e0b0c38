"""How a PBS scheduler is set up: sched_config, and the attributes of its sched object."""

from __future__ import annotations

from dataclasses import dataclass

SortKeys = tuple[tuple[str, bool], ...]
"""Names of resources or special keys, each with whether high values come first."""


@dataclass(frozen=True, slots=True)
class PbsScheduler:
    """What of sched_config decides who starts; names are PBS's own, times in seconds.

    Defaults are those of the sched_config that OpenPBS installs. Where PRIME and NON_PRIME differ
    there, these are the values that hold now.

    Attributes
    ----------
    by_queue, round_robin
        Jobs queue by queue, by priority, or one of each in turn; otherwise all as in one queue.
    strict_ordering
        The first jobs that can't start become top jobs, which later ones may not delay. Without it
        there are none: a job that fits starts, whoever waits (``should_backfill_with_job``).
    job_sort_key
        ``job_priority``, ``fair_share_perc``, ``preempt_priority`` or resources.
    resources
        The resources of a job's own list that it is judged by, and that make jobs alike.
    node_sort_key
        ``sort_priority`` or resources, in what hosts have.
    smp_cluster_dist
        ``pack`` or ``round_robin``.
    fair_share, fairshare_usage_res, fairshare_entity, fairshare_decay_time_s,
    fairshare_decay_factor, fairshare_enforce_no_shares, unknown_shares
        Fair share. Who has no shares never runs, unless ``fairshare_enforce_no_shares`` is off.
    dedicated_prefix
        Queues whose names begin so run in dedicated time alone, and others not in it.
    backfill_prime, prime_exempt_anytime_queues, prime_spill_s, primetime_prefix,
    nonprimetime_prefix
        Primetime.
    preemptive_sched, preempt_queue_prio
        Queues of at least this priority are express queues, whose jobs take the place of others.
    opt_backfill_fuzzy_s
        Ends within one span of so many seconds, counted from 1970, are taken together when a top
        job's start is looked for. PBS's ``off`` is 1, its default ``low`` 60, ``med`` 600, ``high``
        3600.

    Examples
    --------
    >>> from foretime_sim.sites.pbs.scheduler import PbsScheduler
    >>> PbsScheduler(strict_ordering=True).by_queue
    True
    """

    by_queue: bool = True
    round_robin: bool = False
    strict_ordering: bool = False
    job_sort_key: SortKeys = ()
    resources: tuple[str, ...] = ("ncpus", "mem", "arch", "host", "vnode", "aoe", "eoe")
    node_sort_key: SortKeys = (("sort_priority", True),)
    smp_cluster_dist: str = "pack"
    fair_share: bool = False
    fairshare_usage_res: str = "cput"
    fairshare_entity: str = "euser"
    fairshare_decay_time_s: int = 86_400
    fairshare_decay_factor: float = 0.5
    fairshare_enforce_no_shares: bool = True
    unknown_shares: int = 0
    dedicated_prefix: str = "ded"
    backfill_prime: bool = False
    prime_exempt_anytime_queues: bool = False
    prime_spill_s: int = 0
    primetime_prefix: str = "p_"
    nonprimetime_prefix: str = "np_"
    preemptive_sched: bool = True
    preempt_queue_prio: int = 150
    opt_backfill_fuzzy_s: int = 60
