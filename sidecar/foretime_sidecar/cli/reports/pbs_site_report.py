"""The file of a site under PBS as tables."""

from __future__ import annotations

from collections.abc import Iterator

from foretime_sim.files.toml_keys import MOMENT
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsQueue, PbsServer, PbsSite, ShareGroup
from foretime_sim.sites.pbs.tables import (
    LIMIT_KEYS,
    QUEUE_KEYS,
    SCHED_CONFIG_KEYS,
    SCHED_KEYS,
    SERVER_KEYS,
)
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foretime_sidecar.cli.reports.machine_tables import group_table, plain_table
from foretime_sidecar.cli.reports.settings_in_words import in_words, said_of
from foretime_sidecar.wording.counts import counted


def pbs_site_report(site: PbsSite) -> Group:
    """Give what a site's file says: what differs from PBS's defaults, and its tables."""
    parts: list[RenderableType] = [_settings(site), "", group_table(site.machine), ""]
    for table in (_queues(site), _shares(site), _set_aside(site)):
        if table is not None:
            parts += [table, ""]
    return Group(*parts)


def pbs_summary(site: PbsSite) -> str:
    """Say in a line how large a site is."""
    said = [
        counted(len(site.hosts), "host"),
        counted(site.machine.cpus, "CPU"),
        counted(len(site.queues), "queue"),
        f"{len(site.share_groups):,} in the fair-share tree",
    ]
    return f"PBS {site.version}: {', '.join(said)}"


def _settings(site: PbsSite) -> Table:
    table = plain_table("What differs from PBS's defaults")
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    for described, keys, unsaid in (
        (site.server, SERVER_KEYS, PbsServer()),
        (site.server.limits, LIMIT_KEYS, PbsLimits()),
        (site.scheduler, {**SCHED_CONFIG_KEYS, **SCHED_KEYS}, PbsScheduler()),
    ):
        for name, value in said_of(described, keys, unsaid):
            table.add_row(name, Text(value))
    return table


def _queues(site: PbsSite) -> Table:
    table = plain_table("Queues")
    table.add_column("name", overflow="fold")
    table.add_column("what it has and allows", overflow="fold")
    for queue in site.queues:
        own = in_words(queue, QUEUE_KEYS, PbsQueue(queue.name))
        limits = in_words(queue.limits, LIMIT_KEYS, PbsLimits())
        marks = "default" if queue.name == site.server.default_queue else ""
        # As they are: [u:PBS_GENERIC=5] would be markup.
        table.add_row(Text(queue.name), Text("; ".join(filter(None, (marks, own, limits)))))
    return table


def _shares(site: PbsSite) -> Table | None:
    table = plain_table("Shares")
    table.add_column("name", overflow="fold")
    for name in ("shares", "usage"):
        table.add_column(name, justify="right", no_wrap=True)
    for group, depth in _as_tree(site.share_groups):
        table.add_row(Text("  " * depth + group.name), str(group.shares), f"{group.usage:,.0f}")
    return table if site.share_groups else None


def _as_tree(groups: tuple[ShareGroup, ...]) -> Iterator[tuple[ShareGroup, int]]:
    """Give the groups, those below one after it, and how deep each is."""
    names = {group.name for group in groups}
    below: dict[str, list[ShareGroup]] = {}
    for group in groups:
        below.setdefault(group.parent, []).append(group)
    tops = [name for name in below if name not in names]
    left = [(group, 0) for name in reversed(tops) for group in reversed(below[name])]
    while left:
        group, depth = left.pop()
        yield group, depth
        left += [(child, depth + 1) for child in reversed(below.get(group.name, []))]


def _set_aside(site: PbsSite) -> Table | None:
    table = plain_table("Set aside")
    for name in ("what", "start", "end", "hosts"):
        table.add_column(name, overflow="fold")
    spans = [("dedicated time", *span, "") for span in site.dedicated_time]
    spans += [(each.name, each.start, each.end, str(len(each.hosts))) for each in site.reservations]
    for name, start, end, hosts in spans:
        moments = (MOMENT.write(moment).replace("T", " ") for moment in (start, end))
        table.add_row(name, *moments, hosts)
    return table if spans else None
