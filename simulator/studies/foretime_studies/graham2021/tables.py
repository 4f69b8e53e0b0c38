"""Tables of Graham's noons: the published network's figures beside ours, and what holds."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_sim.scores.intervals import RESAMPLES, Interval, Weeks
from foretime_sim.waits.block_sums import Blocks, Figure
from foretime_sim.waits.forecaster import LEVELS, MEDIAN, WaitForecasts
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.scores.bound_tightness import tightness
from foretime_sim.waits.scores.coverage_slices import coverage_slices
from foretime_sim.waits.wait_scores import ForecastOutcomes, scores
from foretime_sim.workloads.labels import Labels

from foretime_studies.frame.published import published
from foretime_studies.frame.tables import Column, NotedRows, Row, Rows, StudyTable, study_table
from foretime_studies.graham2021.columns import FUTURE, PUBLISHED_FUTURE
from foretime_studies.graham2021.forests import Told
from foretime_studies.graham2021.study import GAP_DAYS, Graham2021

PUBLISHED = published(__package__, "published")["published network"]
_SEED = 1


def tables(found: Graham2021) -> tuple[StudyTable, ...]:
    """Give every table of the study."""
    return (
        published_table(found),
        days_table(found),
        online_table(found),
        bounds_table(found),
        slices_table(found),
        ablations_table(found),
        future_table(),
    )


def near_published(found: Graham2021, told: Told, blocks: Blocks) -> tuple[Figure, ...]:
    """Score medians as the published network was: of all waits, no time being too short."""
    error = np.abs(np.log10(np.maximum(told.forecasts.wait_s[:, MEDIAN], 1)) - np.log10(
        found.polls.wait_s[told.rows]
    ))  # fmt: skip
    return (
        blocks.mean(error <= np.log10(2)),
        blocks.mean(error <= np.log10(3)),
        blocks.mean(error**2),
    )


def day_blocks(found: Graham2021, rows: Int64Array) -> Blocks:
    """Make blocks of days for rows of a few polls."""
    days, day = np.unique(found.polls.poll_time[rows], return_inverse=True)
    rng = np.random.default_rng([_SEED, len(days)])
    draws = rng.multinomial(len(days), np.full(len(days), 1 / len(days)), size=RESAMPLES)
    return Blocks(Weeks(0, draws.astype(np.float64)), day.astype(np.int64))


def week_blocks(found: Graham2021, rows: Int64Array) -> Blocks:
    """Make blocks of weeks, by when jobs were asked about."""
    polled = found.polls.poll_time[rows]
    return Blocks.of(Weeks.of(polled, _SEED), polled)


def outcomes(found: Graham2021, told: Told) -> ForecastOutcomes:
    """Give a method's forecasts with what came of them."""
    wait_s = found.polls.wait_s[told.rows]
    none = np.zeros(len(wait_s), dtype=np.bool_)
    polled = found.polls.poll_time[told.rows]
    return ForecastOutcomes(told.rows, polled, wait_s, none, told.forecasts)


_NEAR = (
    ("[t/2, 2t]", "95%", ".1%"),
    ("[t/3, 3t]", "95% ", ".1%"),
    ("squared log10 error", " 95%", ".3f"),
)
"""Headings of the published scores and of their intervals, and the scores' form."""


def _near(found: Graham2021, told: Told, blocks: Blocks) -> Row:
    """Give the published scores of a method, with intervals."""
    writers = (_shares, _shares, _numbers)
    scored = zip(_NEAR, near_published(found, told, blocks), writers, strict=True)
    return [
        entry
        for (title, of_interval, form), figure, write in scored
        for entry in ((title, figure.value, form), (of_interval, write(figure.interval)))
    ]


