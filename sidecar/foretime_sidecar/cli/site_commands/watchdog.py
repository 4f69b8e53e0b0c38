"""``foretime watchdog``: looks after the jobs when the daemon does not."""

from __future__ import annotations

import json
import time

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs.formula import RANK

from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.daemon_options import SettingsOption
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.site_settings import site_settings
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.safety.watchdog import WatchdogResult, watch, watch_ranks
from foretime_sidecar.schedulers.choice import client_of
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.durations import format_duration


def watchdog(
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore the requested limits of Slurm's jobs if the daemon is not responding.

    On PBS, with queue_order.order = "start-now", the jobs that wait lose their ft_rank. It checks
    once and exits; contrib/systemd/foretime-watchdog.timer runs it every minute. It needs neither
    the daemon nor its store. Run it as the daemon's user.

    Example: [bold]foretime watchdog[/bold]
    """
    chosen = site_settings(settings)
    scheduler = chosen.scheduler
    if scheduler.can_end_jobs_as_planned:
        runner = SubprocessRunner(
            scheduler.commands_dir, scheduler.command_timeout_s, scheduler.attempts
        )
        result, told = watch(chosen, SlurmCommands(runner), time.time()), _as_text
    elif chosen.queue_order.starts_now:
        client = client_of(scheduler, RequestTime())
        result, told = watch_ranks(chosen, client, time.time()), _ranks_as_text
    else:
        raise InputError(
            f'foretime watchdog: scheduler.kind = "{scheduler.kind}": PBS never ends a job at its '
            "soft_walltime, so there is nothing to watch; disable foretime-watchdog.timer"
        )
    if as_json:
        typer.echo(json.dumps(_as_json(result), indent=2))
    else:
        say(told(result))


def _as_json(result: WatchdogResult) -> dict[str, object]:
    return {
        "alive": result.alive,
        "silent_s": None if result.silent_s is None else round(result.silent_s, 1),
        "withdrew_table": result.withdrew_table,
        "repairs": [
            {
                "job_id": repair.change.job_id,
                "time_limit_s": repair.change.time_limit,
                "time_min_s": repair.change.time_min,
                "why": repair.why,
            }
            for repair in result.repairs
        ],
        "site_factors": result.site_factors,
    }


def _ranks_as_text(result: WatchdogResult) -> str:
    silent = _silence(result)
    if result.alive:
        return f"The daemon is alive: {silent}."
    lost = counted(result.site_factors, "pending job")
    return f"The daemon is silent: {silent}. {lost} lost the {RANK} of Foretime's."


def _silence(result: WatchdogResult) -> str:
    if result.silent_s is None:
        return "it never gave a sign of life"
    return f"last sign of life {format_duration(round(result.silent_s))} ago"


def _as_text(result: WatchdogResult) -> str:
    silent = _silence(result)
    limits = sum(repair.change.time_limit is not None for repair in result.repairs)
    cleared = counted(len(result.repairs) - limits, "pending job")
    done = [
        f"{cleared} lost the time_min of Foretime's",
        f"{counted(limits, 'job')} got the limit back that the user asked for",
    ]
    if result.site_factors:
        done.append(
            f"{counted(result.site_factors, 'pending job')} lost the site factor of Foretime's"
        )
    if result.alive:
        return f"The daemon is alive: {silent}." + (
            f" Not left to its next look: {'; '.join(done)}." if result.repairs else ""
        )
    done.append("the table was withdrawn" if result.withdrew_table else "no table stood")
    return f"The daemon is silent: {silent}. {'; '.join(done)}."
