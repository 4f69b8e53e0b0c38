"""The report of Mira's four weeks."""

from __future__ import annotations

from foretime_studies.frame.report import StudyReport
from foretime_studies.mira2018.study import INTERVAL_S, Mira2018
from foretime_studies.mira2018.tables import tables


def report(found: Mira2018, command: str) -> StudyReport:
    """Make the report; ``command`` gives it again."""
    moved = sum(done.moved for done in found.replays[next(iter(found.replays))])
    machine = found.machine
    where = (
        f"{len(found.weeks)} weeks on {machine.name}: {machine.nodes:,} nodes, "
        f"{len(machine.bgp_partitions)} bgp_partitions."
    )
    how = (
        "Jobs are planned with what they asked for; the head job drains the bgp_partition that is "
        f"free first (Tang 2010, section II.C); the queue is looked at every {INTERVAL_S} s."
    )
    scored = (
        "Scored: jobs submitted in the seven days after the two that prepare the machine, without "
        "those of reservations' queues."
    )
    notes = [where, how, scored]
    if moved:
        notes.append(f"{moved} running at the beginning had a bgp_partition that is not there.")
    title = "Mira's four weeks of 2018 again"
    return StudyReport("mira2018", title, command, tuple(notes), tables(found))
