"""What ``foretime workload describe`` shows of logs: figures side by side, and distributions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from foretime_sim.logs.filters import FilterReport
from foretime_sim.models.description import QUANTILES, Description, Distribution, GapFit
from foretime_sim.workloads.job_log import JobLog
from rich.table import Table

from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.durations import format_duration
from foretime_sidecar.wording.numbers import NOTHING

DISTRIBUTIONS = ("size", "runtime_s", "requested_time_s", "accuracy")


def as_json(of_log: DescribedLog) -> dict[str, object]:
    """Give description and filter report as one JSON object; quantiles named p10, p50, ..."""
    report = of_log.report
    document = dataclasses.asdict(of_log.description) | {"scheduler": of_log.scheduler}
    distributions = [document[name] for name in DISTRIBUTIONS]
    if document["submissions"] is not None:
        distributions.append(document["submissions"]["gap_s"])
    for values in distributions:
        quantiles = values.pop("quantiles")
        values.update({f"p{round(q * 100)}": v for q, v in zip(QUANTILES, quantiles, strict=True)})
    document["filters"] = {
        "jobs_read": report.jobs_read,
        "jobs_kept": report.jobs_kept,
        "overran": report.overran,
        "dropped": [{"reason": reason, "jobs": jobs} for reason, jobs in report.dropped],
        "changed": [{"reason": reason, "jobs": jobs} for reason, jobs in report.changed],
        "notes": list(report.notes),
    }
    return document


@dataclass(frozen=True, slots=True)
class DescribedLog:
    """A log, what the filters did to it, and what came of that."""

    log: JobLog
    report: FilterReport
    description: Description

    @property
    def scheduler(self) -> str | None:
        """What the log's header says of the scheduler."""
        words = (comment.lstrip("; ").removeprefix("Note: ") for comment in self.log.comments)
        return next((text for text in words if "scheduler" in text.lower()), None)


def facts(found: Sequence[DescribedLog]) -> Table:
    """Lay out one figure a row, and one log a column: table 2 of Streit 2002, and what goes on."""
    table = Table("")
    for of_log in found:
        table.add_column(of_log.description.name, justify="right")
    columns = [_figures(of_log) for of_log in found]
    for rows in zip(*columns, strict=True):
        table.add_row(rows[0][0], *(text for _, text in rows))
    return table


def _figures(of_log: DescribedLog) -> list[tuple[str, str]]:
    """Give the figures of one log, and what they are called."""
    of, report = of_log.description, of_log.report

    def count(number: int | None) -> str:
        return NOTHING if number is None else f"{number:,}"

    size, requested, runtime = of.size, of.requested_time_s, of.runtime_s
    come = of.submissions
    gap = None if come is None else come.gap_s
    return [
        ("jobs", f"{of.jobs:,}"),
        ("first submission (UTC)", of.first_submission),
        ("last submission (UTC)", of.last_submission),
        ("span", format_duration(of.span_s)),
        ("machine", counted(of.machine_processors, "processor")),
        ("offered load", NOTHING if of.offered_load is None else f"{of.offered_load:.1%}"),
        ("users", count(of.users)),
        ("projects", count(of.projects)),
        ("queues", count(of.queues)),
        ("processors of a job, mean", f"{size.mean:,.2f}"),
        ("  most", f"{size.maximum:,.0f}"),
        *_mean_and_ends("requested time", requested),
        ("  distinct", f"{of.requests:,}"),
        ("  the 20 most popular", f"{of.popular_requests:.1%} of jobs"),
        *_mean_and_ends("runtime", runtime),
        ("ran to their limit", f"{of.at_limit:.1%} of jobs"),
        ("ran for longer than asked", f"{report.overran:,} ({report.overran / of.jobs:.2%})"),
        *_mean_and_ends("time between submissions", gap),
        ("  of 0 s", NOTHING if come is None else f"{come.same_second:.2%}"),
        ("Weibull by moments", _fit(None if come is None else come.moments)),
        ("Weibull by the paper's grid", _fit(None if come is None else come.search)),
        ("Weibull by shape and mean", _fit(None if come is None else come.shape)),
        ("Weibull by likelihood", _fit(None if come is None else come.likelihood)),
        (
            "busiest, quietest hour",
            NOTHING
            if come is None
            else f"{come.busiest_hour:.2f}, {come.quietest_hour:.2f} of the mean",
        ),
        (
            "weekend",
            NOTHING if come is None or come.weekend is None else f"{come.weekend:.2f} of the mean",
        ),
        ("  hours and days of", NOTHING if come is None else come.hours_of),
        ("scheduler", of_log.scheduler or NOTHING),
    ]


def _mean_and_ends(name: str, values: Distribution | None) -> list[tuple[str, str]]:
    """Give mean, least and most of a time."""
    if values is None:
        return [(f"{name}, mean", NOTHING), ("  least", NOTHING), ("  most", NOTHING)]
    return [
        (f"{name}, mean", _duration(values.mean)),
        ("  least", _duration(values.minimum)),
        ("  most", _duration(values.maximum)),
    ]


def _duration(seconds: float) -> str:
    return format_duration(round(seconds))


def _fit(fit: GapFit | None) -> str:
    """Give alpha, beta, and how far the distribution is from the log's."""
    if fit is None:
        return NOTHING
    return f"{fit.alpha:.3g}, {fit.beta_s:,.0f} s (off by {fit.distance:.1%})"


def distributions(description: Description) -> Table:
    """Lay out one log's distributions, a column each."""
    table = Table("", title=description.name, title_justify="left")
    columns: list[list[str]] = []
    for heading, values, written in (
        ("processors", description.size, "{:,.0f}".format),
        ("runtime", description.runtime_s, _duration),
        ("requested", description.requested_time_s, _duration),
        ("R = runtime/requested", description.accuracy, "{:.3f}".format),
    ):
        table.add_column(heading, justify="right")
        numbers = (values.mean, values.minimum, *values.quantiles, values.maximum)
        columns.append([written(number) for number in numbers])
    names = ("mean", "min", *(f"p{round(q * 100)}" for q in QUANTILES), "max")
    for name, *cells in zip(names, *columns, strict=True):
        table.add_row(name, *cells)
    return table
