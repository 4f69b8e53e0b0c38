"""A site under PBS read from its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.near_names import nearest
from foretime_sim.files.toml_keys import Key, values_of
from foretime_sim.sites.numbered_names import names_between
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import (
    PbsHost,
    PbsQueue,
    PbsReservation,
    PbsServer,
    PbsSite,
    ShareGroup,
)
from foretime_sim.sites.pbs.tables import (
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
from foretime_sim.sites.site_parts import (
    NOT_MODELLED,
    check_known,
    listed_tables,
    named_tables,
    table_of,
)

PBS_TABLES = frozenset({"server", "sched_config", "sched", "queues", "hosts", "resource_group"})
"""Tables that no file of a site under Slurm has."""
_KNOWN = (
    "scheduler", *FIRST_KEYS, *NOT_MODELLED, "server", "sched_config", "sched", "queues", "hosts",
    "resource_group", "reservations",
)  # fmt: skip


def pbs_site_of(tables: Mapping[str, Any]) -> PbsSite:
    """Make a site of the tables of its file.

    Raises
    ------
    InputError
        Naming table, key and value.
    """
    check_known(tables, _KNOWN)
    first_keys = {**FIRST_KEYS, **NOT_MODELLED}
    first = {name: tables[name] for name in first_keys if name in tables}
    scheduler = values_of(table_of(tables, "sched_config"), SCHED_CONFIG_KEYS, "[sched_config]")
    scheduler |= values_of(table_of(tables, "sched"), SCHED_KEYS, "[sched]")
    site = PbsSite(
        hosts=tuple(_hosts(tables)),
        queues=tuple(
            PbsQueue(name, **_limited(table, QUEUE_KEYS, where))
            for name, table, where in named_tables(tables, "queues")
        ),
        server=PbsServer(**_limited(table_of(tables, "server"), SERVER_KEYS, "[server]")),
        scheduler=PbsScheduler(**scheduler),
        share_groups=tuple(
            ShareGroup(name, **values_of(table, GROUP_KEYS, where))
            for name, table, where in named_tables(tables, "resource_group")
        ),
        reservations=tuple(
            PbsReservation(name, **values_of(table, RESERVATION_KEYS, where, RESERVATION_KEYS))
            for name, table, where in named_tables(tables, "reservations")
        ),
        **values_of(first, first_keys, "above the tables"),
    )
    check_pbs_file(site)
    return site


def check_pbs_file(site: PbsSite) -> None:
    """Refuse a site that nothing can run on, or whose default queue is not there.

    Raises
    ------
    InputError
        Naming table, key and value.
    """
    queues = [queue.name for queue in site.queues]
    if site.server.default_queue not in queues:
        raise InputError(
            f"[server]: default_queue: there is no queue {site.server.default_queue!r}"
            f"{nearest(site.server.default_queue, queues)}"
        )
    site.machine  # noqa: B018 - it names what can't be one


def _limited(table: Any, keys: Mapping[str, Key], where: str) -> dict[str, Any]:  # noqa: ANN401 - TOML's
    values = values_of(table, {**keys, **LIMIT_KEYS}, where)
    limits = {name: values.pop(name) for name in LIMIT_KEYS if name in values}
    return {**values, "limits": PbsLimits(**limits)}


def _hosts(tables: Mapping[str, Any]) -> Iterator[PbsHost]:
    for number, table in enumerate(listed_tables(tables, "hosts"), 1):
        where = f"[[hosts]] number {number}"
        values = values_of(table, {**RUN_KEYS, **HOST_KEYS}, where, ("name",))
        first, last = values.pop("name"), values.pop("last", None)
        try:
            names = [first] if last is None else names_between(first, last)
        except ValueError as error:
            raise InputError(f"{where}: last is {last!r}: {error}") from None
        for name in names:
            yield PbsHost(name, **{"resources": {}, **values})
