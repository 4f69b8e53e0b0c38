"""Tables of Mira's four weeks: logged waits beside simulated ones, and what tells them apart."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.time_units import HOUR_S
from foretime_sim.machines.bluegene.floor import places
from foretime_sim.policies.order import Order
from numpy.typing import NDArray

from foretime_studies.frame.tables import Row, Rows, StudyTable, study_table
from foretime_studies.mira2018.study import ORDERS, Mira2018, busy_share, half_empty_s

NAMES = {None: "logged", Order.WFP: "WFP", Order.FCFS: "FCFS"}
"""What the log and each order are called."""
AT_ONCE_S = 60
"""A job that waits less started as soon as it could."""


def tables(found: Mira2018) -> tuple[StudyTable, ...]:
    """Give every table of the study."""
    return (
        weeks_table(found),
        waits_table(found),
        sizes_table(found),
        queues_table(found),
        bgp_partitions_table(found),
    )


@study_table(
    "weeks",
    "The weeks",
    "Half empty: hours in which jobs waited though less than half of the nodes was busy.",
)
def weeks_table(found: Mira2018) -> Rows:
    """Give what each week begins with, and how full the machine is."""
    for week, done in zip(found.weeks, found.replays[Order.WFP], strict=True):
        moment = week.unix_start_time + week.begin
        day = datetime.datetime.fromtimestamp(moment, datetime.UTC).date()
        starts = {"logged": week.start_time, "WFP": done.start_time}
        yield [
            ("log", week.name),
            ("from", day.isoformat()),
            ("running then", int(week.running.sum()), ",d"),
            ("waiting then", int(week.waiting.sum()), ",d"),
            ("submitted later", int((week.submit_time >= week.begin).sum()), ",d"),
            ("scored", int(week.scored.sum()), ",d"),
            *(
                (f"busy, {name}", busy_share(week, start, found.machine), ".1%")
                for name, start in starts.items()
            ),
            *(
                (
                    f"half empty, {name}, h",
                    half_empty_s(week, start, found.machine) / HOUR_S,
                    ".1f",
                )
                for name, start in starts.items()
            ),
        ]


@study_table(
    "waits",
    "Waits",
    "Rank correlation (Spearman) of each job's simulated wait with its logged one.",
)
def waits_table(found: Mira2018) -> Rows:
    """Give waits of each week and of all."""
    logged = found.waits(None)
    weeks = {week.name: slice(place, place + 1) for place, week in enumerate(found.weeks)}
    for name, take in {**weeks, "all": slice(None)}.items():
        real = np.concatenate(logged[take])
        for order in (None, *ORDERS):
            wait = np.concatenate(found.waits(order)[take])
            alike = None if order is None else rank_correlation(real, wait)
            mean, median, p90 = _in_hours(wait)
            yield [
                ("log", name),
                ("waits", NAMES[order]),
                ("jobs", len(wait), ",d"),
                ("mean, h", mean, ",.2f"),
                ("median, h", median, ",.2f"),
                ("p90, h", p90, ",.2f"),
                ("within a minute", float((wait < AT_ONCE_S).mean()), ".0%"),
                ("rank correlation", alike, ".2f"),
            ]


def sizes_table(found: Mira2018) -> StudyTable:
    """Give waits by nodes."""
    nodes = found.scored("nodes")
    groups = {f"{size:,}": nodes == size for size in sorted(set(nodes.tolist()))}
    return _by_group(found, "sizes", "Waits by nodes", "nodes", groups, lambda of: [])


def queues_table(found: Mira2018) -> StudyTable:
    """Give waits by queue, with where the queue's jobs really ran."""
    queues = found.scored("queues")
    hours = found.scored("requested_time") / HOUR_S
    in_row_0 = _in_row_0(found, found.scored("bgp_partitions"))
    names = sorted(set(queues.tolist()), key=lambda name: -int((queues == name).sum()))

    def facts(of: NDArray[np.bool_]) -> Row:
        return [
            ("longest request, h", float(hours[of].max()), ".1f"),
            ("in row 0", float(np.nanmean(in_row_0[of])), ".0%"),
        ]

    groups = {name: queues == name for name in names}
    return _by_group(found, "queues", "Waits by queue", "queue", groups, facts)


@study_table(
    "bgp_partitions",
    "Which partitions",
    "In row 0: jobs whose midplanes all stand in the first of the three rows of racks.",
)
def bgp_partitions_table(found: Mira2018) -> Rows:
    """Give which bgp_partitions jobs of each size had, really and under WFP."""
    real = found.scored("bgp_partitions")
    ours = np.concatenate(
        [
            np.array(done.bgp_partitions)[week.scored]
            for week, done in zip(found.weeks, found.replays[Order.WFP], strict=True)
        ]
    )
    nodes = found.scored("nodes")
    for size in sorted(set(nodes.tolist())):
        of = nodes == size
        offered = sum(part.nodes == size for part in found.machine.bgp_partitions)
        yield [
            ("nodes", f"{size:,}"),
            ("jobs", int(of.sum()), ",d"),
            ("offered", offered, "d"),
            ("had, logged", len(set(real[of].tolist())), "d"),
            ("had, WFP", len(set(ours[of].tolist())), "d"),
            ("the very same", float((real[of] == ours[of]).mean()), ".0%"),
            ("in row 0, logged", float(np.nanmean(_in_row_0(found, real[of]))), ".0%"),
            ("in row 0, WFP", float(np.nanmean(_in_row_0(found, ours[of]))), ".0%"),
        ]


def rank_correlation(a: Int64Array, b: Int64Array) -> float:
    """Give Spearman's rank correlation; ties have their mean rank."""
    return float(np.corrcoef(pd.Series(a).rank(), pd.Series(b).rank())[0, 1])


def _in_hours(wait: Int64Array) -> tuple[float, float, float]:
    mean, median, p90 = wait.mean(), np.median(wait), np.quantile(wait, 0.9)
    return float(mean) / HOUR_S, float(median) / HOUR_S, float(p90) / HOUR_S


def _by_group(
    found: Mira2018,
    key: str,
    title: str,
    heading: str,
    groups: Mapping[str, NDArray[np.bool_]],
    facts: Callable[[NDArray[np.bool_]], Row],
) -> StudyTable:
    """Give the mean and the 90th percentile of waits of each group of the scored jobs."""
    waits = {NAMES[order]: np.concatenate(found.waits(order)) for order in (None, *ORDERS)}
    rows: list[Row] = []
    for name, of in groups.items():
        hours = {who: _in_hours(wait[of]) for who, wait in waits.items()}
        means: Row = [(f"mean, {who}, h", mean, ",.2f") for who, (mean, _, _) in hours.items()]
        p90s: Row = [(f"p90, {who}, h", p90, ",.2f") for who, (_, _, p90) in hours.items()]
        rows.append([(heading, name), ("jobs", int(of.sum()), ",d"), *facts(of), *means, *p90s])
    return StudyTable.of(key, title, rows)


def _in_row_0(found: Mira2018, names: NDArray[np.str_]) -> Float64Array:
    """Give 1 for each bgp_partition wholly in row 0, else 0; NaN for one that is not known."""
    stand = places(found.machine)
    inside = {
        part.name: float(all(stand[midplane].row == 0 for midplane in part.midplanes))
        for part in found.machine.bgp_partitions
    }
    return np.array([inside.get(name, np.nan) for name in names.tolist()], dtype=np.float64)
