"""A `SlurmSite` of what the site's commands printed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from foretime_estimators.jobs.errors import ForetimeError, InputError
from foretime_sim.machines.machine import Machine, NodeGroup, Selection
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.sites.slurm.site_checks import check_site

from foretime_sidecar.clients.cluster import Cluster, ClusterNode
from foretime_sidecar.clients.slurm.control_texts import configuration_values
from foretime_sidecar.clients.slurm.nodes import parse_cluster
from foretime_sidecar.clients.slurm.release import slurm_release
from foretime_sidecar.clients.slurm.site import expand_nodes
from foretime_sidecar.queue.alike_nodes import alike_nodes, by_number, machine_partition, node_group
from foretime_sidecar.site_import.accounts import associations_of
from foretime_sidecar.site_import.columns import nothing, one_record_a_line, records_of
from foretime_sidecar.site_import.cut_cycles import as_deep_as_seen
from foretime_sidecar.site_import.node_names import compressed
from foretime_sidecar.site_import.not_modelled import note_nodes, note_partitions, note_settings
from foretime_sidecar.site_import.partition_rules import rules_of
from foretime_sidecar.site_import.quality_of_service import qos_of
from foretime_sidecar.site_import.record_fields import check_fields
from foretime_sidecar.site_import.reserved_nodes import moment, of_groups, reservations_of
from foretime_sidecar.site_import.scheduler_settings import (
    Settings,
    parameters_of,
    priority_of,
    site_settings,
)
from foretime_sidecar.site_import.site_output import ACCOUNTING, COMMANDS, SiteOutput
from foretime_sidecar.site_import.switches import switches_of

_LAST_KEY = "WaitTime"
"""One of the last that scontrol show config prints, in every release."""


@dataclass(frozen=True, slots=True)
class ImportedSite:
    """A site, and what its file says beside it.

    Attributes
    ----------
    site
        The site.
    remarks
        Names of the nodes of each group, as Slurm writes lists of them.
    """

    site: SlurmSite
    remarks: Mapping[str, str]


def import_site(output: SiteOutput, zone: tzinfo) -> ImportedSite:
    """Make a site of outputs.

    Parameters
    ----------
    output
        Saved, or of a live Slurm.
    zone
        Of times that are printed as dates.

    Raises
    ------
    InputError
        If an output is cut off, can't be read or contradicts another; names it and its command.
    """
    settings = _settings(output)
    version = slurm_release(settings.text("SLURM_VERSION"))
    if output.unread:
        settings.note(f"Files that were not read: {', '.join(output.unread)}.")
    nodes, partitions = _records(output)
    note_settings(settings)
    cluster = _cluster(output, settings, nodes, partitions)
    found = reservations_of(output, cluster, settings, zone)
    switches = switches_of(output, cluster, settings)
    lists = [each.nodes for each in found] + [each.nodes for each in switches]
    machine, groups_of, remarks = _machine(output, cluster, filter(None, lists))
    site_values = site_settings(settings)
    accounted = site_values["enforced"] or output.text("assoc")
    qos, associations = _accounting(output, settings, bool(accounted))
    if not associations:  # enforced without any, they would keep all jobs out
        site_values["enforced"] = frozenset()
    parameters = as_deep_as_seen(parameters_of(settings), output.text("sdiag"), settings)
    note_partitions(settings, partitions)
    note_nodes(settings, nodes)
    rules = rules_of(output, settings, partitions, machine, qos, associations)
    site = SlurmSite(
        machine=machine,
        version=(version[0], version[1]),
        parameters=parameters,
        priority=priority_of(settings),
        rules=rules,
        qos=qos,
        associations=_in_partitions(associations, machine, settings),
        reservations=tuple(of_groups(each, groups_of) for each in found if each.nodes),
        switches=tuple(each.of_groups(groups_of) for each in switches),
        licenses=_licenses(output, settings),
        usage_at=_moment(output, zone) if any(each.raw_usage for each in associations) else None,
        **site_values,
    )
    site = replace(site, not_modelled=tuple(settings.not_modelled))
    try:
        check_site(site)
    except InputError as error:
        raise InputError(f"the outputs contradict each other: {error}; save them again") from None
    return ImportedSite(site, remarks)


def _settings(output: SiteOutput) -> Settings:
    try:
        values = configuration_values(output.text("config"))
    except ForetimeError:
        raise output.fault("config", "it names no SLURM_VERSION: it is cut off") from None
    if output.text("config").startswith("Configuration data") and _LAST_KEY not in values:
        raise output.fault("config", f"it ends before {_LAST_KEY}: it is cut off")
    if re.match(r"\d+\.\d+", values["SLURM_VERSION"], re.ASCII) is None:
        raise output.fault("config", f"SLURM_VERSION is {values['SLURM_VERSION']!r}, no release")
    return Settings(values, output.sources.get("config", COMMANDS["config"]))


def _records(output: SiteOutput) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Give the fields of nodes and partitions; the texts become a record a line."""
    for kind, first in (
        ("nodes", "NodeName"),
        ("partitions", "PartitionName"),
        ("reservations", "ReservationName"),
    ):
        output.texts[kind] = one_record_a_line(output.text(kind), first)
        names = Counter(values[first] for values in records_of(output.text(kind)))
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise output.fault(kind, f"{first}={twice[0]} is there twice")
    nodes, partitions = records_of(output.text("nodes")), records_of(output.text("partitions"))
    known = {values["NodeName"] for values in nodes}
    there = {values["PartitionName"] for values in partitions}
    for values in nodes:
        check_fields(output, "nodes", f"node {values['NodeName']}", values)
        for name in filter(None, values.get("Partitions", "").split(",")):
            if not nothing(name) and name not in there:
                raise output.fault(
                    "partitions",
                    f"partition {name} of node {values['NodeName']} is not there: the output is cut"
                    " off, or without --all",
                )
    for values in partitions:
        check_fields(output, "partitions", f"partition {values['PartitionName']}", values)
        listed = values.get("Nodes", "(null)")
        missing = set() if nothing(listed) else expand_nodes(listed) - known
        if missing:
            first_missing = min(missing, key=by_number)
            raise output.fault(
                "nodes",
                f"node {first_missing} of partition {values['PartitionName']} is not there"
                f" ({len(missing)} such nodes): the output is cut off, or without --all and"
                " --future",
            )
    return nodes, partitions


