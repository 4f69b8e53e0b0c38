"""``foretime report``: what planning has done to the site's jobs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.daemon_options import SettingsOption, SocketOption, where
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.since_option import parse_since
from foretime_sidecar.cli.reports.whole_tables import print_whole
from foretime_sidecar.wording.durations import format_duration

report_app = typer.Typer(
    help="Report what planning has done to the site's jobs.\n\nExample: foretime report ab",
    no_args_is_help=True,
)


@report_app.callback()
def _report() -> None:
    pass


@report_app.command("ab")
def ab(
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Jobs submitted since: how long ago (D-HH:MM:SS), or a date.",
        ),
    ] = "28-00:00:00",
    as_json: JsonOption = False,
    settings: SettingsOption = None,
    socket_path: SocketOption = None,
) -> None:
    """Compare planned jobs with like ones outside of the share: waits, outliving, large jobs.

    Intervals of 95% are a bootstrap over users. Run it as root.

    Example: [bold]foretime report ab --since 14-00:00:00[/bold]
    """
    answer = SiteDaemon(where(settings, socket_path)).ab(parse_since(since, time.time()))
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    print_whole(_table(answer))
    if not (answer["planned"]["jobs"] and answer["observed"]["jobs"]):
        say(
            "One of the groups is empty: enforce for a share of users (hook.enforce_share_percent),"
            " some accounts, partitions or queues, and let jobs end."
        )


_ROWS = (
    ("jobs", "jobs", "count"),
    ("users", "users", "count"),
    ("wait, mean", "wait_mean_s", "time"),
    ("wait, median", "wait_median_s", "time"),
    ("wait, 99th percentile", "wait_p99_s", "time"),
    ("outliving t_sched", "outliving_percent", "percent"),
    ("large jobs", "large_jobs", "count"),
    ("large jobs' wait, mean", "large_wait_mean_s", "time"),
)


def _table(answer: Mapping[str, Any]) -> Table:
    table = Table("", box=None, pad_edge=False)
    for name in ("planned", "observed", "difference"):
        table.add_column(name, justify="right")
    for title, key, unit in _ROWS:
        groups = [answer[name][key] for name in ("planned", "observed", "difference")]
        if unit == "count":
            cells = [f"{groups[0]:,}", f"{groups[1]:,}", ""]
        else:
            cells = [_shown(figure, unit, signed=at == 2) for at, figure in enumerate(groups)]
        large = answer["large_processors"]
        of = f" (from {large} processors)" if key == "large_jobs" and large is not None else ""
        table.add_row(title + of, *map(Text, cells))
    return table


def _shown(figure: dict[str, float | None], unit: str, *, signed: bool) -> str:
    if figure["value"] is None:
        return "-"
    text = _number(figure["value"], unit, signed=signed)
    if figure["low"] is None or figure["high"] is None:
        return text
    low, high = (_number(end, unit, signed=signed) for end in (figure["low"], figure["high"]))
    return f"{text} [{low} to {high}]"


def _number(value: float, unit: str, *, signed: bool) -> str:
    sign = "-" if value < 0 else "+" if signed and value > 0 else ""
    if unit == "percent":
        return f"{sign}{abs(value):.1f}%"
    return f"{sign}{format_duration(round(abs(value)))}"
