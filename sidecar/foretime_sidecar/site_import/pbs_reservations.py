"""Reservations of a PBS site, of what ``pbs_rstat -f`` prints."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, tzinfo

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs.site import PbsReservation

from foretime_sidecar.clients.pbs.json import RESERVATIONS_OVER, reservation_values
from foretime_sidecar.clients.pbs.select import vnodes_of


def reservations_of(
    text: str, zone: tzinfo | None, hosts: Collection[str]
) -> Iterator[PbsReservation | str]:
    """Give confirmed reservations, and sentences on those that are left out.

    Parameters
    ----------
    text
        What was printed.
    zone
        Of its dates; ``None``: this machine's.
    hosts
        Names of the site's.

    Raises
    ------
    InputError
        If the times of one can't be read.
    """
    for name, values in reservation_values(text):
        if values.get("reserve_state") in RESERVATIONS_OVER:
            continue
        try:
            start = _moment(values["reserve_start"], zone)
            end = _moment(values["reserve_end"], zone)
        except (KeyError, ValueError, OverflowError) as error:
            raise InputError(f"{name}: its times can't be read: {error}") from None
        has = vnodes_of(values.get("resv_nodes", ""), name)
        known = {host: amounts for host, amounts in has.items() if host in hosts}
        if known and has.keys() - known:
            gone = ", ".join(sorted(has.keys() - known))
            yield f"Reservation {name}: its hosts {gone} are not here."
        if not known or end <= start:
            yield f"Reservation {name} is left out: it has no hosts that are here."
            continue
        yield PbsReservation(name, start, end, known)


def _moment(text: str, zone: tzinfo | None) -> int:
    if text.isascii() and text.isdecimal():
        return int(text)
    date = datetime.strptime(text, "%a %b %d %H:%M:%S %Y")  # noqa: DTZ007 - it has none
    return int(date.replace(tzinfo=zone).timestamp())
