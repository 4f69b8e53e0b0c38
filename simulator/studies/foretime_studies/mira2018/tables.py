"""Tables of Mira's four weeks: logged waits beside simulated ones, and what tells them apart."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.time_units import HOUR_S
from foretime_sim.machines.bluegene.floor import places
from foretime_sim.policies.order import Order
from numpy.typing import NDArray

from foretime_studies.frame.tables import Cell, Column, StudyTable
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


def weeks_table(found: Mira2018) -> StudyTable:
    """Give what each week begins with, and how full the machine is."""
    rows: list[tuple[Cell, ...]] = []
    for week, done in zip(found.weeks, found.replays[Order.WFP], strict=True):
        moment = week.unix_start_time + week.begin
        day = datetime.datetime.fromtimestamp(moment, datetime.UTC).date()
        rows.append(
            (
                week.name,
                day.isoformat(),
                int(week.running.sum()),
                int(week.waiting.sum()),
                int((week.submit_time >= week.begin).sum()),
                int(week.scored.sum()),
                busy_share(week, week.start_time, found.machine),
                busy_share(week, done.start_time, found.machine),
                half_empty_s(week, week.start_time, found.machine) / HOUR_S,
                half_empty_s(week, done.start_time, found.machine) / HOUR_S,
            )
        )
    columns = (
        Column("log"),
        Column("from"),
        Column("running then", ",d"),
        Column("waiting then", ",d"),
        Column("submitted later", ",d"),
        Column("scored", ",d"),
        Column("busy, logged", ".1%"),
        Column("busy, WFP", ".1%"),
        Column("half empty, logged, h", ".1f"),
        Column("half empty, WFP, h", ".1f"),
    )
    note = "Half empty: hours in which jobs waited though less than half of the nodes was busy."
    return StudyTable("weeks", "The weeks", columns, tuple(rows), note)


def waits_table(found: Mira2018) -> StudyTable:
    """Give waits of each week and of all."""
    logged = found.waits(None)
    rows: list[tuple[Cell, ...]] = []
    for name, take in [
        *((week.name, slice(place, place + 1)) for place, week in enumerate(found.weeks)),
        ("all", slice(None)),
    ]:
        real = np.concatenate(logged[take])
        for order in (None, *ORDERS):
            wait = np.concatenate(found.waits(order)[take])
            alike = None if order is None else rank_correlation(real, wait)
            at_once = float((wait < AT_ONCE_S).mean())
            rows.append((name, NAMES[order], len(wait), *_in_hours(wait), at_once, alike))
    columns = (
        Column("log"),
        Column("waits"),
        Column("jobs", ",d"),
        Column("mean, h", ",.2f"),
        Column("median, h", ",.2f"),
        Column("p90, h", ",.2f"),
        Column("within a minute", ".0%"),
        Column("rank correlation", ".2f"),
    )
    note = "Rank correlation (Spearman) of each job's simulated wait with its logged one."
    return StudyTable("waits", "Waits", columns, tuple(rows), note)


def sizes_table(found: Mira2018) -> StudyTable:
    """Give waits by nodes."""
    nodes = np.concatenate([week.nodes[week.scored] for week in found.weeks])
    groups = [(f"{size:,}", nodes == size) for size in sorted(set(nodes.tolist()))]
    return _by_group(found, "sizes", "Waits by nodes", "nodes", groups, [])


def queues_table(found: Mira2018) -> StudyTable:
    """Give waits by queue, with where the queue's jobs really ran."""
    queues = np.concatenate([_scored(week.queues, week.scored) for week in found.weeks])
    hours = np.concatenate([week.requested_time[week.scored] for week in found.weeks]) / HOUR_S
    in_row_0 = np.concatenate(
        [_in_row_0(found, _scored(week.bgp_partitions, week.scored)) for week in found.weeks]
    )
    names = sorted(set(queues.tolist()), key=lambda name: -int((queues == name).sum()))
    groups = [(name, queues == name) for name in names]
    facts = [
        (Column("longest request, h", ".1f"), [float(hours[of].max()) for _, of in groups]),
        (Column("in row 0", ".0%"), [float(np.nanmean(in_row_0[of])) for _, of in groups]),
    ]
    return _by_group(found, "queues", "Waits by queue", "queue", groups, facts)


