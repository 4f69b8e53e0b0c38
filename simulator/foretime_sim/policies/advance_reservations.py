"""Advance reservations: processors claimed from outside for a fixed time, and a file of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S

from foretime_sim.files.compressed_files import read_text
from foretime_sim.machines.reservations import AdvanceReservation, NodeReservation
from foretime_sim.policies.policy import Policy

COLUMNS = ("start", "duration", "processors")


def check_node_reservations(
    reservations: Sequence[AdvanceReservation | NodeReservation], node_groups: Sequence[str]
) -> tuple[NodeReservation, ...]:
    """Check the reservations of a machine of nodes, and give them.

    Raises
    ------
    InputError
        Naming the first that is impossible.
    """
    checked = node_reservations(reservations)
    for claim in checked:
        if not 1 <= claim.duration <= LONGEST_S or abs(claim.start) > LONGEST_S:
            raise InputError(
                f"reservation {claim.name}: start {claim.start}, duration {claim.duration} s: give"
                " a duration of at least 1"
            )
        for name in claim.node_groups:
            if name not in node_groups:
                raise InputError(f"reservation {claim.name}: there is no group of nodes {name!r}")
    return checked


def node_reservations(
    reservations: Sequence[AdvanceReservation | NodeReservation],
) -> tuple[NodeReservation, ...]:
    """Give the reservations of a machine of nodes; InputError if one is of processors."""
    for number, claim in enumerate(reservations):
        if isinstance(claim, AdvanceReservation):
            raise InputError(
                f"advance reservation {number} is of a flat pool's processors, the machine has"
                " nodes: give a NodeReservation of groups of nodes"
            )
    return tuple(claim for claim in reservations if isinstance(claim, NodeReservation))


def of_processors(
    reservations: Sequence[AdvanceReservation | NodeReservation],
) -> tuple[AdvanceReservation, ...]:
    """Give the reservations of a flat pool; InputError if one is of nodes."""
    for claim in reservations:
        if isinstance(claim, NodeReservation):
            raise InputError(
                f"reservation {claim.name} is of groups of nodes: give processors, or a machine"
            )
    return tuple(claim for claim in reservations if isinstance(claim, AdvanceReservation))


def read_reservations(path: Path) -> tuple[AdvanceReservation, ...]:
    """Read a CSV file with the columns start, duration (seconds) and processors.

    Raises
    ------
    InputError
        Naming file, line and field.
    """
    text = read_text(path, what="CSV file")
    lines = csv.reader(io.StringIO(text, newline=""))
    try:
        header = [name.strip() for name in next(lines, [])]
        if sorted(header) != sorted(COLUMNS):
            raise InputError(
                f"{path}:1: the columns are {', '.join(header) or 'missing'}: give a first line"
                f" of {','.join(COLUMNS)}"
            )
        return tuple(
            _reservation(f"{path}:{lines.line_num}", dict(zip(header, row, strict=False)))
            for row in lines
            if row
        )
    except csv.Error as error:
        raise InputError(
            f"{path}:{lines.line_num}: not CSV: {error}; give lines of {','.join(COLUMNS)}"
        ) from None


def _reservation(where: str, fields: dict[str, str]) -> AdvanceReservation:
    def whole(name: str, least: int) -> int:
        text = fields.get(name, "").strip()
        try:
            value = int(text)
        except ValueError:
            raise InputError(f"{where}: {name} is {text!r}: give a whole number") from None
        if not least <= value <= LONGEST_S:
            raise InputError(f"{where}: {name} is {value}: it must be from {least} to {LONGEST_S}")
        return value

    return AdvanceReservation(
        whole("start", -LONGEST_S), whole("duration", 1), whole("processors", 1)
    )


def check_reservations(reservations: Sequence[AdvanceReservation], machine_processors: int) -> None:
    """Check that each claims something, and all together no more than the machine.

    Raises
    ------
    InputError
        Naming the first reservation (from 0) that is impossible.
    """
    changes: list[tuple[int, int, int]] = []
    for number, claim in enumerate(reservations):
        if not (1 <= claim.duration <= LONGEST_S and claim.processors >= 1):
            raise InputError(
                f"advance reservation {number}: duration {claim.duration} s,"
                f" {claim.processors} processors: give at least 1 of each"
            )
        if abs(claim.start) > LONGEST_S:
            raise InputError(f"advance reservation {number}: start {claim.start} is out of range")
        changes.append((claim.start, claim.processors, number))
        changes.append((claim.end, -claim.processors, number))
    claimed = 0
    for time, change, number in sorted(changes):  # ends before starts of the same second
        claimed += change
        if claimed > machine_processors:
            raise InputError(
                f"advance reservation {number}: {claimed} processors are claimed at {time} s, the"
                f" machine has {machine_processors}"
            )


def check_interval(policy: Policy, reservations: Sequence[AdvanceReservation]) -> None:
    """Check that a scheduling interval lets no job start after the second it is planned for.

    Raises
    ------
    InputError
        If there are reservations, around which every start is planned, and an interval.
    """
    if reservations and policy.scheduling_interval_s is not None:
        raise InputError(
            f"scheduling_interval_s is {policy.scheduling_interval_s}: around advance reservations"
            " jobs start at the very second they are planned for: leave one of the two out"
        )
