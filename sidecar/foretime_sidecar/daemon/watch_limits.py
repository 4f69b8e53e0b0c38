"""From when on a figure of the daemon's asks for an administrator, by the daemon's own settings.

The page for operators judges by these, and ``/metrics`` tells them, so that alerts compare a figure
with its limit and hold at every site.
"""

from __future__ import annotations

from foretime_sidecar.daemon.sidecar import Sidecar

NEAR = 0.8
"""Share of the breaker's limits at which an administrator is told, before it opens."""
LEAST_WITHIN = 0.9
"""Share of the 95% bounds that must hold."""
FEWEST_SCORED = 100
"""Forecasts, or bounds, from which on a share of them is judged."""
MOST_UNPLANNED_PERCENT = 10.0
"""Of the jobs that the table says to plan: more were not, so the hook may not be reached."""
MOST_MISSED = 0.25
"""Of jobs that were raised: more had not started by the next look."""
_LEAST_FORECASTS_AGE_S = 600


def poll_late_s(sidecar: Sidecar) -> int:
    """Give the age of the last poll from which on the daemon counts as failing, seconds."""
    scheduler = sidecar.settings.scheduler
    return 3 * sidecar.pause.seconds + scheduler.attempts * scheduler.command_timeout_s


def watch_limits(sidecar: Sidecar) -> dict[str, float]:
    """Give each limit that there is by the figure's name, in the figure's unit.

    A limit of the breaker's that is switched off is not there.
    """
    table, breaker = sidecar.settings.table, sidecar.settings.breaker
    poll_s = poll_late_s(sidecar)
    # A table is written anew when half of its time is over.
    renewed_s = table.valid_for_s // 2 + table.publish_interval_s + poll_s
    limits: dict[str, float] = {
        "poll_age_seconds": poll_s,
        "table_age_seconds": min(renewed_s, table.valid_for_s),
        "forecasts_age_seconds": max(_LEAST_FORECASTS_AGE_S, poll_s),
        "sign_of_life_age_seconds": table.watchdog_after_s,
        "unplanned_percent": MOST_UNPLANNED_PERCENT,
        "forecast_within_share": LEAST_WITHIN,
    }
    if breaker.most_outliving_percent < 100:
        limits["outliving_percent"] = breaker.most_outliving_percent
    if breaker.most_head_slip_s:
        limits["head_slip_seconds"] = breaker.most_head_slip_s
    if breaker.most_wait_p99_s:
        limits["wait_p99_seconds"] = breaker.most_wait_p99_s
    return limits
