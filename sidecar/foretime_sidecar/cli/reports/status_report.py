"""What ``foretime status`` says, as JSON and in lines."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.cli.options.site_settings import SiteSettings
from foretime_sidecar.cli.reports.brought_tables import brought_line
from foretime_sidecar.ordering.order_words import ORDERS
from foretime_sidecar.safety.enforce_warning import INSTEAD, MEASURED, lengthens_waits
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.name_kinds import ENFORCE_KINDS
from foretime_sidecar.table.table import Mode, Table, read_table
from foretime_sidecar.wording.clocks import spoken_clock
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.durations import format_duration


def status_answer(
    found: SiteSettings, asked: Mapping[str, tuple[Mapping[str, Any] | None, str | None]]
) -> dict[str, Any]:
    """Give how things stand, as ``--json`` does.

    Parameters
    ----------
    found
        The settings.
    asked
        What the daemon said of ``daemon``, ``breaker``, ``queue_order`` and ``brought``, or why it
        did not.
    """
    chosen, now = found.settings, int(time.time())
    table, table_error = _table(chosen, now)
    (daemon, daemon_error), (breaker, breaker_error) = asked["daemon"], asked["breaker"]
    order, order_error = asked["queue_order"]
    brought, brought_error = asked["brought"]
    return {
        "settings": None if found.file is None else str(found.file),
        "mode_set": chosen.hook.mode,
        "mode": None if table is None else table.settings.mode.value,
        "mode_reason": None if daemon is None else daemon["mode_reason"] or None,
        "disabled": os.path.lexists(chosen.hook.disable_file),
        "disable_file": chosen.hook.disable_file,
        "daemon": daemon,
        "daemon_error": daemon_error,
        "table": _table_as_json(chosen, table, now),
        "table_error": table_error,
        "breaker": breaker,
        "breaker_error": breaker_error,
        "queue_order": order,
        "queue_order_error": order_error,
        "brought": brought,
        "brought_error": brought_error,
    }


def daemon_status_answer(
    asked: Mapping[str, tuple[Mapping[str, Any] | None, str | None]], daemon: Mapping[str, Any]
) -> dict[str, Any]:
    """Give how things stand by the daemon alone: what only settings tell is ``None``.

    Parameters
    ----------
    asked
        As of `status_answer`.
    daemon
        What it said of its health.
    """
    made = daemon["table_generation"] is not None
    answer = dict.fromkeys(("settings", "mode_set", "disabled", "disable_file"))
    answer |= {"mode": daemon["mode"], "mode_reason": daemon["mode_reason"] or None}
    table = dict.fromkeys(("path", "scheme", "enforce_share_percent"))
    table |= {key: daemon[f"table_{key}"] for key in ("generation", "age_s", "valid_s", "rows")}
    answer |= {"table": table, "table_error": None if made else "the daemon has written none yet"}
    for name, (said, error) in asked.items():
        answer |= {name: said, f"{name}_error": error}
    return answer


def daemon_status_lines(listen: str, answer: Mapping[str, Any]) -> list[str]:
    """Put the answer of ``--json`` by the daemon alone in lines."""
    daemon, table, order = answer["daemon"], answer["table"], answer["queue_order"]
    mode, reason = answer["mode"] or "none yet", answer["mode_reason"]
    shown = answer["table_error"] or (
        f"generation {table['generation']}, {counted(table['rows'], 'row')}, "
        f"{format_duration(table['age_s'])} old"
    )
    lines = [
        f"settings not read: all of this is as the daemon at {listen} says it",
        f"mode     {mode}" + (f" ({reason})" if reason else ""),
        f"daemon   {_running(daemon)}",
        *_looks(daemon),
        *_site(daemon),
        f"table    {shown}",
        f"breaker  {_breaker(answer)}",
    ]
    if order is not None and any(order[key] is not None for key in ("refused", "raised", "order")):
        lines.append(f"order    {_order(answer)}")
    return lines + [f"brought  {line}" for line in _brought(answer["brought"])]


def status_lines(found: SiteSettings, answer: Mapping[str, Any]) -> list[str]:
    """Put the answer of ``--json`` in lines."""
    return [f"settings {found.missing or found.file}", *_lines(found.settings, answer)]


def _table(settings: Settings, now: int) -> tuple[Table | None, str | None]:
    try:
        table = read_table(Path(settings.table.path))
    except StateError as error:
        return None, str(error).removeprefix(f"{settings.table.path}: ")
    if table.valid_until < now:
        return table, f"out of date for {format_duration(now - table.valid_until)}"
    return table, None


def _table_as_json(settings: Settings, table: Table | None, now: int) -> dict[str, Any]:
    path = {"path": settings.table.path}
    if table is None:
        return path
    return {
        **path,
        "generation": table.generation,
        "age_s": now - table.written_at,
        "valid_s": table.valid_until - now,
        "rows": table.row_count,
        "scheme": table.settings.scheme.value,
        "enforce_share_percent": table.settings.enforce_share_percent,
    }


def _lines(settings: Settings, answer: Mapping[str, Any]) -> list[str]:
    mode = answer["mode"] or "none: without a table jobs are left alone"
    if answer["disabled"]:
        mode = f"disabled ({answer['disable_file']} exists)"
    elif settings.starts_jobs and mode == Mode.OBSERVE and not answer["mode_reason"]:
        mode = "enforce: jobs that should start at once are raised, and the hook changes none"
    elif mode != answer["mode_set"]:
        mode += f" (set: {answer['mode_set']}"
        mode += f"; {answer['mode_reason']})" if answer["mode_reason"] else ")"
    elif mode == Mode.ENFORCE:
        mode += f" ({_limits(settings)})"
    table = answer["table"]
    shown = answer["table_error"] or (
        f"generation {table['generation']}, {_scheme(settings, table)}, {table['rows']} rows, "
        f"{format_duration(max(table['age_s'], 0))} old"
    )
    daemon = answer["daemon"]
    running = answer["daemon_error"] or _running(daemon)
    lines = [
        f"mode     {mode}",
        f"daemon   {running}",
        *_looks(daemon),
        *_site(daemon),
        f"table    {table['path']}: {shown}",
        f"breaker  {_breaker(answer)}",
    ]
    if answer["mode"] == Mode.ENFORCE and lengthens_waits(settings):
        lines.append(f"waits    {MEASURED}: {INSTEAD}")
    if settings.queue_order.keeps_order or settings.starts_jobs:
        lines.append(f"order    {_order(answer)}")
    lines += [f"brought  {line}" for line in _brought(answer["brought"])]
    return lines


def _running(daemon: Mapping[str, Any]) -> str:
    """Say how the daemon is, and what it has learned."""
    error = daemon["last_error"]
    learned = f"{counted(daemon['finished_jobs'], 'finished job')} learned"
    return f"{daemon['status']}, {learned}" + (f"; last error: {error}" if error else "")


def _brought(brought: Mapping[str, Any] | None) -> list[str]:
    """Say what Foretime has brought in four weeks, and what it would have."""
    if brought is None:
        return []
    lines = [
        brought_line(brought[kind], would=would)
        for kind, would in (("brought", False), ("would_bring", True))
        if brought[kind]["jobs"]
    ]
    why_not = brought["standing"]["why_not"]
    return lines or [f"nothing can be told: {why_not}" if why_not else "nothing can be told yet"]


def _looks(daemon: Mapping[str, Any] | None) -> list[str]:
    """Say how often the daemon looks at the scheduler, and why if not as often as was set."""
    if daemon is None:
        return []
    reason = daemon["pause_reason"]
    return [f"looks    every {daemon['pause_s']} s" + (f": {reason}" if reason else "")]


def _site(daemon: Mapping[str, Any] | None) -> list[str]:
    """Say as what site the daemon runs the queue forward, or why not."""
    site = None if daemon is None else daemon.get("site")
    if site is None:
        return []
    said = f"{site['source']}: not read yet"
    if site["read_at"] is not None:
        said = (
            f"{site['source']}: release {site['version']}, "
            f"{_parts(site)}, read "
            f"{format_duration(site['age_s'])} ago"
        )
    if site["problem"]:
        said += f"; the last reading failed: {site['problem']}"
    if site["why_not"] and site["why_not"] != site["problem"]:
        said += f"; forecasts do not go by it: {site['why_not']}"
    elif site["read_at"] is None:
        said += "; forecasts go by the settings"
    return [f"site     {said}"]


def _parts(site: Mapping[str, Any]) -> str:
    """Count a site's partitions or queues."""
    if site["queues"]:
        return counted(site["queues"], "queue")
    return counted(site["slurm_partitions"], "partition")


