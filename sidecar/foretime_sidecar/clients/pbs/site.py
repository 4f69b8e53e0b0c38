"""A PBS site from what a server and its files say of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs_site import PbsHost, PbsQueue, PbsServer, PbsSite

from foretime_sidecar.clients.pbs.amounts import is_amount, parse_amount
from foretime_sidecar.clients.pbs.dedicated_time import parse_dedicated_times
from foretime_sidecar.clients.pbs.json_text import read_json
from foretime_sidecar.clients.pbs.qmgr_text import QmgrObject, parse_qmgr
from foretime_sidecar.clients.pbs.resource_group import parse_resource_group, parse_usage
from foretime_sidecar.clients.pbs.sched_config import parse_sched_config
from foretime_sidecar.clients.pbs.site_limits import SOFT, parse_limits

_AWAY = ("down", "offline", "unknown", "stale", "initializing", "provisioning", "maintenance")
_DAYS = ("weekday", "saturday", "sunday", "monday", "tuesday", "wednesday", "thursday", "friday")
_UNCOUNTED = ("host", "vnode", "arch", "hpcbp_enable")


def parse_site(
    print_server: str,
    pbsnodes: str,
    sched_config: str,
    *,
    print_sched: str = "",
    resource_group: str = "",
    pbsfs: str = "",
    dedicated_time: str = "",
    holidays: str = "",
) -> PbsSite:
    """Put a site together.

    Parameters
    ----------
    print_server, print_sched
        ``qmgr -c "print server"`` (with all queues) and ``qmgr -c "print sched default"``.
    pbsnodes
        ``pbsnodes -a -F json``.
    sched_config, resource_group, dedicated_time, holidays
        Files of PBS_HOME/sched_priv; empty: there is none.
    pbsfs
        ``pbsfs -p``.

    Raises
    ------
    InputError
        Naming what can't be read and where.
    SchedulerError
        If pbsnodes did not answer with PBS's JSON.
    """
    objects = parse_qmgr(print_server)
    server = next((each for each in objects if each.kind == "server"), None)
    if server is None:
        raise InputError('qmgr: no line "set server ...": give the output of "print server"')
    queues = [each for each in objects if each.kind == "queue"]
    sched: dict[str, str] = {}
    for each in parse_qmgr(print_sched):
        # qmgr leaves the name of the default scheduler out where it sets its attributes.
        if each.kind == "sched" and each.name in ("", "default"):
            sched |= each.attributes
    scheduler, left_out = parse_sched_config(sched_config, sched)
    hosts, version, of_hosts = parse_hosts(pbsnodes)
    spans = tuple(
        (span.start_time, span.end_time) for span in parse_dedicated_times(dedicated_time)
    )
    return PbsSite(
        hosts=hosts,
        queues=tuple(_queue(each) for each in queues if _is_execution(each)),
        server=_server(server, sched),
        scheduler=scheduler,
        share_groups=parse_resource_group(resource_group, parse_usage(pbsfs)),
        dedicated_time=tuple(sorted(spans)),
        version=version,
        not_modelled=(
            *left_out,
            *of_hosts,
            *_soft_limits([server, *queues]),
            *_of_queues(queues),
            *_of_server(server),
            *_primetime(holidays),
        ),
    )


def parse_hosts(text: str) -> tuple[tuple[PbsHost, ...], str, tuple[str, ...]]:
    """Read ``pbsnodes -a -F json``: vnodes that may run jobs, PBS's version, what is left out.

    Raises
    ------
    SchedulerError
        If it is not PBS's JSON.
    """
    reply = read_json(text, "pbsnodes -a -F json", "nodes")
    hosts, left_out, names = [], [], set()
    for name, node in reply.get("nodes", {}).items():
        if not isinstance(node, dict):
            continue
        if any(word in str(node.get("state", "")) for word in _AWAY):
            left_out.append(f"Host {name} is left out: its state is {node['state']}.")
            continue
        resources: dict[str, int] = {}
        labels: dict[str, str] = {}
        for resource, value in node.get("resources_available", {}).items():
            word = str(value)
            if resource not in _UNCOUNTED and is_amount(word):
                resources[resource] = parse_amount(word, f"pbsnodes: {name}: {resource}")
            else:
                labels[resource] = word
        if labels.get("host", name) in names:
            left_out.append(
                f"Vnode {name} shares the host {labels['host']} with another; chunks are not split"
                " over vnodes."
            )
        names.add(labels.get("host", name))
        priority = parse_amount(str(node.get("Priority", 0)), f"pbsnodes: {name}: Priority")
        hosts.append(PbsHost(name, resources, labels, priority, node.get("queue")))
        if str(node.get("sharing", "default_shared")) != "default_shared":
            left_out.append(f"Host {name}: sharing={node['sharing']}.")
    return tuple(hosts), str(reply.get("pbs_version", "")), tuple(left_out)


def _server(server: QmgrObject, sched: Mapping[str, str]) -> PbsServer:
    # The formula has moved from the server to the scheduler.
    formula = {name: value for name, value in sched.items() if name.startswith("job_sort_formula")}
    found = {**formula, **server.attributes}
    values: dict[str, Any] = dict(_resources(found, "server"))
    if "default_queue" in found:
        values["default_queue"] = found["default_queue"]
    if "backfill_depth" in found:
        values["backfill_depth"] = parse_amount(found["backfill_depth"], "server: backfill_depth")
    if "job_sort_formula" in found:
        values["job_sort_formula"] = found["job_sort_formula"]
    if "job_sort_formula_threshold" in found:
        values["job_sort_formula_threshold"] = _threshold(found["job_sort_formula_threshold"])
    if "scheduler_iteration" in found:
        every = parse_amount(found["scheduler_iteration"], "server: scheduler_iteration")
        values["scheduler_iteration_s"] = every
    return PbsServer(
        limits=parse_limits(found, "server"),
        eligible_time_enable=found.get("eligible_time_enable", "False") == "True",
        **values,
    )


def _threshold(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(f"job_sort_formula_threshold: {word!r} is no number") from None


def _queue(queue: QmgrObject) -> PbsQueue:
    found, where = queue.attributes, f"queue {queue.name}"
    depth = found.get("backfill_depth")
    return PbsQueue(
        queue.name,
        priority=parse_amount(found.get("Priority", "0"), f"{where}: Priority"),
        enabled=found.get("enabled", "False") == "True",
        started=found.get("started", "False") == "True",
        limits=parse_limits(found, where),
        backfill_depth=None if depth is None else parse_amount(depth, f"{where}: backfill_depth"),
        **_resources(found, where),
    )


def _resources(attributes: Mapping[str, str], where: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for kind in ("available", "min", "max", "default"):
        prefix = f"resources_{kind}."
        found[prefix[:-1]] = {
            name.removeprefix(prefix): parse_amount(value, f"{where}: {name}")
            for name, value in attributes.items()
            if name.startswith(prefix) and is_amount(value)
        }
    return found


def _is_execution(queue: QmgrObject) -> bool:
    return queue.attributes.get("queue_type", "Execution").lower().startswith("e")


def _soft_limits(owners: list[QmgrObject]) -> Iterator[str]:
    for owner in owners:
        for name in owner.attributes:
            if name.partition(".")[0] in SOFT:
                whose = " ".join(filter(None, (owner.kind, owner.name)))
                yield f"{whose}: the soft limit {name}, by which jobs may be preempted."


def _of_server(server: QmgrObject) -> Iterator[str]:
    if server.attributes.get("node_group_enable", "False") == "True":
        yield "Server: placement sets (node_group_enable)."


def _of_queues(queues: list[QmgrObject]) -> Iterator[str]:
    for queue in queues:
        if not _is_execution(queue):
            yield f"Queue {queue.name} is a routing queue; jobs must name the one they end in."
        if "node_group_key" in queue.attributes:
            yield f"Queue {queue.name}: placement sets (node_group_key)."


def _primetime(holidays: str) -> Iterator[str]:
    for line in holidays.splitlines():
        words = line.lower().split()
        always = words[1:3] == ["all", "none"]
        if words and words[0] in _DAYS and not always:
            yield "Primetime (holidays): what holds in primetime is taken for all times."
            return