def _cluster(
    output: SiteOutput,
    settings: Settings,
    nodes: Sequence[Mapping[str, str]],
    partitions: Sequence[Mapping[str, str]],
) -> Cluster:
    try:
        cluster = parse_cluster(
            output.text("nodes"), output.text("partitions"), output.text("config")
        )
    except ForetimeError as error:
        kind = "nodes" if not nodes else "partitions"
        raise output.fault(kind, str(error)) from None
    future = {each["NodeName"] for each in nodes if "FUTURE" in each["State"].upper()}
    if future:
        settings.note(f"Nodes in the state FUTURE are left out: {compressed(future)}.")
    unused = [
        each.name
        for each in cluster.nodes
        if not any(each.name in part.nodes for part in cluster.partitions)
    ]
    if unused:
        settings.note(f"Nodes in no partition are left out: {compressed(unused)}.")
    cluster = replace(
        cluster, nodes=tuple(each for each in cluster.nodes if each.name not in future)
    )
    off = [each.name for each in cluster.nodes if not each.takes_jobs]
    if off:
        settings.note(f"Nodes that take no jobs now are counted as if they did: {compressed(off)}.")
    without = [part.name for part in cluster.partitions if not part.nodes]
    if without:
        settings.note(f"Partitions without nodes are left out: {', '.join(without)}.")
    return replace(
        cluster.all_up(),
        partitions=tuple(part for part in cluster.all_up().partitions if part.nodes),
    )


