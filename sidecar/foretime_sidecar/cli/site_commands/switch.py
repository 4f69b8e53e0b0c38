"""``foretime disable`` and ``foretime enable``: planning off and on at once."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from foretime_estimators.jobs.errors import ForetimeError, SchedulerError

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.daemon_options import SettingsOption
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.site_settings import site_settings
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.queue.site_factors import take_ranks
from foretime_sidecar.safety.planning_switch import (
    give_back,
    give_back_on_slurm,
    switch_off,
    switch_on,
)
from foretime_sidecar.safety.soft_walltimes import given_back
from foretime_sidecar.schedulers.choice import client_of
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.table import read_table


def disable(settings: SettingsOption = None, as_json: JsonOption = False) -> None:
    """Plan no more jobs from the next submission on, and clear those that wait.

    Run it as root on slurmctld's host (each of them), or PBS's. Slurm keeps time_min_as_soft_limit,
    and jobs lose the site factors that the daemon has given them, also if it is dead. On PBS jobs
    that wait get a soft_walltime as long as their walltime, and lose their ft_rank.

    Example: [bold]foretime disable[/bold]
    """
    chosen = site_settings(settings)
    path = Path(chosen.hook.disable_file)
    made = switch_off(path)
    said = f"{path}: {'made' if made else 'was there already'}; no job is planned"
    try:
        cleared = _GIVE_BACK[chosen.scheduler.kind](chosen)
    except SchedulerError as error:
        raise SchedulerError(
            f"{said}, but waiting jobs have not got back what was asked for; call foretime disable "
            f"again once the scheduler answers: {error}"
        ) from error
    if as_json:
        answer = {"disable_file": str(path), "was_disabled": not made, "cleared": cleared}
        typer.echo(json.dumps(answer, indent=2))
        return
    say(f"{said}.")
    say(f"{len(cleared)} waiting jobs got back what was asked for.")


def _give_back_on_slurm(settings: Settings) -> list[str]:
    if settings.scheduler.client == "demo":
        return []  # nothing is changed in a demo, and its Slurm is within its daemon
    controller = SlurmController(settings.scheduler.commands_dir)
    return give_back_on_slurm(controller, Path(settings.store.path))


def _give_back_on_pbs(settings: Settings) -> list[str]:
    client = client_of(settings.scheduler, RequestTime())
    try:
        until = read_table(Path(settings.table.path)).unplanned_since
    except ForetimeError:
        until = None  # without a table any soft_walltime counts as ours, as for the hook
    cleared = give_back(
        lambda: given_back(client.queue().jobs, until),
        client.update,
        "root or a manager of PBS, on its host",
    )
    # The daemon, which does the same at its next look, may be dead.
    return list(dict.fromkeys([*cleared, *take_ranks(client)]))


_GIVE_BACK = {"slurm": _give_back_on_slurm, "pbs": _give_back_on_pbs}


def enable(settings: SettingsOption = None, as_json: JsonOption = False) -> None:
    """Plan jobs again: after foretime disable, or once the circuit breaker has opened.

    Run it as root on slurmctld's host (each of them), or PBS's. Jobs that wait stay as they are.

    Example: [bold]foretime enable[/bold]
    """
    chosen = site_settings(settings)
    path = Path(chosen.hook.disable_file)
    removed = switch_on(path)
    breaker, problem = "", ""
    try:
        answer = SiteDaemon(chosen.api.listen).reset_breaker()
    except ForetimeError as error:
        problem = str(error)
    else:
        breaker = str(answer["reason"] or "")
    if as_json:
        told = {
            "disable_file": str(path),
            "was_disabled": removed,
            "breaker_was_open": bool(breaker),
            "breaker_reason": breaker or None,
            "daemon_error": problem or None,
        }
        typer.echo(json.dumps(told, indent=2))
        return
    say(f"{path}: {'removed' if removed else 'was not there'}.")
    if breaker:
        say(f"The circuit breaker was open and is reset: {breaker}.")
    if problem:
        say(f"The daemon was not told: {problem}{'' if problem.endswith('?') else '.'}")
    say(f"With the daemon's next table Foretime goes by hook.mode = {chosen.hook.mode} again.")