def _shares(interval: Interval | None) -> str:
    return "" if interval is None else f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def _numbers(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"


@study_table("published", "The published test")
def published_table(found: Graham2021) -> NotedRows:
    """Give the published network's figures, ours and the baselines' on the same jobs."""
    asked = found.published_rows
    blocks = day_blocks(found, asked)
    printed = [
        entry
        for title, of_interval, form in _NEAR
        for entry in ((title, PUBLISHED[title], form), (of_interval, ""))
    ]

    def row(method: str, learns_from: str, told: Told) -> Row:
        return [("method", method), ("learns from", learns_from), *_near(found, told, blocks)]

    future = "days around, some columns of the future"
    yield [("method", "published network"), ("learns from", future), *printed]
    for told in found.published:
        yield row("our forest", told.method, told)
    for told in found.online[1:]:
        yield row(told.method, "what was known at noon", told.of(asked))
    return (
        f"The published test: {len(asked):,} jobs of seven days. Intervals: days drawn whole. "
        f"{GAP_DAYS} days before: nothing that happened since is learned from."
    )


@study_table("days", "Days of the published test, our forest")
def days_table(found: Graham2021) -> Rows:
    """Give each day of the published test."""
    strict = found.published[0]
    polled = found.polls.poll_time[strict.rows]
    for day in np.unique(polled).tolist():
        told = strict.of(strict.rows[polled == day])
        figures = near_published(found, told, Blocks.of(None, told.rows))
        waits = found.polls.wait_s[told.rows]
        yield [
            ("day", datetime.fromtimestamp(day, UTC).date().isoformat()),
            ("jobs", len(waits), ",d"),
            ("median wait, h", float(np.median(waits)) / 3_600, ".1f"),
            *(
                (title, figure.value, form)
                for (title, _, form), figure in zip(_NEAR, figures, strict=True)
            ),
        ]


@study_table("online", "Every noon from its past")
def online_table(found: Graham2021) -> NotedRows:
    """Give every method on every noon after the settling ones."""
    for told in found.online:
        yield [("method", told.method), *_near(found, told, week_blocks(found, told.rows))]
    asked = found.online[0].rows
    return (
        f"{len(asked):,} jobs of {len(np.unique(found.polls.poll_time[asked]))} noons, each from "
        "what was known at that noon. Intervals: weeks drawn whole."
    )


@study_table(
    "bounds",
    "Bounds and distributions",
    "Share of waits up to each bound; the bounds compared are made to hold equally often.",
)
def bounds_table(found: Graham2021) -> Rows:
    """Give how often bounds hold, what distributions lose, and how tight bounds are."""
    other = next(told for told in found.online if told.method == Qbets.name)
    for told in found.online:
        blocks = week_blocks(found, told.rows)
        outcome = outcomes(found, told)
        figures = scores(outcome, blocks)
        ratio, its_interval = None, ""
        if told is not other and not _says_one_number(told.forecasts):
            tight = tightness(outcome, outcomes(found, other.of(told.rows)), blocks)
            ratio, its_interval = tight.ratio.value, _numbers(tight.ratio.interval)
        yield [
            ("method", told.method),
            *(
                (f"{level}%", figures[f"coverage_{level}"].value, ".1%")
                for level in (50, 75, 90, 95)
            ),
            ("its interval", _shares(figures["coverage_95"].interval)),
            ("pinball, h", figures["pinball_s"].value / 3_600, ".2f"),
            ("pinball, log10", figures["pinball_log"].value, ".4f"),
            ("95% bound / QBETS'", ratio, ".2f"),
            ("its interval ", its_interval),
        ]


def _says_one_number(forecasts: WaitForecasts) -> bool:
    return bool((forecasts.wait_s == forecasts.wait_s[:, :1]).all())


def slices_table(found: Graham2021) -> StudyTable:
    """Give the coverage of our 95% bound in slices."""
    told = found.online[0]
    numbers, codes = np.unique(found.polls.slurm_partition[told.rows], return_inverse=True)
    partitions = Labels(codes.astype(np.int32), tuple(map(str, numbers.tolist())))
    blocks = week_blocks(found, told.rows)
    lines = tuple(
        (part.by.replace("queue", "slurm_partition"), part.name, part.rows, part.coverage,
         _shares(part.interval))
        for part in coverage_slices(outcomes(found, told), blocks, partitions)
    )  # fmt: skip
    columns = (
        Column("by"), Column("slice"), Column("jobs", ",d"), Column("held", ".1%"), Column("95%"),
    )  # fmt: skip
    return StudyTable("slices", "Where our 95% bound holds", columns, lines)


@study_table(
    "ablations",
    "What the forest goes by",
    "On the published test, each noon from what was known then.",
)
def ablations_table(found: Graham2021) -> Rows:
    """Give what each group of features is worth."""
    blocks = day_blocks(found, found.published_rows)
    every = {"every feature": found.published[0]} | {told.method: told for told in found.ablations}
    for name, told in every.items():
        yield [("our forest", name), *_near(found, told, blocks)]


@study_table("future", "Columns of the future")
def future_table() -> Rows:
    """Give the columns that no forecast may see."""
    for name, why in FUTURE.items():
        yield [
            ("column", name),
            ("what it holds", why),
            ("seen by the published network", "yes" if name in PUBLISHED_FUTURE else "no"),
        ]


def reliability(found: Graham2021) -> dict[str, Float64Array]:
    """Give for each method with distributions the share of waits up to each of `LEVELS`."""

    def share(told: Told) -> Float64Array:
        held = found.polls.wait_s[told.rows][:, np.newaxis] <= told.forecasts.wait_s
        return np.asarray(held.mean(axis=0))

    several = [told for told in found.online if not _says_one_number(told.forecasts)]
    return {told.method: share(told) for told in several} | {"as said": np.array(LEVELS)}
