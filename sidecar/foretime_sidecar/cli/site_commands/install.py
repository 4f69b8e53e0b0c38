"""``foretime install`` and ``foretime uninstall``: the hook in a scheduler."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_sim.mocks.plugin_files import plugin_file

from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.daemon_options import SettingsOption
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.site_settings import find_settings, noted, site_settings
from foretime_sidecar.cli.reports.install_plan import plan_json, plan_lines
from foretime_sidecar.clients.pbs.server import PbsServer
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install import pbs_install, pbs_ranks, slurm_install, slurm_uninstall
from foretime_sidecar.install.pbs_scheduler import Outcome, PbsScheduler, pbs_home
from foretime_sidecar.settings.settings import Settings

install_app = typer.Typer(
    help="Put the hook into a scheduler; without --yes, show how.\n\n"
    "Example: foretime install slurm",
    no_args_is_help=True,
)
uninstall_app = typer.Typer(
    help="Take the hook out of a scheduler; without --yes, show how.\n\n"
    "Example: foretime uninstall slurm",
    no_args_is_help=True,
)

YesOption = Annotated[bool, typer.Option("--yes", help="Do it; else only show what would be done.")]
PbsCommandsOption = Annotated[
    str,
    typer.Option(
        "--commands-dir",
        metavar="DIR",
        help="Folder of qmgr and the others; that of the settings, or the PATH, if not given.",
    ),
]
SlurmCommandsOption = Annotated[
    str,
    typer.Option(
        "--commands-dir",
        metavar="DIR",
        help="Folder of scontrol and the others; that of the settings, or the PATH, if not given.",
    ),
]
ConfOption = Annotated[
    Path | None,
    typer.Option(
        "--conf", metavar="FILE", help="slurm.conf; where slurmctld says it is if not given."
    ),
]


@install_app.callback()
def _install() -> None:
    pass


@uninstall_app.callback()
def _uninstall() -> None:
    pass


@install_app.command("pbs")
def install_pbs(
    settings: SettingsOption = None,
    yes: YesOption = False,
    commands_dir: PbsCommandsOption = "",
    as_json: JsonOption = False,
) -> None:
    """Register the hook in a PBS server, or bring it up to date; all of it or nothing.

    Then soft_walltime comes into the line resources: of the scheduler's sched_config. With
    queue_order.order = "start-now" the resource ft_rank is made, and job_sort_formula becomes it if
    there is none. Run it as root on the server's host.

    Example: [bold]foretime install pbs --yes[/bold]
    """
    found = find_settings(settings)
    chosen = noted(found)
    if found.file is not None and chosen.scheduler.kind != "pbs":
        raise InputError(
            'the settings are for Slurm (scheduler.kind = "slurm"): foretime install slurm'
        )
    scheduler = PbsScheduler(pbs_home())
    server, starts_now = _pbs_server(chosen, commands_dir), chosen.queue_order.starts_now
    if yes:
        outcome = pbs_install.install(server, chosen)
        scheduler.install(outcome)
        if starts_now:
            pbs_ranks.install_ranks(server, outcome)
        _say(outcome, as_json)
        return
    config_name = "foretime_hook.CF"
    config = pbs_install.configuration(chosen)
    directives = pbs_install.install_directives(
        str(plugin_file("pbs/foretime_hook.py")), config_name, pbs_install.registration()
    )
    ranks = pbs_ranks.rank_directives(server) if starts_now else []
    lines = [f"qmgr -c '{directive}'" for directive in directives] + scheduler.commands()
    lines += [f"qmgr -c '{directive}'" for directive in ranks]
    if as_json:
        shown = {"files": {config_name: config}, "commands": lines}
        typer.echo(json.dumps(shown, indent=2))
        return
    say("# As root on the PBS server's host; with --yes this is done at once.")
    say(f"cat > {config_name} <<'END'\n{config}END")
    say("\n".join(lines))


@uninstall_app.command("pbs")
def uninstall_pbs(
    settings: SettingsOption = None,
    yes: YesOption = False,
    commands_dir: PbsCommandsOption = "",
    as_json: JsonOption = False,
) -> None:
    """Take the hook out of a PBS server, and soft_walltime from its jobs.

    Those that run lose it, too, as far as PBS lets them: not the subjobs of an array. sched_config
    gets back what it had, and job_sort_formula goes if it is ft_rank. Run it as root on the
    server's host.

    Example: [bold]foretime uninstall pbs --yes[/bold]
    """
    chosen = site_settings(settings)
    scheduler, server = PbsScheduler(pbs_home()), _pbs_server(chosen, commands_dir)
    if yes:
        outcome = pbs_install.uninstall(server)
        scheduler.uninstall(outcome)
        pbs_ranks.uninstall_ranks(server, outcome)
        _say(outcome, as_json)
        return
    lines = [*pbs_install.uninstall_lines(), *scheduler.uninstall_commands()]
    with contextlib.suppress(SchedulerError):  # also shown where there is no PBS
        lines += pbs_ranks.uninstall_lines(server)
    if as_json:
        typer.echo(json.dumps({"commands": lines}, indent=2))
        return
    say("# As root on the PBS server's host; with --yes this is done at once.")
    say("\n".join(lines))


def _pbs_server(settings: Settings, commands_dir: str) -> PbsServer:
    return PbsServer(commands_dir or settings.scheduler.commands_dir)


@install_app.command("slurm")
def install_slurm(
    settings: SettingsOption = None,
    conf: ConfOption = None,
    yes: YesOption = False,
    commands_dir: SlurmCommandsOption = "",
    as_json: JsonOption = False,
) -> None:
    """Put the hook into Slurm, or bring it up to date: first the soft limit, then the hook.

    Without --yes it shows each file and line that it would change. Scripts are loaded in Slurm's
    own Lua before any is replaced. Run it as root on slurmctld's host.

    Example: [bold]foretime install slurm --yes[/bold]
    """
    site = _slurm_site(settings, conf, commands_dir)
    if yes:
        _say(slurm_install.install(site), as_json)
        return
    plan = slurm_install.make_plan(site)
    if as_json:
        typer.echo(json.dumps(plan_json(plan), indent=2))
    else:
        say("\n".join(plan_lines(site, plan)))


@uninstall_app.command("slurm")
def uninstall_slurm(
    settings: SettingsOption = None,
    conf: ConfOption = None,
    yes: YesOption = False,
    commands_dir: SlurmCommandsOption = "",
    as_json: JsonOption = False,
) -> None:
    """Take the hook out of Slurm, jobs included: the soft limit goes last.

    Waiting jobs get back what their users asked for. Files get the very content back that they
    had, or lose only Foretime's words if somebody changed them since. Run it as root on slurmctld's
    host.

    Example: [bold]foretime uninstall slurm --yes[/bold]
    """
    site = _slurm_site(settings, conf, commands_dir)
    if yes:
        _say(slurm_uninstall.uninstall(site), as_json)
        return
    steps = slurm_uninstall.uninstall_steps(site)
    if as_json:
        typer.echo(json.dumps({"steps": steps}, indent=2))
    elif not steps:
        say(f"There is no {site.record_path}: nothing is installed.")
    else:
        say("# As root on slurmctld's host; with --yes this is done at once.")
        say("\n".join(steps))


def _slurm_site(
    settings: Path | None, conf: Path | None, commands_dir: str
) -> slurm_install.SlurmSite:
    if conf is not None and not conf.is_file():
        raise InputError(f"--conf {conf}: there is no such file; name the slurm.conf of slurmctld")
    chosen = site_settings(settings)
    controller = SlurmController(commands_dir or chosen.scheduler.commands_dir)
    return slurm_install.SlurmSite(controller, chosen, conf)


def _say(outcome: Outcome | slurm_install.Outcome, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"done": outcome.done, "notes": outcome.notes}, indent=2))
        return
    for line in outcome.done:
        say(f"done: {line}")
    for note in outcome.notes:
        say(note)
