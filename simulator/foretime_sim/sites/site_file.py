"""A site as one TOML file that people read and change: ``site.toml``.

It is where one asks "what if": 200 more nodes, a bf_window of a week, another weight. Settings have
Slurm's own names and units; what is left out has Slurm's default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.near_names import nearest
from foretime_sim.files.toml_keys import NAMES, Key, values_of
from foretime_sim.files.toml_text import parse_toml
from foretime_sim.machines.machine import Machine, SlurmPartition
from foretime_sim.machines.machine_file import read_groups, read_selection, read_tables
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.sites.scheduler_words import KEYS as WORDS
from foretime_sim.sites.scheduler_words import with_defaults
from foretime_sim.sites.site_checks import ROOT, check_site
from foretime_sim.sites.site_tables import (
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
from foretime_sim.sites.site_text import format_site
from foretime_sim.sites.slurm_limits import Association, Limits, Qos
from foretime_sim.sites.slurm_parameters import SlurmParameters
from foretime_sim.sites.slurm_priority import SlurmPriority
from foretime_sim.sites.slurm_site import PartitionRules, SlurmSite
from foretime_sim.sites.slurm_switches import Switch

__all__ = ["format_site", "parse_site", "read_site"]

_TABLES = (
    "slurm", "priority", "licenses", "node_groups", "partitions", "qos", "accounts",
    "associations", "reservations", "switches",
)  # fmt: skip
_KNOWN = ("scheduler", *FIRST_KEYS, "selection", "not_modelled", *_TABLES)


def read_site(path: Path | str) -> SlurmSite:
    """Read a site's file.

    Raises
    ------
    InputError
        If the file can't be read, says something impossible or contradicts itself; names file,
        table, key and value.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim.sites.site_file import read_site
    >>> text = '''
    ... [slurm.SchedulerParameters]
    ... bf_window = 10080  # minutes
    ... [node_groups.cpu]
    ... nodes = 24
    ... cpus = 32
    ... [partitions.main]
    ... node_groups = ["cpu"]
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "site.toml"
    ...     _ = path.write_text(text)
    ...     site = read_site(path)
    >>> site.machine.cpus, site.parameters.bf_window
    (768, 604800)
    """
    return parse_site(read_text(Path(path), what="site.toml"), source=str(path))


def parse_site(text: str, *, source: str) -> SlurmSite:
    """Make a site of the text of a TOML file; see `read_site`."""
    tables = parse_toml(text, source)
    try:
        site = _site(tables)
        check_site(site)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return site


def _site(tables: Mapping[str, Any]) -> SlurmSite:
    scheduler = tables.get("scheduler", "slurm")
    if scheduler != "slurm":
        raise InputError(f"scheduler is {scheduler!r}: only sites under slurm are read; give slurm")
    for name in tables:
        if name not in _KNOWN:
            raise InputError(f"{name!r} is unknown{nearest(name, _KNOWN)}")
    first_keys = {**FIRST_KEYS, "not_modelled": Key("not_modelled", NAMES, "sentences")}
    first = {name: tables[name] for name in first_keys if name in tables}
    slurm = dict(_table(tables, "slurm"))
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
            **values_of(_table(tables, "priority"), PRIORITY_KEYS, "[priority]")
        ),
        rules={name: each for name, each in rules.items() if each != PartitionRules()},
        qos={
            name: Qos(name, **values)
            for name, values in _limited(tables, "qos", QOS_KEYS, QOS_LIMITS)
        },
        associations=(*_accounts(tables), *_users(tables)),
        reservations=tuple(
            NodeReservation(name, **values_of(table, RESERVATION_KEYS, where, RESERVATION_KEYS))
            for name, table, where in _named(tables, "reservations")
        ),
        switches=tuple(
            Switch(name, **values_of(table, SWITCH_KEYS, where))
            for name, table, where in _named(tables, "switches")
        ),
        licenses=_licenses(_table(tables, "licenses")),
        **_without(conf, loops),
        **values_of(first, first_keys, "above the tables"),
    )


def _only(values: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}


def _without(values: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"{name} is {table!r}: make it a table [{name}]")
    return table


def _named(tables: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any, str]]:
    """Give the tables ``[kind.NAME]``: name, table, and what errors call it."""
    for name, table in _table(tables, kind).items():
        yield name, table, f"[{kind}.{name}]"


def _limited(
    tables: Mapping[str, Any], kind: str, keys: Mapping[str, Key], limits: Mapping[str, Key]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give names and values of the tables ``[kind.NAME]`` that have limits."""
    for name, table, where in _named(tables, kind):
        yield name, _with_limits(values_of(table, {**keys, **limits}, where), limits)


def _with_limits(values: dict[str, Any], limits: Mapping[str, Key]) -> dict[str, Any]:
    names = {key.attribute for key in limits.values()}
    return {**_without(values, names), "limits": Limits(**_only(values, names))}


def _accounts(tables: Mapping[str, Any]) -> Iterator[Association]:
    for name, values in _limited(tables, "accounts", ACCOUNT_KEYS, ASSOCIATION_LIMITS):
        above = None if name == ROOT else ROOT
        yield Association(name, **{"parent": above, **values})


def _users(tables: Mapping[str, Any]) -> Iterator[Association]:
    found = tables.get("associations", [])
    if not isinstance(found, list):
        raise InputError(f"associations is {found!r}: make it tables [[associations]]")
    for number, table in enumerate(found, 1):
        where = f"[[associations]] number {number}"
        keys = {**USER_KEYS, **ASSOCIATION_LIMITS}
        yield Association(
            **_with_limits(values_of(table, keys, where, ("User", "Account")), ASSOCIATION_LIMITS)
        )


def _licenses(table: Mapping[str, Any]) -> dict[str, int]:
    keys = {name: Key(name, COUNT, "licenses") for name in table}
    return values_of(dict(table), keys, "[licenses]")
