"""A site's file as tables, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

from foretime_sim.files.toml_keys import MOMENT, format_time
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.site_file import Site
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.releases import release_text
from foretime_sim.sites.slurm.scheduler_words import KEYS as WORDS
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.sites.slurm.site_tables import (
    ASSOCIATION_LIMITS,
    CONF_KEYS,
    PRIORITY_KEYS,
    QOS_KEYS,
    QOS_LIMITS,
    RULES_KEYS,
    TIMING_KEYS,
)
from foretime_sim.sites.slurm.uncounted import notes_on
from rich.console import Group, RenderableType
from rich.table import Table

from foretime_sidecar.cli.reports.machine_tables import group_table, partition_table, plain_table
from foretime_sidecar.cli.reports.pbs_site_report import (
    pbs_site_report,
    pbs_summary,
)
from foretime_sidecar.cli.reports.settings_in_words import in_words, said_of
from foretime_sidecar.wording.counts import counted


def site_report(site: Site) -> Group:
    """Give what a site's file says: what differs from the defaults, and its tables."""
    if isinstance(site, PbsSite):
        return pbs_site_report(site)
    parts: list[RenderableType] = [_settings(site), "", group_table(site.machine), ""]
    parts += [partition_table(site.machine), ""]
    for table in (_rules(site), _qos(site), _accounts(site), _reservations(site)):
        if table is not None:
            parts += [table, ""]
    return Group(*parts)


def summary(site: Site) -> str:
    """Say in a line how large a site is."""
    if isinstance(site, PbsSite):
        return pbs_summary(site)
    users = {each.user for each in site.associations if each.user is not None}
    accounts = sum(1 for each in site.associations if each.user is None)
    said = [
        counted(site.machine.nodes, "node"),
        counted(site.machine.cpus, "CPU"),
        counted(len(site.machine.slurm_partitions), "partition"),
        f"{len(site.qos)} QOS",
        counted(accounts, "account"),
        counted(len(users), "user"),
    ]
    return f"Slurm {release_text(site.version)}: {', '.join(said)}"


def not_modelled_lines(site: Site) -> Iterator[str]:
    """Give what of a site is not modelled, a line each below a heading."""
    sentences = site.not_modelled
    if isinstance(site, SlurmSite):
        sentences = (*notes_on(site), *sentences)
    if sentences:
        yield "Not modelled:"
    for sentence in sentences:
        yield f"  - {sentence}"


def refusals(site: Site) -> list[str]:
    """Say what of a site a simulation refuses, and what to change in its file."""
    # The engine is loaded only here: the other commands start without it.
    from foretime_sim.engine.site_refusals import site_refusals

    return site_refusals(site)


def refusal_lines(site: Site) -> Iterator[str]:
    """Give what of a site a simulation refuses, a line each below a heading."""
    said = refusals(site)
    if said:
        yield "A simulation refuses the site as it is:"
    for sentence in said:
        yield f"  - {sentence}."


def _settings(site: SlurmSite) -> Table:
    table = plain_table("What differs from Slurm's defaults")
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    for described, keys, unsaid in (
        (site, CONF_KEYS, SlurmSite(Machine.flat(1))),
        (site.parameters, {**TIMING_KEYS, **WORDS}, SlurmParameters()),
        (site.priority, PRIORITY_KEYS, SlurmPriority()),
    ):
        for name, value in said_of(described, keys, unsaid):
            table.add_row(name, value)
    for name, count in site.licenses.items():
        table.add_row(f"licenses {name}", str(count))
    return table


def _rules(site: SlurmSite) -> Table | None:
    table = plain_table("Rules of partitions")
    table.add_column("name", overflow="fold")
    table.add_column("rules", overflow="fold")
    for part in site.machine.slurm_partitions:
        words = in_words(site.rules_of(part.name), RULES_KEYS, PartitionRules())
        if words:
            table.add_row(part.name, words)
    return table if table.row_count else None


def _qos(site: SlurmSite) -> Table | None:
    table = plain_table("QOS")
    table.add_column("name", overflow="fold")
    table.add_column("what it has and allows", overflow="fold")
    for name, qos in site.qos.items():
        own = in_words(qos, QOS_KEYS, Qos(name))
        limits = in_words(qos.limits, QOS_LIMITS, Limits())
        table.add_row(name, "; ".join(filter(None, (own, limits))))
    return table if site.qos else None


def _accounts(site: SlurmSite) -> Table | None:
    table = plain_table("Accounts")
    table.add_column("account", overflow="fold")
    for name in ("shares", "usage", "users"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("limits", overflow="fold")
    users: dict[str, int] = {}
    for each in site.associations:
        if each.user is not None:
            users[each.account] = users.get(each.account, 0) + 1
    accounts = {each.account: each for each in site.associations if each.user is None}
    for each, depth in _as_tree(accounts):
        table.add_row(
            "  " * depth + each.account,
            "parent" if each.shares is None else str(each.shares),
            f"{each.raw_usage:,.0f}",
            str(users.get(each.account, 0)),
            in_words(each.limits, ASSOCIATION_LIMITS, Limits()),
        )
    return table if table.row_count else None


def _as_tree(accounts: Mapping[str, Association]) -> Iterator[tuple[Association, int]]:
    """Give the accounts, those below one after it, and how deep each is."""
    below: dict[str | None, list[Association]] = {}
    for each in accounts.values():
        below.setdefault(each.parent, []).append(each)
    left = [(each, 0) for each in reversed(below.get(None, []))]
    while left:
        each, depth = left.pop()
        yield each, depth
        left += [(child, depth + 1) for child in reversed(below.get(each.account, []))]


def _reservations(site: SlurmSite) -> Table | None:
    table = plain_table("Reservations")
    for name in ("name", "start", "duration", "node groups"):
        table.add_column(name, overflow="fold")
    for each in site.reservations:
        start = MOMENT.write(each.start).replace("T", " ")
        table.add_row(each.name, start, format_time(each.duration), ", ".join(each.node_groups))
    return table if site.reservations else None


def as_json(value: object) -> object:
    """Give a site, or a part of it, as what JSON knows; times are in seconds."""
    if is_dataclass(value):
        shown = [each.name for each in fields(value) if each.repr]
        return {name: as_json(getattr(value, name)) for name in shown}
    if isinstance(value, Mapping):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_json(each) for each in value]
    return getattr(value, "value", value)