def bgp_partitions_table(found: Mira2018) -> StudyTable:
    """Give which bgp_partitions jobs of each size had, really and under WFP."""
    real = np.concatenate([_scored(week.bgp_partitions, week.scored) for week in found.weeks])
    ours = np.concatenate(
        [
            _scored(done.bgp_partitions, week.scored)
            for week, done in zip(found.weeks, found.replays[Order.WFP], strict=True)
        ]
    )
    nodes = np.concatenate([week.nodes[week.scored] for week in found.weeks])
    rows: list[tuple[Cell, ...]] = []
    for size in sorted(set(nodes.tolist())):
        of = nodes == size
        rows.append(
            (
                f"{size:,}",
                int(of.sum()),
                sum(part.nodes == size for part in found.machine.bgp_partitions),
                len(set(real[of].tolist())),
                len(set(ours[of].tolist())),
                float((real[of] == ours[of]).mean()),
                float(np.nanmean(_in_row_0(found, real[of]))),
                float(np.nanmean(_in_row_0(found, ours[of]))),
            )
        )
    columns = (
        Column("nodes"),
        Column("jobs", ",d"),
        Column("offered", "d"),
        Column("had, logged", "d"),
        Column("had, WFP", "d"),
        Column("the very same", ".0%"),
        Column("in row 0, logged", ".0%"),
        Column("in row 0, WFP", ".0%"),
    )
    note = "In row 0: jobs whose midplanes all stand in the first of the three rows of racks."
    return StudyTable("bgp_partitions", "Which bgp_partitions", columns, tuple(rows), note)


def rank_correlation(a: Int64Array, b: Int64Array) -> float:
    """Give Spearman's rank correlation; ties have their mean rank."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Int64Array) -> Float64Array:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Float64Array = (np.cumsum(count) - (count - 1) / 2)[place]
    return ranks


def _in_hours(wait: Int64Array) -> tuple[float, float, float]:
    mean, median, p90 = wait.mean(), np.median(wait), np.quantile(wait, 0.9)
    return float(mean) / HOUR_S, float(median) / HOUR_S, float(p90) / HOUR_S


def _by_group(
    found: Mira2018,
    key: str,
    title: str,
    heading: str,
    groups: Sequence[tuple[str, NDArray[np.bool_]]],
    facts: Sequence[tuple[Column, Sequence[float]]],
) -> StudyTable:
    """Give the mean and the 90th percentile of waits of each group of the scored jobs."""
    waits = {order: np.concatenate(found.waits(order)) for order in (None, *ORDERS)}
    columns = [Column(heading), Column("jobs", ",d"), *(column for column, _ in facts)]
    columns += [Column(f"{what}, {NAMES[order]}, h", ",.2f") for what in ("mean", "p90")
                for order in waits]  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for place, (name, of) in enumerate(groups):
        hours = [_in_hours(wait[of]) for wait in waits.values()]
        said = [values[place] for _, values in facts]
        means, p90s = [mean for mean, _, _ in hours], [p90 for _, _, p90 in hours]
        rows.append((name, int(of.sum()), *said, *means, *p90s))
    return StudyTable(key, title, tuple(columns), tuple(rows))


def _scored(names: Sequence[str], scored: NDArray[np.bool_]) -> NDArray[np.str_]:
    chosen: NDArray[np.str_] = np.array(names, dtype=np.str_)[scored]
    return chosen


def _in_row_0(found: Mira2018, names: NDArray[np.str_]) -> Float64Array:
    """Give 1 for each bgp_partition wholly in row 0, else 0; NaN for one that is not known."""
    stand = places(found.machine)
    inside = {
        part.name: float(all(stand[midplane].row == 0 for midplane in part.midplanes))
        for part in found.machine.bgp_partitions
    }
    return np.array([inside.get(name, np.nan) for name in names.tolist()], dtype=np.float64)
