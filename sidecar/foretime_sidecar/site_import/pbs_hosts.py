"""Hosts of a PBS site, of what ``pbsnodes`` prints."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs.site import OWN_NAME, PbsHost

from foretime_sidecar.clients.pbs.amounts import is_amount, parse_amount, parse_whole_number
from foretime_sidecar.clients.pbs.json_text import read_json
from foretime_sidecar.site_import.node_names import compressed
from foretime_sidecar.site_import.site_output import PBS

_GONE = "stale"
"""Of a vnode that its MoM no longer tells of."""
_AWAY = ("down", "offline", "unknown", "initializing", "provisioning", "maintenance", "sleep")
_WHOLE = ("ncpus", "ngpus")
_COUNTED = ("mem", "vmem")
_UNCOUNTED = (*OWN_NAME, "arch", "hpcbp_enable")
DEFAULT_PARTITION = "pbs-default"
"""Of hosts and queues of the default scheduler, if they name any."""


def hosts_of(
    text: str,
) -> tuple[tuple[PbsHost, ...], str, int, tuple[str, ...]]:
    """Read ``pbsnodes -a -F json``.

    Returns
    -------
    tuple
        Vnodes that may run jobs, PBS's version, when it was asked (epoch seconds, 0 if it does not
        say), and sentences on what is left out.

    Raises
    ------
    SchedulerError
        If it is not PBS's JSON.
    InputError
        If a vnode is none or is there twice, or a priority or an amount is no number.
    """
    reply = read_json(text, PBS["hosts"], "nodes")
    _check_once(text)
    nodes = reply["nodes"]
    for name, node in nodes.items():
        _check_object(name, node)
        _check_object(f"{name}: resources_available", _resources(node))
    kept = {name: node for name, node in nodes.items() if _is_here(node)}
    hosts = tuple(_host(name, node) for name, node in kept.items())
    moment = reply.get("timestamp")
    return (
        hosts,
        str(reply.get("pbs_version") or ""),
        moment if isinstance(moment, int) else 0,
        tuple(_left_out(nodes, hosts)),
    )


def _host(name: str, node: Mapping[str, Any]) -> PbsHost:
    resources: dict[str, int] = {}
    labels: dict[str, str] = {}
    for resource, value in _resources(node).items():
        word = str(value)
        if resource in _WHOLE:
            resources[resource] = parse_whole_number(word, f"{name}: {resource}", least=0)
        elif resource in _COUNTED or (resource not in _UNCOUNTED and is_amount(word)):
            resources[resource] = parse_amount(word, f"{name}: {resource}")
        else:
            labels[resource] = word
    priority = parse_whole_number(str(node.get("Priority", 0)), f"{name}: Priority")
    queue = node.get("queue")
    return PbsHost(name, resources, labels, priority, None if queue is None else str(queue))


def _resources(node: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = node.get("resources_available", {})
    return found


def _check_object(what: str, told: object) -> None:
    if not isinstance(told, dict):
        raise InputError(f"{what} is {str(told)[:80]!r}: that is nothing of a vnode's")


def _check_once(text: str) -> None:
    """Refuse JSON that has a vnode, or something of it, twice: the last would count alone."""

    def checked(pairs: list[tuple[str, Any]]) -> None:
        seen = set[str]()
        for name, _ in pairs:
            if name in seen:
                raise InputError(f"{name} is there twice")
            seen.add(name)

    with contextlib.suppress(ValueError):  # JSON of old releases, which was read line by line
        json.loads(text, strict=False, object_pairs_hook=checked)


def _states(node: Mapping[str, Any]) -> str:
    return str(node.get("state", ""))


def _is_ours(node: Mapping[str, Any]) -> bool:
    return str(node.get("partition", DEFAULT_PARTITION)) == DEFAULT_PARTITION


def _is_here(node: Mapping[str, Any]) -> bool:
    return _is_ours(node) and _GONE not in _states(node)


def _left_out(nodes: Mapping[str, Mapping[str, Any]], hosts: tuple[PbsHost, ...]) -> Iterator[str]:
    def named(which: Callable[[Mapping[str, Any]], bool], sentence: str) -> Iterator[str]:
        if names := [name for name, node in nodes.items() if which(node)]:
            yield sentence.format(compressed(names))

    yield from named(
        lambda node: _GONE in _states(node), "Vnodes in the state stale are left out: {}."
    )
    yield from named(
        lambda node: not _is_ours(node), "Hosts of another scheduler's partition are left out: {}."
    )
    yield from named(
        lambda node: _is_here(node) and any(word in _states(node) for word in _AWAY),
        "Hosts that take no jobs now are counted as if they did: {}.",
    )
    yield from named(
        lambda node: str(node.get("sharing", "default_shared")) != "default_shared",
        "Hosts with another sharing than default_shared give themselves as others do: {}.",
    )
    # A machine's first vnode has nothing where the others share out what the machine has.
    working = {nodes[host.name].get("Mom") for host in hosts if host.resources.get("ncpus")}
    without = [
        host.name
        for host in hosts
        if not host.resources.get("ncpus") and nodes[host.name].get("Mom", "") not in working
    ]
    if without:
        yield f"Hosts without ncpus run no jobs: {compressed(without)}."
    names: dict[str, list[str]] = {}
    for host in hosts:
        names.setdefault(host.labels["host"], []).append(host.name)
    together = [name for vnodes in names.values() if len(vnodes) > 1 for name in vnodes]
    if together:
        yield (
            f"Vnodes that share a host: {compressed(together)}; chunks are not split over vnodes."
        )