def _order(answer: Mapping[str, Any]) -> str:
    order = answer["queue_order"]
    if order is None:
        return str(answer["queue_order_error"])
    if order["refused"] is not None:
        return f"as Slurm has it: {order['refused']}"
    if order["raised"] is not None:
        return (
            f"Slurm's own; jobs raised to start at once since the daemon began: "
            f"{order['raised']:,}, not started by the next look: {order['missed']:,}"
        )
    if order["order"] is None:
        return f"{order['set']}: the queue has not been looked at yet"
    said = ORDERS[order["order"]]
    if order["since"] is not None:
        now = int(time.time())
        switches = order["switches_of_a_day"]
        said += f" (dynP) since {spoken_clock(order['since'], now)}; "
        said += f"{switches} switch{'' if switches == 1 else 'es'} in 24 h"
        if order["why"] is not None:
            said += f"; {order['why']}"
        kept = (order["last_try"] or {}).get("kept")
        if kept is not None:
            said += f"; not decided anew at the last look: {kept}"
    if order["going_first"]:
        said += f"; before all others, by their wait or bound: {order['going_first']:,}"
    return said


def _scheme(settings: Settings, table: Mapping[str, Any]) -> str:
    scheme, wanted = table["scheme"], settings.accuracy.scheme
    if scheme == "learned":
        return f"scheme learned ({settings.learned.estimator})"
    return f"scheme {scheme}" + ("" if scheme == wanted else f" (set: {wanted}; the log says why)")


def _limits(settings: Settings) -> str:
    hook = settings.hook
    parts = [f"{hook.enforce_share_percent}% of users"]
    for kind in ENFORCE_KINDS:
        names = getattr(hook, f"enforce_only_{kind.plural}")
        if names:
            parts.append(f"{kind.plural} {', '.join(names)}")
    return "; ".join(parts)


def _breaker(answer: Mapping[str, Any]) -> str:
    breaker = answer["breaker"]
    if breaker is None:
        return str(answer["breaker_error"])
    if breaker["open"]:
        return f"open: {breaker['reason']}; look into it, then foretime enable"
    figures = breaker["figures"]
    outliving, wait = figures["outliving_percent"], figures["wait_p99_s"]
    shown = [f"{counted(figures['planned_jobs'], 'planned job')} ended"]
    if outliving is not None:
        shown.append(f"{outliving:.1f}% outlived t_sched")
    shown.append(f"head job's slip {format_duration(figures['head_slip_s'])}")
    if wait is not None:
        shown.append(f"p99 wait {format_duration(wait)}")
    return f"closed: {', '.join(shown)}"
