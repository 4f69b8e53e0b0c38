"""What ``foretime estimators`` says of the daemon's scoreboard."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.durations import format_duration

_FIGURES = {
    "accuracy": "mean of the smaller of predicted and real runtime over the larger; 100% is best",
    "behind the best": "what the accuracy lacks of the best one's",
    "too short": "share of jobs that ran longer than predicted",
    "covered": "share of jobs that ran no longer than predicted",
    "log error": "mean error of the runtime's logarithm; 0.69 is off by a factor of two",
    "error": "mean error of the runtime",
    "pinball": "mean error, where too short counts 0.9 of it and too long 0.1",
    "jobs": "scored",
    "cost": "the daemon's processor time for each job",
}
"""The columns, and what each means in a few words; docs/scoreboard.md has the formulas."""
_KINDS = {
    "requested_time": "requested time",
    "processors": "processors",
    "user": "user had",
}


def heading(board: Mapping[str, Any]) -> str:
    """Say what was scored."""
    jobs = max((row["jobs"] for row in board["rows"]), default=0)
    return (
        f"{counted(jobs, 'job')} that ended on {counted(board['days'], 'day')}, a day's counting "
        f"half as much after {counted(board['half_life_days'], 'day')}; intervals of 95%"
    )


def score_table(board: Mapping[str, Any]) -> Table:
    """Draw how each estimator does, a row each."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("estimator")
    for name in _FIGURES:
        table.add_column(name, justify="right")
    for row in board["rows"]:
        words = (
            _mark(row),
            row["name"],
            _share(row["accuracy"], row["accuracy_interval"]),
            "" if row["name"] == board["best"] else _share(row["behind"], row["behind_interval"]),
            _share(row["under_predicted"]),
            _share(row["covered"]),
            _number(row["log_error"], "{:.2f}"),
            _duration(row["error_s"]),
            _duration(row["pinball_s"]),
            f"{row['jobs']:,}",
            _number(row["cost_s"] and 1000 * row["cost_s"], "{:.2f} ms"),
        )
        table.add_row(*map(Text, words))
    return table


def _mark(row: Mapping[str, Any]) -> str:
    """Give the sign before an estimator, which `conclusions` explains."""
    if row["set_aside"]:
        return "-"
    if row["in_use"]:
        return "*"
    return "=" if row["as_good"] and row["eligible"] else ""


def _share(value: float | None, interval: dict[str, float] | None = None) -> str:
    if value is None:
        return "-"
    text = f"{100 * value:.1f}%"
    if interval is None:
        return text
    return f"{text} [{100 * interval['low']:.1f} to {100 * interval['high']:.1f}]"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else format_duration(round(seconds))


def conclusions(board: Mapping[str, Any]) -> list[str]:
    """Say what the columns mean, and what follows from the table."""
    wide = max(map(len, _FIGURES))
    lines = [f"{name:{wide}}  {meaning}" for name, meaning in _FIGURES.items()]
    lines.append("* in use   = as good as the best, as far as can be told   - set aside")
    lines += [f"{row['name']}: {row['set_aside']}" for row in board["rows"] if row["set_aside"]]
    if not board["complete"]:
        lines.append("Not all jobs that are stored have been gone through yet.")
    for key, why in (
        ("late", "seen too late to be predicted"),
        ("too_many", "left out, as there were too many at a time (estimators.most_jobs)"),
    ):
        if board[key]:
            lines.append(f"{counted(board[key], 'job')} {why}.")
    limit = 100 * board["most_under_predicted"]
    beyond = [
        row["name"]
        for row in board["rows"]
        if row["jobs"] and not row["eligible"] and not row["set_aside"]
    ]
    if beyond:
        lines.append(
            f"Too short for more than {limit:g}% of jobs (breaker.most_outliving_percent): "
            + ", ".join(beyond)
        )
    lines.append(_advice(board))
    return lines


def _advice(board: Mapping[str, Any]) -> str:
    used, best, better = board["in_use"], board["best"], board["more_accurate"]
    if best is None:
        return "No estimator can be recommended."
    in_use = f"The estimator in use is {used}"
    if used == best:
        return f"{in_use}, the best one."
    if better is None:
        if any(row["in_use"] and row["as_good"] for row in board["rows"]):
            return f"{in_use}. That {best} is better may be chance."
        return f"{in_use}. It takes more days to tell whether {best} is better."
    return (
        f"{in_use}. {better} predicts better. What planning by it does to waits is another "
        f"question: foretime estimators --replay --only {used},{better}. To plan by it: "
        f"{_how(better)}, and restart the daemon."
    )


def _how(estimator: str) -> str:
    if estimator in ("user", "project", "combined"):
        return f'accuracy.scheme = "{estimator}"'
    return f'accuracy.scheme = "learned", learned.estimator = "{estimator}"'


def class_table(board: Mapping[str, Any]) -> Table:
    """Draw the accuracy of each estimator by class of jobs."""
    table = Table(box=None, pad_edge=False)
    rows = [row for row in board["rows"] if row["classes"]]
    kinds: dict[tuple[str, str], int] = {}
    for row in rows:
        for one in row["classes"]:
            kinds[one["kind"], one["label"]] = max(
                one["jobs"], kinds.get((one["kind"], one["label"]), 0)
            )
    table.add_column("estimator")
    for kind, label in kinds:
        table.add_column(f"{_KINDS[kind]}\n{label}", justify="right")
    for row in rows:
        known = {(one["kind"], one["label"]): one for one in row["classes"]}
        cells = [_share(known[key]["accuracy"]) if key in known else "-" for key in kinds]
        table.add_row(*map(Text, (row["name"], *cells)))
    table.add_row("jobs", *(f"{jobs:,}" for jobs in kinds.values()))
    return table


def switch_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Draw which estimator was in use since when, and which was better."""
    table = Table(box=None, pad_edge=False)
    for name in ("time", "event", "estimator", "instead of", "accuracy", "instead of's", "jobs"):
        table.add_column(name)
    for one in found:
        new = one["evidence"].get(one["estimator"], {})
        old = one["evidence"].get(one["instead_of"], {})
        moment = datetime.datetime.fromtimestamp(one["happened_at"]).astimezone()
        words = (
            f"{moment:%Y-%m-%d %H:%M:%S}",
            one["event"],
            one["estimator"],
            one["instead_of"] or "-",
            _share(new.get("accuracy"), new.get("accuracy_interval")),
            _share(old.get("accuracy"), old.get("accuracy_interval")),
            f"{new.get('jobs', 0):,}",
        )
        table.add_row(*map(Text, words))
    return table
