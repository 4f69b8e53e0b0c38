"""What in a site contradicts itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.toml_keys import table_name
from foretime_sim.sites.site_names import check_no_circle, check_there
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.sites.slurm.switches import in_a_circle

ROOT = "root"
"""The account above all."""


def check_site(site: SlurmSite) -> None:
    """Refuse a site that contradicts itself.

    Raises
    ------
    InputError
        Naming table, key and value as in a site's file, and what to do.
    """
    _check_qos(site)
    _check_partitions(site)
    _check_accounts(site)
    _check_users(site)
    _check_reservations(site)
    _check_switches(site)
    for name, count in site.licenses.items():
        if count < 0:
            raise InputError(f"[licenses]: {name} is {count}: give 0 or more")


def _there(where: str, key: str, names: Iterable[str], known: Collection[str], what: str) -> None:
    for name in names:
        check_there(f"{where}: {key}", name, known, what)


def _check_qos(site: SlurmSite) -> None:
    for name, qos in site.qos.items():
        where = f"[{table_name('qos', name)}]"
        _there(where, "Preempt", qos.preempt, site.qos, "QOS")
        if name != qos.name:
            raise InputError(f"{where}: it is named {qos.name!r}: give both one name")


def _check_partitions(site: SlurmSite) -> None:
    partitions = {part.name for part in site.machine.slurm_partitions}
    _there("[partitions]", "rules", site.rules, partitions, "partition")
    accounts = {each.account for each in site.associations}
    for name, rules in site.rules.items():
        where = f"[{table_name('partitions', name)}]"
        _there(where, "QOS", [rules.qos] if rules.qos else [], site.qos, "QOS")
        part = site.machine.slurm_partitions[site.machine.partition_index(name)]
        if part.max_time_s is not None and (rules.default_time_s or 0) > part.max_time_s:
            raise InputError(f"{where}: DefaultTime is longer than MaxTime: shorten it")
        if part.default_memory_per_cpu_mib and rules.default_memory_per_node_mib:
            raise InputError(f"{where}: it has DefMemPerCPU and DefMemPerNode: give one of them")
        for allowed, denied, what, key, known in (
            (rules.allow_qos, rules.deny_qos, "QOS", "QOS", site.qos),
            (rules.allow_accounts, rules.deny_accounts, "account", "Accounts", accounts),
        ):
            if known:
                _there(where, f"Allow{key}", sorted(allowed or ()), known, what)
                _there(where, f"Deny{key}", sorted(denied or ()), known, what)


def _check_accounts(site: SlurmSite) -> None:
    parents: dict[str, str | None] = {}
    for each in site.associations:
        if each.user is not None:
            continue
        where = f"[{table_name('accounts', each.account)}]"
        if not each.account:
            raise InputError(f"{where}: the account has no name: give it one")
        if each.account in parents:
            raise InputError(f"{where}: the account is there twice: give it once")
        if each.slurm_partition is not None or each.default:
            raise InputError(f"{where}: Partition and Default are for users: leave them out")
        if (each.account == ROOT) != (each.parent is None):
            raise InputError(f"{where}: Parent is {each.parent!r}: all but root have a parent")
        parents[each.account] = each.parent
    for account, parent in parents.items():
        where = f"[{table_name('accounts', account)}]"
        _there(where, "Parent", [parent] if parent else [], parents, "account")
    check_no_circle("accounts", "Parent", parents)


def _check_users(site: SlurmSite) -> None:
    accounts = {each.account for each in site.associations if each.user is None}
    partitions = {part.name for part in site.machine.slurm_partitions}
    seen: set[tuple[str, str | None, str | None]] = set()
    defaults: dict[str, str] = {}
    for each in site.associations:
        where = where_of(each)
        _there(where, "QOS", each.qos, site.qos, "QOS")
        if each.default_qos is not None:
            _there(where, "DefaultQOS", [each.default_qos], site.qos, "QOS")
            if each.default_qos not in each.qos:
                raise InputError(
                    f"{where}: DefaultQOS is {each.default_qos!r}, which is not in QOS: add it"
                )
        if each.user is None:
            continue
        if not each.user:
            raise InputError(f"{where}: User is empty: name a user")
        _there(where, "Account", [each.account], accounts, "account")
        named = [each.slurm_partition] if each.slurm_partition is not None else []
        _there(where, "Partition", named, partitions, "partition")
        if each.parent is not None:
            raise InputError(f"{where}: Parent is for accounts: leave it out")
        key = (each.account, each.user, each.slurm_partition)
        if key in seen:
            raise InputError(f"{where}: the association is there twice: give it once")
        seen.add(key)
        if each.default and defaults.setdefault(each.user, each.account) != each.account:
            raise InputError(
                f"{where}: Default: {defaults[each.user]} is the default account of {each.user},"
                " too: mark one of them"
            )


def where_of(each: Association) -> str:
    """Say of which table an association is, as errors call it."""
    if each.user is None:
        return f"[{table_name('accounts', each.account)}]"
    there = f", Partition {each.slurm_partition}" if each.slurm_partition is not None else ""
    return f"[[associations]] of User {each.user}, Account {each.account}{there}"


def _check_reservations(site: SlurmSite) -> None:
    groups = {group.name for group in site.machine.node_groups}
    names = set()
    for each in site.reservations:
        where = f"[{table_name('reservations', each.name)}]"
        _there(where, "node_groups", each.node_groups, groups, "group")
        if not each.node_groups:
            raise InputError(f"{where}: node_groups is empty: name at least one group of nodes")
        if each.duration < 1:
            raise InputError(f"{where}: duration is {each.duration} s: give 1 s or more")
        if each.name in names:
            raise InputError(f"{where}: the reservation is there twice: give it once")
        names.add(each.name)


def _check_switches(site: SlurmSite) -> None:
    groups = {group.name for group in site.machine.node_groups}
    names = [each.name for each in site.switches]
    for number, each in enumerate(site.switches):
        where = f"[{table_name('switches', each.name)}]"
        if each.name in names[:number]:
            raise InputError(f"{where}: the switch is there twice: give it once")
        if each.node_groups and each.switches:
            raise InputError(f"{where}: it has node_groups and Switches: give it one of them")
        _there(where, "node_groups", each.node_groups, groups, "group")
        _there(where, "Switches", each.switches, names, "switch")
    if circle := in_a_circle(site.switches):
        raise InputError(
            f"[{table_name('switches', circle[0])}]: Switches: {', '.join(circle)} go in a circle:"
            " a switch must not be below itself"
        )
