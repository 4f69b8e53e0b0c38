"""A site under PBS, and its jobs, as the native core takes them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np
from foretime_estimators.jobs.errors import InputError

from foretime_sim import _core
from foretime_sim.engine.native.node_core import core_request
from foretime_sim.engine.native.pbs_names import PbsNames, all_limits, owners
from foretime_sim.engine.native.pbs_shares import LISTED, add_shares, core_formula
from foretime_sim.sites.pbs.limits import EntityLimits
from foretime_sim.sites.pbs.refusals import check_modelled, order_formula
from foretime_sim.sites.pbs.site import PbsQueue, PbsSite
from foretime_sim.workloads.node_request import JobResources, Request
from foretime_sim.workloads.resource_requests import check_all_fit, fit_requests
from foretime_sim.workloads.workload import Workload

_SORT_KEYS = {
    **{name: place for place, name in enumerate(LISTED)},
    "job_priority": 5,
    "fair_share_perc": 6,
}
_COUNTED = ("ncpus", "mem", "ngpus")
_WHY_NEVER = (
    "a limit on what is queued, resources_min or resources_max, the state of its queue, or what"
    " its limits and shares ever allow keeps it out"
)
_NO_LIMIT = np.iinfo(np.int64).max


def check_pbs_site(site: PbsSite) -> None:
    """Refuse what of a site is not modelled, or hangs on what no log tells.

    Raises
    ------
    InputError
        Naming the setting, its value, and what to do.
    """
    check_modelled(site)
    if site.scheduler.fair_share and site.scheduler.fairshare_entity == "egroup":
        raise InputError(
            "sched_config: fairshare_entity is egroup, and logs have no groups: give euser, project"
            " or queue"
        )
    for owner in owners(site):
        where = f"queue {owner.name}" if isinstance(owner, PbsQueue) else "server"
        for limits in all_limits(owner.limits):
            if group := next((who for who in limits if who.startswith("g:")), None):
                raise InputError(
                    f"{where}: the limit of {group} can't be counted, as logs have no groups: leave"
                    " it out"
                )


def core_pbs_site(site: PbsSite, epoch: int, names: PbsNames) -> _core.PbsSite:
    """Give a site as the native core has it.

    Parameters
    ----------
    site
        What is set up; its times are epoch seconds.
    epoch
        Epoch seconds of the clock's zero.
    names
        Codes of users and projects.

    Raises
    ------
    InputError
        If the site does what is not modelled.
    """
    check_pbs_site(site)
    core, settings, server = _core.PbsSite(), site.scheduler, site.server
    core.epoch = epoch
    core.by_queue, core.round_robin = settings.by_queue, settings.round_robin
    core.strict = settings.strict_ordering
    core.depth = 1 if server.backfill_depth is None else server.backfill_depth
    core.fuzzy = settings.opt_backfill_fuzzy_s
    core.iteration = server.scheduler_iteration_s
    core.usage_lag = site.usage_lag_s
    decayed_at = site.usage_at if site.decayed_at is None else site.decayed_at
    core.decayed_at = None if decayed_at is None else decayed_at - epoch
    keys = [(key, high) for key, high in settings.job_sort_key if key in _SORT_KEYS]
    core.sort_keys = [(_SORT_KEYS[key], high) for key, high in keys]
    core.threshold = server.job_sort_formula_threshold
    if (formula := order_formula(server)) is not None:
        core.order_by(core_formula(formula))
    _add_hosts(core, site)
    _add_queues(core, site)
    _add_limits(core, site, names)
    add_shares(core, site, names)
    core.dedicated_time = [(begin - epoch, end - epoch) for begin, end in site.dedicated_time]
    numbers = {host.name: number for number, host in enumerate(site.able)}
    for each in site.reservations:
        held = [(numbers[name], _room(has)) for name, has in each.hosts.items() if name in numbers]
        core.add_reservation(each.start - epoch, each.end - epoch, held)
    return core


def _room(resources: Mapping[str, int]) -> tuple[int, int, int]:
    cpus, memory, gpus = (resources.get(name, 0) for name in _COUNTED)
    return cpus, memory, gpus


def _pools(site: PbsSite) -> list[str | None]:
    """Give whose hosts are together: nobody's, then those of each queue that has any."""
    return [None, *dict.fromkeys(host.queue for host in site.hosts if host.queue is not None)]


