"""A site under Slurm read from its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foretime_sim.files.toml_keys import Key, values_of
from foretime_sim.machines.machine import Machine, SlurmPartition
from foretime_sim.machines.machine_file import read_groups, read_selection, read_tables
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.sites.site_parts import (
    NOT_MODELLED,
    check_known,
    listed_tables,
    named_tables,
    table_of,
)
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.scheduler_words import KEYS as WORDS
from foretime_sim.sites.slurm.scheduler_words import with_defaults
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.sites.slurm.site_checks import ROOT, check_site
from foretime_sim.sites.slurm.site_tables import (
    ACCOUNT_KEYS,
    ASSOCIATION_LIMITS,
    CONF_KEYS,
    COUNT,
    FIRST_KEYS,
    PARTITION_KEYS,
    PRIORITY_KEYS,
    QOS_KEYS,
    QOS_LIMITS,
    RESERVATION_KEYS,
    RULES_KEYS,
    SWITCH_KEYS,
    TIMING_KEYS,
    USER_KEYS,
)
from foretime_sim.sites.slurm.switches import Switch

_TABLES = (
    "slurm", "priority", "licenses", "node_groups", "partitions", "qos", "accounts",
    "associations", "reservations", "switches",
)  # fmt: skip
_KNOWN = ("scheduler", *FIRST_KEYS, "selection", "not_modelled", *_TABLES)


def slurm_site_of(tables: Mapping[str, Any]) -> SlurmSite:
    """Make a site of the tables of its file.

    Raises
    ------
    InputError
        Naming table, key and value.
    """
    site = _site(tables)
    check_site(site)
    return site


def _site(tables: Mapping[str, Any]) -> SlurmSite:
    check_known(tables, _KNOWN)
    first_keys = {**FIRST_KEYS, **NOT_MODELLED}
    first = {name: tables[name] for name in first_keys if name in tables}
    slurm = dict(table_of(tables, "slurm"))
    words = slurm.pop("SchedulerParameters", {})
    conf = values_of(slurm, {**CONF_KEYS, **TIMING_KEYS}, "[slurm]")
    loops = {key.attribute for key in TIMING_KEYS.values()} & conf.keys()
    parameters = with_defaults(values_of(words, WORDS, "[slurm.SchedulerParameters]"))
    parts = read_tables(tables, "partitions", {**PARTITION_KEYS, **RULES_KEYS}, ("node_groups",))
    of_machine = {key.attribute for key in PARTITION_KEYS.values()}
    rules = {name: PartitionRules(**_without(values, of_machine)) for name, values in parts}
    return SlurmSite(
        machine=Machine(
            read_groups(tables),
            tuple(SlurmPartition(name, **_only(values, of_machine)) for name, values in parts),
            read_selection(tables),
        ),
        parameters=SlurmParameters(**parameters, **_only(conf, loops)),
        priority=SlurmPriority(
            **values_of(table_of(tables, "priority"), PRIORITY_KEYS, "[priority]")
        ),
        rules={name: each for name, each in rules.items() if each != PartitionRules()},
        qos={
            name: Qos(name, **values)
            for name, values in _limited(tables, "qos", QOS_KEYS, QOS_LIMITS)
        },
        associations=(*_accounts(tables), *_users(tables)),
        reservations=tuple(
            NodeReservation(name, **values_of(table, RESERVATION_KEYS, where, RESERVATION_KEYS))
            for name, table, where in named_tables(tables, "reservations")
        ),
        switches=tuple(
            Switch(name, **values_of(table, SWITCH_KEYS, where))
            for name, table, where in named_tables(tables, "switches")
        ),
        licenses=_licenses(table_of(tables, "licenses")),
        **_without(conf, loops),
        **values_of(first, first_keys, "above the tables"),
    )


def _only(values: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}


def _without(values: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _limited(
    tables: Mapping[str, Any], kind: str, keys: Mapping[str, Key], limits: Mapping[str, Key]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give names and values of the tables ``[kind.NAME]`` that have limits."""
    for name, table, where in named_tables(tables, kind):
        yield name, _with_limits(values_of(table, {**keys, **limits}, where), limits)


def _with_limits(values: dict[str, Any], limits: Mapping[str, Key]) -> dict[str, Any]:
    names = {key.attribute for key in limits.values()}
    return {**_without(values, names), "limits": Limits(**_only(values, names))}


def _accounts(tables: Mapping[str, Any]) -> Iterator[Association]:
    for name, values in _limited(tables, "accounts", ACCOUNT_KEYS, ASSOCIATION_LIMITS):
        above = None if name == ROOT else ROOT
        yield Association(name, **{"parent": above, **values})


def _users(tables: Mapping[str, Any]) -> Iterator[Association]:
    for number, table in enumerate(listed_tables(tables, "associations"), 1):
        where = f"[[associations]] number {number}"
        keys = {**USER_KEYS, **ASSOCIATION_LIMITS}
        yield Association(
            **_with_limits(values_of(table, keys, where, ("User", "Account")), ASSOCIATION_LIMITS)
        )


def _licenses(table: Mapping[str, Any]) -> dict[str, int]:
    keys = {name: Key(name, COUNT, "licenses") for name in table}
    return values_of(dict(table), keys, "[licenses]")