def _machine(
    output: SiteOutput, cluster: Cluster, lists: Iterable[frozenset[str]]
) -> tuple[Machine, dict[frozenset[str], tuple[str, ...]], dict[str, str]]:
    """Give the machine, the groups of each list's nodes, and the nodes of each group."""
    lists = sorted(set(lists), key=sorted)
    groups: dict[str, NodeGroup] = {}
    names: dict[str, list[str]] = {}
    for alike in alike_nodes(cluster.nodes, cluster.partitions, lists):
        name = _free_name(alike[0], groups)
        groups[name] = node_group(name, alike)
        names[name] = [node.name for node in alike]

    def with_nodes(nodes: Iterable[str]) -> tuple[str, ...]:
        wanted = set(nodes)
        return tuple(name for name, members in names.items() if wanted & set(members))

    if not groups:
        raise InputError("no node is in a partition: there is nothing to schedule on")
    try:
        machine = Machine(
            tuple(groups.values()),
            tuple(
                machine_partition(part, with_nodes(part.nodes), cluster)
                for part in cluster.partitions
            ),
            Selection.CPU_MEMORY if cluster.counts_memory else Selection.CPU,
        )
    except InputError as error:
        raise output.fault("partitions", str(error)) from None
    remarks = {name: compressed(members) for name, members in names.items()}
    return machine, {nodes: with_nodes(nodes) for nodes in lists}, remarks


def _free_name(node: ClusterNode, taken: Iterable[str]) -> str:
    """Name a group after its first node, without the number."""
    stem = re.sub(r"[\d._-]+$", "", node.name) or "nodes"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def _moment(output: SiteOutput, zone: tzinfo) -> int | None:
    found = re.match(r"Configuration data as of (\S+)", output.text("config"))
    try:
        return moment(found[1], zone) if found else None
    except ValueError:
        return None


def _accounting(
    output: SiteOutput, settings: Settings, wanted: bool
) -> tuple[dict[str, Qos], tuple[Association, ...]]:
    """Read QOS and associations; without them nothing is enforced, and that is said."""
    if not wanted:
        return {}, ()
    missing = [kind for kind in ACCOUNTING if not output.text(kind)]
    if missing and len(missing) < len(ACCOUNTING):
        raise InputError(
            f"there is an output of {COMMANDS[_other(missing[0])]!r}, and none of"
            f" {COMMANDS[missing[0]]!r}: save both"
        )
    if missing:
        settings.note(
            "Accounts, QOS and their limits: no output of sacctmgr show assoc and qos was given, so"
            " AccountingStorageEnforce does not count."
        )
        return {}, ()
    qos = qos_of(output, settings)
    associations = associations_of(output, settings)
    for each in associations:
        for name in each.qos:
            if name not in qos:
                raise output.fault(
                    "qos",
                    f"QOS {name} of account {each.account} is not there: the output is cut off",
                )
    limits = [each.limits for each in qos.values()] + [each.limits for each in associations]
    if any(each.grp_tres_mins or each.grp_wall_s is not None for each in limits):
        settings.note(
            "GrpTRESMins and GrpWall: how much of them is used so far is not told, and is 0 here;"
            " add RawTRES and RawWall to the file (scontrol show assoc_mgr tells them, in minutes)."
        )
    return qos, associations


def _other(kind: str) -> str:
    return next(other for other in ACCOUNTING if other != kind)


def _in_partitions(
    associations: tuple[Association, ...], machine: Machine, settings: Settings
) -> tuple[Association, ...]:
    """Leave out associations with partitions that are gone."""
    known = {part.name for part in machine.slurm_partitions}
    gone = [
        each for each in associations if (each.slurm_partition or next(iter(known))) not in known
    ]
    if gone:
        settings.note(
            f"Associations with partitions that are not there are left out: {len(gone)}, such as"
            f" {gone[0].user} in {gone[0].slurm_partition}."
        )
    return tuple(each for each in associations if each not in gone)


def _licenses(output: SiteOutput, settings: Settings) -> dict[str, int]:
    found: dict[str, int] = {}
    if output.text("licenses"):
        for values in records_of(one_record_a_line(output.text("licenses"), "LicenseName")):
            name, count = values["LicenseName"], values.get("Total", "")
            if not count.isdecimal():
                raise output.fault("licenses", f"license {name}: Total is {count!r}, no number")
            if name in found:
                raise output.fault("licenses", f"license {name} is there twice")
            found[name] = int(count)
        return found
    for part in filter(None, settings.text("Licenses").split(",")):
        name, _, count = re.sub(r"[*=]", ":", part).partition(":")
        found[name] = int(count) if count.isdecimal() else 1
    return found
