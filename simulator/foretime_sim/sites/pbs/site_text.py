"""A site under PBS written as ``site.toml``, with what a person needs to know to change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.toml_keys import Key, lines_of, table_name
from foretime_sim.sites.numbered_names import runs_of
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import (
    PbsHost,
    PbsQueue,
    PbsReservation,
    PbsServer,
    PbsSite,
    ShareGroup,
    alike_neighbours,
)
from foretime_sim.sites.pbs.site_file import check_pbs_file
from foretime_sim.sites.pbs.tables import (
    AMOUNTS,
    FIRST_KEYS,
    GROUP_KEYS,
    HOST_KEYS,
    LIMIT_KEYS,
    QUEUE_KEYS,
    RESERVATION_KEYS,
    RUN_KEYS,
    SCHED_CONFIG_KEYS,
    SCHED_KEYS,
    SERVER_KEYS,
)
from foretime_sim.sites.site_parts import NOTHING, not_modelled_lines, tables_below, text_of

_HEAD = """\
# A site and what its scheduler goes by, for `foretime replay` and `simulate` (--site).
# Change it to ask "what if"; `foretime site check` says whether it holds together. What is left out
# has PBS's default. Times are texts, HH:MM:SS; sizes are texts such as "16gb"."""
_SERVER = """\
# Attributes of the server (qmgr). Limits are in the words of max_run: "[u:PBS_GENERIC=5]".
# scheduler_iteration is in seconds."""
_SCHED_CONFIG = """\
# sched_config; what is left out is as in the file that OpenPBS installs. Without strict_ordering
# there are no top jobs: a job that fits starts, whoever waits."""
_SCHED = """\
# Attributes of the scheduler (qmgr). opt_backfill_fuzzy: off, low, med, high or seconds."""
_QUEUES = """\
# Execution queues, in the server's order."""
_HOSTS = """\
# Hosts in the server's order; those that are alike from `name` to `last`. For more hosts raise
# `last`. Labels host and vnode are the host's own name if they are left out."""
_GROUPS = """\
# The fair-share tree: parent (root if left out), shares, and what was used so far (pbsfs -p)."""
_RESERVATIONS = """\
# Hosts that are set aside."""
_ALWAYS_IN_SCHED_CONFIG = ("by_queue", "round_robin", "strict_ordering", "fair_share")
"""What matters most is written in any case."""


def format_pbs_site(site: PbsSite) -> str:
    """Write a site under PBS as the TOML that `parse_site` reads.

    Raises
    ------
    InputError
        If the site contradicts itself, or has what no file can say: a limit of nobody.

    Examples
    --------
    >>> from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsSite
    >>> from foretime_sim.sites.site_file import format_site, parse_site
    >>> site = PbsSite((PbsHost("n1", {"ncpus": 8}),), (PbsQueue("workq"),))
    >>> parse_site(format_site(site), source="made") == site
    True
    """
    check_pbs_file(site)
    try:
        return text_of(
            [
                [_HEAD, 'scheduler = "pbs"', *_first(site)],
                [_SERVER, "[server]", *_server(site.server)],
                [_SCHED_CONFIG, "[sched_config]", *_sched_config(site.scheduler)],
                *_sched(site.scheduler),
                *tables_below(_QUEUES, site.queues, _queue),
                *tables_below(_HOSTS, _runs(site), _hosts),
                *_groups(site.share_groups),
                *tables_below(_RESERVATIONS, site.reservations, _reservation),
            ]
        )
    except ValueError as error:
        raise InputError(f"the site can't be written: {error}") from None


def _first(site: PbsSite) -> list[str]:
    always = {"version": FIRST_KEYS["version"]}
    rest = {name: key for name, key in FIRST_KEYS.items() if name not in always}
    return [
        *lines_of(site, always, NOTHING),
        *lines_of(site, rest, PbsSite(site.hosts, site.queues)),
        *not_modelled_lines(site.not_modelled),
    ]


def _server(server: PbsServer) -> list[str]:
    always = {"default_queue": SERVER_KEYS["default_queue"]}
    rest = {name: key for name, key in SERVER_KEYS.items() if name not in always}
    return [
        *lines_of(server, always, NOTHING),
        *lines_of(server, rest, PbsServer()),
        *lines_of(server.limits, LIMIT_KEYS, PbsLimits()),
    ]


def _sched_config(scheduler: PbsScheduler) -> list[str]:
    lines = []
    for name, key in SCHED_CONFIG_KEYS.items():
        unsaid = NOTHING if name in _ALWAYS_IN_SCHED_CONFIG else PbsScheduler()
        lines += lines_of(scheduler, {name: key}, unsaid)
    return lines


def _sched(scheduler: PbsScheduler) -> list[list[str]]:
    lines = lines_of(scheduler, SCHED_KEYS, PbsScheduler())
    return [[_SCHED, "[sched]", *lines]] if lines else []


def _queue(queue: PbsQueue) -> list[str]:
    return [
        f"[{table_name('queues', queue.name)}]",
        *lines_of(queue, QUEUE_KEYS, PbsQueue(queue.name)),
        *lines_of(queue.limits, LIMIT_KEYS, PbsLimits()),
    ]


def _runs(site: PbsSite) -> Iterator[tuple[PbsHost, PbsHost]]:
    """Give the first and the last of hosts that are alike and numbered."""
    for alike in alike_neighbours(site.hosts):
        begin = 0
        for count in runs_of([host.name for host in alike]):
            yield alike[begin], alike[begin + count - 1]
            begin += count


def _hosts(run: tuple[PbsHost, PbsHost]) -> list[str]:
    first, last = run
    names = {"name": first.name} | ({"last": last.name} if last is not first else {})
    described: dict[str, object] = {
        **names,
        "resources": first.resources,
        "labels": first.own_labels,
        "priority": first.priority or None,
        "queue": first.queue,
    }
    return ["[[hosts]]", *_lines(described, {**RUN_KEYS, **HOST_KEYS})]


def _lines(described: Mapping[str, object], keys: Mapping[str, Key]) -> list[str]:
    """Write the values that are there, and not empty."""
    return [
        f"{name} = {key.kind.write(value)}"
        for name, key in keys.items()
        if (value := described.get(key.attribute)) is not None and value != {}
    ]


def _groups(groups: tuple[ShareGroup, ...]) -> list[list[str]]:
    if not groups:
        return []
    lines = []
    for group in groups:
        said = lines_of(group, {"shares": GROUP_KEYS["shares"]}, NOTHING)
        rest = {name: key for name, key in GROUP_KEYS.items() if name != "shares"}
        said += lines_of(group, rest, ShareGroup(group.name))
        lines.append(f"{table_name(group.name)} = {{ {', '.join(said)} }}")
    return [[_GROUPS, "[resource_group]", *lines]]


def _reservation(reservation: PbsReservation) -> list[str]:
    where = ("reservations", reservation.name)
    times = {name: key for name, key in RESERVATION_KEYS.items() if name != "hosts"}
    return [
        f"[{table_name(*where)}]",
        *lines_of(reservation, times, NOTHING),
        "",
        f"[{table_name(*where, 'hosts')}]",
        *(f"{table_name(name)} = {AMOUNTS.write(has)}" for name, has in reservation.hosts.items()),
    ]
