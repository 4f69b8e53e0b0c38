"""The check of the daemon, on any scheduler: that it runs, and looks as often as it should."""

from __future__ import annotations

from foretime_estimators.jobs.errors import ForetimeError

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.install.doctor.checkup import Finding, ok, problem, warning
from foretime_sidecar.settings.settings import Settings


def daemon(settings: Settings) -> Finding:
    """Look whether the daemon does its work."""
    try:
        answer = SiteDaemon(settings.api.listen).health()
    except ForetimeError as error:
        what, _, remedy = str(error).partition("; ")
        return problem(what, remedy or "look at its log")
    if answer["last_error"]:
        return warning(f"the daemon's last poll failed: {answer['last_error']}", "look at its log")
    known = answer["mode"] is not None and not settings.starts_jobs
    if known and answer["mode"] != settings.hook.mode:
        return warning(
            f"the daemon lets the hook {answer['mode']}, not {settings.hook.mode}: "
            f"{answer['mode_reason'] or 'it has not read these settings yet'}",
            "see foretime status",
        )
    pause_s, shortest_s = answer["pause_s"], settings.scheduler.poll_interval_s
    if pause_s > shortest_s:
        return warning(
            f"the daemon looks at the scheduler every {pause_s} s, not every {shortest_s} s: "
            f"{answer['pause_reason'] or 'it has not read these settings yet'}",
            "relieve the scheduler, or lower scheduler.longest_poll_interval_s",
        )
    return ok(f"{answer['finished_jobs']} finished jobs learned, mode {answer['mode']}")
