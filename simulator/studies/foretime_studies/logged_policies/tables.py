"""Tables of a log as logged: who was trusted, what forecasts were worth, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from foretime_sim.waits.block_sums import Figure
from foretime_sim.waits.wait_scores import TEN_MINUTES_S

from foretime_studies.frame.tables import NotedRows, Rows, StudyTable, study_table
from foretime_studies.logged_policies.study import (
    CHOSEN,
    GENERIC,
    HELD,
    METHODS,
    PAST,
    PLAUSIBLE,
    RUNS,
    LoggedStudy,
)

_BESIDE = (
    *((kind, CHOSEN[PAST]) for kind in RUNS),
    *((CHOSEN[kind], CHOSEN[PAST]) for kind in RUNS),
    (CHOSEN[HELD], CHOSEN[GENERIC]),
    (CHOSEN[PLAUSIBLE], CHOSEN[GENERIC]),
)
_FROM_TO = "From, to: 95% interval of a bootstrap over weeks; none where there are fewer than six."


def tables(logs: Sequence[LoggedStudy]) -> tuple[StudyTable, ...]:
    """Give every table."""
    return (
        logs_table(logs),
        trust_table(logs),
        beside_table(logs),
        methods_table(logs),
        order_table(logs),
    )


@study_table(
    "logs",
    "The logs",
    "Left out: wider than their partition. Held: the policy would have started them ten minutes"
    " ago or earlier, at every look since, and they still wait.",
)
def logs_table(logs: Sequence[LoggedStudy]) -> Rows:
    """Give what was asked of which log."""
    for found in logs:
        waits = found.scored.waits_s
        yield [
            ("log", found.name),
            ("jobs", found.scored.run.jobs, ",d"),
            ("left out", found.left_out, ",d"),
            ("asked at submission", found.scored.first_answers, ",d"),
            ("later looks", found.scored.later_answers, ",d"),
            ("waited over 10 min", float((waits > TEN_MINUTES_S).mean()), ".1%"),
            ("held, of those that waited at a moment", found.held, ".1%"),
            ("queues compared", found.queues, ",d"),
        ]


@study_table("trust", "Moments at which forward runs are trusted")
def trust_table(logs: Sequence[LoggedStudy]) -> NotedRows:
    """Give the share of moments at which forward runs had the word."""
    for found in logs:
        for kind, share in found.trust.items():
            yield [
                ("log", found.name),
                ("forward runs", kind),
                *_figure("trusted at moments", share, ".1%"),
            ]
    return _FROM_TO


@study_table("beside", "Pinball losses beside each other's: below 1 is better")
def beside_table(logs: Sequence[LoggedStudy]) -> NotedRows:
    """Give pinball losses beside each other's: below 1 is better."""
    for found, (one, other) in product(logs, _BESIDE):
        row: list[tuple[str, str | float | None] | tuple[str, str | float | None, str]]
        row = [("log", found.name), ("loss of", one), ("as a share of that of", other)]
        for heading, score, later in (
            ("log10", "pinball_log", False),
            ("seconds", "pinball_s", False),
            ("later looks, log10", "pinball_log", True),
        ):
            row += _figure(heading, found.scored.ratio(score, one, other, later=later), ".2f")
        yield row
    return f"On jobs that both answered. {_FROM_TO}"


@study_table("methods", "Forecasts")
def methods_table(logs: Sequence[LoggedStudy]) -> NotedRows:
    """Give what each forecast was worth."""
    for found, method in product(logs, METHODS):
        first, later = found.scored.at_submission, found.scored.later
        held, held_later = (part[method]["waiting_coverage_95"] for part in (first, later))
        yield [
            ("log", found.name),
            ("forecast", method),
            ("answered", first[method]["answered"].value, ".1%"),
            *_figure("95% bound holds", held, ".1%"),
            *_figure("later looks", held_later, ".1%"),
            ("pinball, s", first[method]["pinball_s"].value, ",.0f"),
            ("pinball, log10", first[method]["pinball_log"].value, ".4f"),
            ("later, log10", later[method]["pinball_log"].value, ".4f"),
            ("within [t/2, 2t]", first[method]["within_double"].value, ".1%"),
            ("order of starts, tau", later[method]["order"].value, ".2f"),
        ]
    note = "Bounds are of jobs that were not forecast to start at once."
    return f"{note} {_FROM_TO}"


@study_table("order", "Order of starts")
def order_table(logs: Sequence[LoggedStudy]) -> NotedRows:
    """Give how often pairs that waited together started in an order."""
    for found in logs:
        for order, share in found.agreement.items():
            yield [
                ("log", found.name),
                ("order", order),
                *_figure("pairs in that order", share, ".1%"),
                *_figure("held jobs too", found.with_held[order], ".1%"),
            ]
    return (
        "Pairs that waited together in one partition and did not start in the same second; a queue"
        f" at a moment counts once. {_FROM_TO}"
    )


def _figure(heading: str, figure: Figure, form: str) -> list[tuple[str, float | None, str]]:
    """Give a figure and its interval, each in a column of its own."""
    interval = figure.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return [
        (heading, figure.value, form),
        (f"{heading}: from", low, form),
        (f"{heading}: to", high, form),
    ]
