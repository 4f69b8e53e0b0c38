"""A `PbsSite` of what the site's commands printed, and of the files of its scheduler."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Any, TypeVar

from foretime_estimators.jobs.errors import ForetimeError, InputError
from foretime_sim.sites.pbs.site import PbsReservation, PbsSite
from foretime_sim.sites.pbs.site_file import check_pbs_file

from foretime_sidecar.clients.pbs.dedicated_time import parse_dedicated_times
from foretime_sidecar.clients.pbs.qmgr_text import QmgrObject, parse_qmgr, scheduler_attributes
from foretime_sidecar.clients.pbs.resource_group import (
    parse_resource_group,
    parse_usage,
    parse_usage_times,
)
from foretime_sidecar.clients.pbs.sched_config import parse_sched_config
from foretime_sidecar.site_import.pbs_hosts import hosts_of
from foretime_sidecar.site_import.pbs_not_modelled import (
    is_of_another,
    of_fair_share,
    of_files,
    of_holidays,
    of_hooks,
    of_objects,
)
from foretime_sidecar.site_import.pbs_queues import (
    is_execution,
    queue_of,
    server_of,
    where_unnamed_jobs_go,
)
from foretime_sidecar.site_import.pbs_reservations import reservations_of
from foretime_sidecar.site_import.site_output import SiteOutput

Read = TypeVar("Read")
_OF_FAIR_SHARE = ("resource_group", "usage")


def import_pbs_site(
    output: SiteOutput, zone: tzinfo | None, zone_of_commands: tzinfo | None
) -> PbsSite:
    """Make a site of outputs.

    Parameters
    ----------
    output
        Saved, or of a live PBS.
    zone
        Of dates in the scheduler's files; ``None``: this machine's.
    zone_of_commands
        Of dates that commands print.

    Raises
    ------
    InputError
        If an output is cut off, can't be read or contradicts another; names it and its command.
    """

    def read(name: str, parse: Callable[[str], Read]) -> Read:
        try:
            return parse(output.text(name))
        except ForetimeError as error:
            raise output.fault(name, str(error)) from None

    server, queues = read("server", _objects)
    sched = read("sched", scheduler_attributes)
    scheduler, of_config = read("sched_config", lambda text: parse_sched_config(text, sched))
    hosts, version, now, of_hosts = read("hosts", hosts_of)
    ours = [queue for queue in queues if not is_of_another(queue)]
    default, where = read("server", lambda _: where_unnamed_jobs_go(server, ours))
    names = frozenset(host.name for host in hosts)
    found = read("rstat", lambda text: list(reservations_of(text, zone_of_commands, names)))
    spans = parse_dedicated_times(output.text("dedicated_time"), zone)
    usage = read("usage", parse_usage)
    usage_at, decayed_at = parse_usage_times(output.text("usage"))
    values: dict[str, Any] = {
        "queues": read(
            "server", lambda _: tuple(queue_of(each) for each in ours if is_execution(each))
        ),
        "server": read("server", lambda _: server_of(server, sched, default)),
        "usage_at": usage_at,
        "decayed_at": decayed_at,
        "share_groups": read("resource_group", lambda text: parse_resource_group(text, usage)),
        # The file that PBS installs has days of 1998.
        "dedicated_time": tuple(
            sorted((span.start_time, span.end_time) for span in spans if span.end_time > now)
        ),
        "reservations": tuple(
            each for each in found if isinstance(each, PbsReservation) and each.end > now
        ),
        "not_modelled": (
            *of_config,
            *of_hosts,
            *of_objects(server, queues, sched),
            *([where] if where else []),
            *(each for each in found if isinstance(each, str)),
            *(
                of_fair_share(output.text("resource_group"), output.text("usage"))
                if scheduler.fair_share
                else ()
            ),
            *of_hooks(output.text("hooks")),
            *of_holidays(output.text("holidays")),
            *of_files(output),
        ),
    }
    try:
        site = PbsSite(hosts, scheduler=scheduler, version=version, **values)
        check_pbs_file(site)
    except InputError as error:
        raise InputError(f"the outputs contradict each other: {error}; save them again") from None
    return site


def _objects(text: str) -> tuple[QmgrObject, list[QmgrObject]]:
    objects = parse_qmgr(text)
    server = next((each for each in objects if each.kind == "server"), None)
    if server is None:
        raise InputError('there is no line "set server ...": it is cut off')
    return server, [each for each in objects if each.kind == "queue"]