def _add_hosts(core: _core.PbsSite, site: PbsSite) -> None:
    hosts, pools = site.able, _pools(site)

    def sort_values(number: int) -> tuple[float, ...]:
        host = hosts[number]
        values = []
        for key, high in site.scheduler.node_sort_key:
            value = host.priority if key == "sort_priority" else host.resources.get(key, 0)
            values.append(-float(value) if high else float(value))
        return tuple(values)

    order = sorted(range(len(hosts)), key=sort_values)
    core.pools = [[at for at in order if hosts[at].queue == owner] for owner in pools]
    for host in hosts:
        core.add_host(_room(host.resources), pools.index(host.queue))


def _add_queues(core: _core.PbsSite, site: PbsSite) -> None:
    pools, server = _pools(site), site.server
    queues = []
    for queue in site.queues:
        made = _core.PbsQueue()
        made.priority, made.enabled, made.started = queue.priority, queue.enabled, queue.started
        made.dedicated = queue.name.startswith(site.scheduler.dedicated_prefix)
        made.depth = queue.backfill_depth
        defaults = {**server.resources_default, **queue.resources_default}
        made.default_soft = defaults.get("soft_walltime", 0)
        owners = (server, queue)
        made.least = [max(o.resources_min.get(name, 0) for o in owners) for name in LISTED]
        made.most = [min(o.resources_max.get(name, _NO_LIMIT) for o in owners) for name in LISTED]
        made.pool = pools.index(queue.name) if queue.name in pools else 0
        _tell_apart(made, site, queue)
        queues.append(made)
    core.queues = queues
    names = [queue.name for queue in site.queues]
    core.queue_of_partition = [names.index(part.name) for part in site.machine.slurm_partitions]
    numbers = range(len(names))
    order = sorted(numbers, key=lambda number: -site.queues[number].priority)
    levels = groupby(order, key=lambda number: site.queues[number].priority)
    core.levels = [list(same) for _, same in levels]


def _tell_apart(made: _core.PbsQueue, site: PbsSite, queue: PbsQueue) -> None:
    """Say what makes its jobs differ (``create_resresv_sets`` in job_info.cpp)."""
    made.apart = (
        bool(queue.limits.while_running[0] or queue.limits.max_run_res)
        or bool(queue.resources_available)
        or any(host.queue == queue.name for host in site.hosts)
        or made.dedicated
    )
    whose = [site.server.limits, *([queue.limits] if made.apart else [])]
    made.apart_by_user = any(limits.name_any("u") for limits in whose)
    made.apart_by_project = any(limits.name_any("p") for limits in whose)
    made.apart_by_soft = "soft_walltime" in site.scheduler.resources or any(
        "soft_walltime" in limits.max_run_res for limits in whose
    )


def _add_limits(core: _core.PbsSite, site: PbsSite, names: PbsNames) -> None:
    running: list[_core.PbsLimit] = []
    in_queue: list[_core.PbsLimit] = []
    waiting: list[_core.PbsLimit] = []
    for number, owner in enumerate(owners(site), start=-1):
        limits = owner.limits
        for found, jobs, resources in (
            (running, limits.max_run, limits.max_run_res),
            (in_queue, limits.max_queued, limits.max_queued_res),
            (waiting, limits.queued_jobs_threshold, limits.queued_jobs_threshold_res),
        ):
            found += _core_limits(number, -1, jobs, names)
            for name, by_whom in resources.items():
                if name in LISTED:
                    found += _core_limits(
                        number, LISTED.index(name), by_whom, names, if_asked=found is running
                    )
        running += [
            _core.PbsLimit(number, "o", LISTED.index(name), amount, {}, if_asked=True)
            for name, amount in owner.resources_available.items()
            if name in LISTED
        ]
    core.limits, core.limits_in_queue, core.limits_of_waiting = running, in_queue, waiting


