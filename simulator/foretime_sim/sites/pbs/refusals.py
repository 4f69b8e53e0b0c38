"""What of a site under PBS is not modelled, and so refused."""

from __future__ import annotations

from foretime_estimators.jobs.errors import InputError

from foretime_sim.sites.pbs.formula import FormulaNode, parse_formula
from foretime_sim.sites.pbs.site import PbsServer, PbsSite

_OF_ELIGIBLE_TIME = ("eligible_time", "accrue_type")


def check_modelled(site: PbsSite) -> None:
    """Refuse what is not modelled.

    Raises
    ------
    InputError
        It names the setting, its value, and what to do.
    """
    settings = site.scheduler
    if settings.preemptive_sched:
        for queue in site.queues:
            if queue.priority >= settings.preempt_queue_prio:
                raise InputError(
                    f"queue {queue.name}: priority {queue.priority} makes it an express queue,"
                    " whose jobs preempt others, which is not modelled: lower it below"
                    f" {settings.preempt_queue_prio} or set preemptive_sched to False"
                )
    if settings.smp_cluster_dist != "pack":
        raise InputError(
            f"sched_config: smp_cluster_dist {settings.smp_cluster_dist} is not modelled: give pack"
        )
    primes = (settings.primetime_prefix, settings.nonprimetime_prefix)
    for queue in site.queues:
        if queue.name.startswith(primes):
            raise InputError(f"queue {queue.name} is of primetime, which is not modelled")
    if settings.backfill_prime:
        raise InputError("sched_config: backfill_prime is not modelled: set it to False")
    if settings.fairshare_entity not in ("euser", "egroup", "queue", "project"):
        raise InputError(
            f"sched_config: fairshare_entity {settings.fairshare_entity} is not modelled: give"
            " euser, egroup, project or queue"
        )
    for key, _ in settings.node_sort_key:
        if key.split()[-1] in ("unused", "assigned"):
            raise InputError(f"sched_config: node_sort_key {key} is not modelled")
    for group in site.share_groups:
        if group.name in ("root", "unknown"):
            raise InputError(f"resource_group: {group.name} is PBS's own: give it another name")
    order_formula(site.server)
    parse_formula(settings.fairshare_usage_res)


def order_formula(server: PbsServer) -> FormulaNode | None:
    """Read job_sort_formula; ``None`` where there is none.

    Raises
    ------
    InputError
        If it is no formula, or uses what is not modelled.
    """
    text = server.job_sort_formula
    if not text:
        return None
    read = parse_formula(text)
    for name in _OF_ELIGIBLE_TIME:
        if server.eligible_time_enable and name in read.names:
            raise InputError(
                f"the formula {text!r} uses {name}, which is not modelled where"
                " eligible_time_enable is set"
            )
    return read
