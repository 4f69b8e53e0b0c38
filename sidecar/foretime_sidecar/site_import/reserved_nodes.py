"""Reservations of nodes, as ``scontrol show reservation`` tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

from foretime_sim.machines.reservations import NodeReservation

from foretime_sidecar.clients.cluster import Cluster
from foretime_sidecar.clients.slurm.site import expand_nodes
from foretime_sidecar.site_import.columns import nothing, records_of
from foretime_sidecar.site_import.node_names import compressed
from foretime_sidecar.site_import.record_fields import check_fields
from foretime_sidecar.site_import.scheduler_settings import Settings
from foretime_sidecar.site_import.site_output import SiteOutput

_REPEATING = ("HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY")
_MOVING = ("REPLACE", "REPLACE_DOWN", "FLEX", "MAGNETIC", "TIME_FLOAT")


@dataclass(frozen=True, slots=True)
class Reserved:
    """A reservation of nodes: name, epoch seconds of start and end, names of the nodes."""

    name: str
    start: int
    end: int
    nodes: frozenset[str]


def reservations_of(
    output: SiteOutput, cluster: Cluster, settings: Settings, zone: tzinfo
) -> list[Reserved]:
    """Read the reservations that have nodes of the cluster.

    Raises
    ------
    InputError
        If one lacks its times.
    """
    found = []
    known = {node.name: node for node in cluster.nodes}
    for values in records_of(output.text("reservations")):
        name = values["ReservationName"]
        try:
            start, end = (moment(values[key], zone) for key in ("StartTime", "EndTime"))
        except (KeyError, ValueError):
            raise output.fault(
                "reservations", f"reservation {name} lacks its times: the output is cut off"
            ) from None
        check_fields(output, "reservations", f"reservation {name}", values)
        text = values.get("Nodes", "(null)")
        nodes = frozenset() if nothing(text) else expand_nodes(text)
        flags = set(values.get("Flags", "").split(","))
        if not nodes & known.keys():
            settings.note(f"Reservation {name}: it has no nodes, and is left out.")
            continue
        if gone := nodes - known.keys():
            settings.note(f"Reservation {name}: its nodes {compressed(gone)} are not there.")
        cores = values.get("CoreCnt", "")
        if cores.isdecimal() and int(cores) < sum(known[n].cpus for n in nodes if n in known):
            has_threads = "ThreadsPerCore=1 " not in output.text("nodes")
            if not has_threads:
                settings.note(f"Reservation {name}: it has some cores of its nodes; here all.")
        whose = [
            f"{key}={values[key]}"
            for key in ("Users", "Accounts", "Groups", "QOS", "AllowedPartitions", "Licenses")
            if not nothing(values.get(key, ""))
        ]
        if whose:
            settings.note(f"Reservation {name}: any job that names it may use it ({whose[0]}).")
        if odd := [flag for flag in (*_REPEATING, *_MOVING) if flag in flags]:
            settings.note(f"Reservation {name}: {', '.join(odd)}.")
        if end > start:
            found.append(Reserved(name, start, end, frozenset(nodes & known.keys())))
    return found


def of_groups(
    each: Reserved, groups_of: Mapping[frozenset[str], tuple[str, ...]]
) -> NodeReservation:
    """Give a reservation of the machine's groups."""
    return NodeReservation(each.name, each.start, each.end - each.start, groups_of[each.nodes])


def moment(text: str, zone: tzinfo) -> int:
    """Read epoch seconds, or the site's date and time; ValueError if it is neither."""
    if text.isdecimal():
        return int(text)
    return round(datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=zone).timestamp())