def _core_limits(
    queue: int, what: int, limits: EntityLimits, names: PbsNames, *, if_asked: bool = False
) -> list[_core.PbsLimit]:
    found = []
    for kind in ("o", "u", "p"):
        mine = {
            who.partition(":")[2]: most
            for who, most in limits.items()
            if who.startswith(f"{kind}:")
        }
        if not mine:
            continue
        generic = mine.pop("PBS_GENERIC", None)
        if kind == "o":
            generic, mine = mine.get("PBS_ALL", generic), {}
        named = {names.code(kind, name): most for name, most in mine.items()}
        found.append(_core.PbsLimit(queue, kind, what, generic, named, if_asked))
    return found


def use_pbs_site(
    core: _core.Engine, site: PbsSite, epoch: int, names: PbsNames, *, record: bool
) -> None:
    """Let a core schedule as a site does, before any job is submitted.

    Parameters
    ----------
    record
        What jobs have of which nodes.
    """
    core.use_pbs(core_pbs_site(site, epoch, names), record)


def describe_for_pbs(core: _core.Engine, workload: Workload, names: PbsNames) -> None:
    """Tell the core what each job of a workload asks for, and whose it is, before submissions.

    Raises
    ------
    InputError
        If a job could never run, or says what is not modelled.
    """
    asked = workload.requests
    if asked is not None and asked.constraints is not None and (asked.constraints.codes >= 0).any():
        raise InputError(
            f"{workload.name}: jobs have constraints, which are not modelled under PBS: leave them"
            " out"
        )
    if workload.site_jobs is not None and workload.site_jobs.says_more_than_qos:
        raise InputError(
            f"{workload.name}: its jobs say what only Slurm knows (site_jobs): leave it out"
        )
    fitted = fit_requests(workload)
    check_all_fit(workload, fitted)
    for number, request in enumerate(fitted.requests):
        if refusal := refused_request(request):
            job = int(np.flatnonzero(fitted.request_of == number)[0])
            raise InputError(f"{workload.name}: job {workload.job_id[job]}: {refusal}")
        core.add_request(core_request(request))
    core.set_requests(fitted.request_of.astype(np.int64))
    rows = names.columns(workload.users, workload.projects, len(workload))
    core.describe_all_for_pbs(np.ascontiguousarray(rows))


def why_pbs_never(job: int) -> str:
    """Say why PBS never runs a job: the model has no word for each reason."""
    del job
    return _WHY_NEVER


def refused_request(request: Request) -> str | None:
    """Say what of a request is not modelled; ``None``: nothing."""
    if len(request.choices) > 1:
        return "it names several queues: a job of PBS has one"
    return None


def check_resources(resources: JobResources) -> None:
    """Refuse what PBS's jobs can't be asked here.

    Raises
    ------
    InputError
        Naming it.
    """
    for name in ("constraint", "node_groups", "reservation"):
        if getattr(resources, name):
            raise InputError(f"resources: {name} is not modelled under PBS: leave it out")
    if resources.slurm_partitions is not None and len(resources.slurm_partitions) > 1:
        raise InputError("resources: a job of PBS has one queue: name one")


def check_notes(site: PbsSite, *, known: bool) -> None:
    """Check that it is known of a snapshot whose jobs are, where that decides who starts.

    Raises
    ------
    InputError
        Naming what hangs on it.
    """
    if known:
        return
    limits = [each for owner in owners(site) for each in all_limits(owner.limits)]
    by_person = any(who.startswith(("u:", "p:")) for each in limits for who in each)
    if site.scheduler.fair_share or by_person:
        what = "fair share" if site.scheduler.fair_share else "limits of users or projects"
        raise InputError(
            f"the site has {what}, and the snapshot does not say whose its jobs are: take it of an"
            " engine (Snapshot.of), or give it what PBS tells of them (told)"
        )
