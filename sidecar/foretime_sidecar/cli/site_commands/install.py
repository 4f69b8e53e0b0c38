"""``foretime install`` and ``foretime uninstall``: Foretime on a scheduler's host."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from foretime_estimators.jobs.errors import ForetimeError, InputError, SchedulerError
from foretime_sim.mocks.plugin_files import plugin_file

from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options import daemon_options
from foretime_sidecar.cli.options.daemon_options import SettingsOption
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.schedulers_here import require_commands
from foretime_sidecar.cli.options.site_settings import SiteSettings, find_settings, noted
from foretime_sidecar.cli.reports.diagnoses import diagnoses_json, diagnoses_table
from foretime_sidecar.cli.reports.install_plan import (
    NOTHING_TO_DO,
    host_json,
    host_lines,
    plan_json,
    plan_lines,
)
from foretime_sidecar.cli.reports.whole_tables import print_uncut
from foretime_sidecar.clients.pbs.server import PbsServer
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install import pbs_install, pbs_ranks, slurm_install, slurm_uninstall
from foretime_sidecar.install.doctor.checkup import Diagnosis, Health, examine, exit_code
from foretime_sidecar.install.doctor.site import site_checks, wait_for_daemon
from foretime_sidecar.install.first_settings import pbs_settings, slurm_settings
from foretime_sidecar.install.host import USER, Host
from foretime_sidecar.install.host_plan import HostPlan, plan_host, undo_host
from foretime_sidecar.install.pbs_host import DROP_IN, plan_pbs_rights
from foretime_sidecar.install.pbs_scheduler import PbsScheduler, pbs_home
from foretime_sidecar.install.slurm_host import plan_slurm_rights
from foretime_sidecar.install.steps import Outcome, Undo, all_or_nothing, do_all
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import parse_settings

install_app = typer.Typer(
    help="Install Foretime on a scheduler's host; without --yes, show how.\n\n"
    "Example: foretime install slurm",
    no_args_is_help=True,
)
uninstall_app = typer.Typer(
    help="Take Foretime out of a scheduler; without --yes, show how.\n\n"
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
HookOnlyOption = Annotated[
    bool,
    typer.Option(
        "--hook-only",
        help="The scheduler's part alone; user, folders, settings, rights and units are yours.",
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
    hook_only: HookOnlyOption = False,
    as_json: JsonOption = False,
) -> None:
    """Install Foretime on a PBS server's host, or bring it up to date; all of it or nothing.

    First the host: user, folders, settings in mode observe, rights, units, and the daemon runs.
    Then the hook is registered, and soft_walltime comes into the line resources: of the scheduler's
    sched_config. With queue_order.order = "start-now" the resource ft_rank is made, and
    job_sort_formula becomes it if there is none. What is there already stays. foretime doctor
    checks it all. Run it as root on the server's host.

    Exit code 0: done, or nothing to do; 1: a step failed and all is as it was, the scheduler does
    not answer, or the doctor has found a problem; 2: it can't be done as things are.

    Example: [bold]foretime install pbs --yes[/bold]
    """
    found, text = find_settings(settings), ""
    if found.file is None and not hook_only:
        text = pbs_settings(commands_dir, pbs_home())
    chosen = parse_settings(text) if text else noted(found)
    if found.file is not None and chosen.scheduler.kind != "pbs":
        raise InputError(
            'the settings are for Slurm (scheduler.kind = "slurm"): foretime install slurm'
        )
    folder = commands_dir or chosen.scheduler.commands_dir
    if not hook_only:  # the hook's part is also shown where there is no PBS
        require_commands("pbs", folder)
    scheduler, server = PbsScheduler(pbs_home()), PbsServer(folder)
    starts_now = chosen.queue_order.starts_now
    plan = None
    if not hook_only:
        plan = plan_host(
            Host(),
            chosen,
            found.file or daemon_options.SETTINGS_FILE,
            text,
            lambda plan: plan_pbs_rights(plan, server, chosen, folder, pbs_home()),
            DROP_IN,
        )
    if yes:

        def put_hook(outcome: Outcome, undo: Undo) -> None:
            pbs_install.install(server, chosen, outcome, undo)
            if starts_now:
                undo.steps.append(lambda: pbs_ranks.uninstall_ranks(server, Outcome()))
                pbs_ranks.install_ranks(server, outcome)
            scheduler.install(outcome)

        _carry_out(plan, put_hook, [], _Doctor(chosen, "pbs", folder), as_json=as_json)
        return
    config_name = "foretime_hook.CF"
    config = pbs_install.configuration(chosen)
    directives = pbs_install.install_directives(
        str(plugin_file("pbs/foretime_hook.py")), config_name, pbs_install.registration()
    )
    with contextlib.suppress(SchedulerError):
        if pbs_install.is_installed(server, chosen):
            directives = []
    lines = [f"qmgr -c '{directive}'" for directive in directives] + scheduler.commands()
    if starts_now:
        lines += [f"qmgr -c '{directive}'" for directive in pbs_ranks.rank_directives(server)]
    if as_json:
        files = {config_name: config} if directives else {}
        host, notes = host_json(plan)
        shown = {"host": host, "files": files, "commands": lines, "notes": notes}
        typer.echo(json.dumps(shown, indent=2))
        return
    if not lines and (plan is None or not plan.steps):
        say(NOTHING_TO_DO)
        return
    say("# As root on the PBS server's host; with --yes this is done at once.")
    for line in host_lines(plan):
        say(line)
    if directives:
        say(f"cat > {config_name} <<'END'\n{config}END")
    if lines:
        say("\n".join(lines))


@uninstall_app.command("pbs")
def uninstall_pbs(
    settings: SettingsOption = None,
    yes: YesOption = False,
    commands_dir: PbsCommandsOption = "",
    hook_only: HookOnlyOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take Foretime out of a PBS server, and soft_walltime from its jobs.

    First the daemon ends, and the host loses what was installed on it but user, settings and what
    was learned. Jobs that run lose soft_walltime, too, as far as PBS lets them: not the subjobs of
    an array. sched_config gets back what it had, and job_sort_formula goes if it is ft_rank. Run it
    as root on the server's host.

    Example: [bold]foretime uninstall pbs --yes[/bold]
    """
    found = find_settings(settings)
    folder = commands_dir or noted(found).scheduler.commands_dir
    if not hook_only:
        require_commands("pbs", folder)
    scheduler, server = PbsScheduler(pbs_home()), PbsServer(folder)
    host = None if hook_only else _HostUndo(found)
    if yes:
        outcome = Outcome()
        if host is not None:
            host.run(outcome)
        pbs_install.uninstall(server, outcome)
        scheduler.uninstall(outcome)
        pbs_ranks.uninstall_ranks(server, outcome)
        _say(outcome, as_json)
        return
    lines = [] if host is None else host.shown
    lines += [*pbs_install.uninstall_lines(), *scheduler.uninstall_commands()]
    with contextlib.suppress(SchedulerError):
        lines += pbs_ranks.uninstall_lines(server)
    if as_json:
        typer.echo(json.dumps({"commands": lines}, indent=2))
        return
    say("# As root on the PBS server's host; with --yes this is done at once.")
    say("\n".join(lines))


@install_app.command("slurm")
def install_slurm(
    settings: SettingsOption = None,
    conf: ConfOption = None,
    yes: YesOption = False,
    commands_dir: SlurmCommandsOption = "",
    hook_only: HookOnlyOption = False,
    as_json: JsonOption = False,
) -> None:
    """Install Foretime on slurmctld's host, or bring it up to date; all of it or nothing.

    First the host: user, folders, settings in mode observe, the group for slurmctld, AdminLevel
    Operator in slurmdbd, units, and the daemon runs. Then Slurm: the soft limit if it is needed,
    then the hook. What is there already stays. Without --yes it shows each command, file and line.
    Scripts are loaded in Slurm's own Lua before any is replaced. foretime doctor checks it all. Run
    it as root on slurmctld's host.

    Exit code 0: done, or nothing to do; 1: a step failed and all is as it was, the scheduler does
    not answer, or the doctor has found a problem; 2: it can't be done as things are.

    Example: [bold]foretime install slurm --yes[/bold]
    """
    found, text = find_settings(settings), ""
    if found.file is None and not hook_only:
        text = slurm_settings(commands_dir)
    chosen = parse_settings(text) if text else noted(found)
    site = _slurm_site(chosen, conf, commands_dir)
    hook = slurm_install.make_plan(site)
    folder = commands_dir or chosen.scheduler.commands_dir
    plan = None
    if not hook_only:
        plan = plan_host(
            Host(),
            chosen,
            found.file or daemon_options.SETTINGS_FILE,
            text,
            lambda plan: plan_slurm_rights(plan, site.controller, site.configuration, folder),
        )
    if yes:
        if hook.packages:
            raise InputError("; ".join(hook.packages))

        def put_hook(outcome: Outcome, undo: Undo) -> None:
            if not hook.empty:
                slurm_install.install(site, hook, outcome, undo)

        doctor = _Doctor(chosen, "slurm", folder, conf)
        _carry_out(plan, put_hook, hook.notes, doctor, as_json=as_json)
    elif as_json:
        typer.echo(json.dumps(plan_json(plan, hook), indent=2))
    else:
        say("\n".join(plan_lines(site, plan, hook)))


@uninstall_app.command("slurm")
def uninstall_slurm(
    settings: SettingsOption = None,
    conf: ConfOption = None,
    yes: YesOption = False,
    commands_dir: SlurmCommandsOption = "",
    hook_only: HookOnlyOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take Foretime out of Slurm, jobs included: the soft limit goes last.

    First the daemon ends, and the host loses what was installed on it but user, settings and what
    was learned. Waiting jobs get back what their users asked for. Files get the very content back
    that they had, or lose only Foretime's words if somebody changed them since. Run it as root on
    slurmctld's host.

    Example: [bold]foretime uninstall slurm --yes[/bold]
    """
    found = find_settings(settings)
    site = _slurm_site(noted(found), conf, commands_dir)
    host = None if hook_only else _HostUndo(found)
    if yes:
        outcome = Outcome()
        if host is not None:
            host.run(outcome)
        slurm_uninstall.uninstall(site, outcome)
        _say(outcome, as_json)
        return
    steps = [] if host is None else host.shown
    steps += slurm_uninstall.uninstall_steps(site)
    if as_json:
        typer.echo(json.dumps({"steps": steps}, indent=2))
    elif not steps:
        say(f"There is no {site.record_path}: nothing is installed.")
    else:
        say("# As root on slurmctld's host; with --yes this is done at once.")
        say("\n".join(steps))


def _slurm_site(chosen: Settings, conf: Path | None, commands_dir: str) -> slurm_install.SlurmSite:
    if conf is not None and not conf.is_file():
        raise InputError(f"--conf {conf}: there is no such file; name the slurm.conf of slurmctld")
    folder = commands_dir or chosen.scheduler.commands_dir
    require_commands("slurm", folder)
    return slurm_install.SlurmSite(SlurmController(folder), chosen, conf)


@dataclass(frozen=True, slots=True)
class _Doctor:
    """Looks at a site after an installation."""

    settings: Settings
    kind: str
    commands_dir: str
    conf: Path | None = None

    def look(self) -> list[Diagnosis]:
        wait_for_daemon(self.settings)
        return examine(site_checks(self.settings, self.kind, self.commands_dir, self.conf))


def _carry_out(
    plan: HostPlan | None,
    put_hook: Callable[[Outcome, Undo], None],
    notes: list[str],
    doctor: _Doctor,
    *,
    as_json: bool,
) -> None:
    """Do a plan and put the hook in; then the doctor looks, where the daemon has been started."""
    outcome = Outcome()
    with all_or_nothing() as undo:
        if plan is not None:
            do_all(plan.steps, outcome, undo)
        put_hook(outcome, undo)
    if not (outcome.done or outcome.notes):
        outcome.notes = [NOTHING_TO_DO]
    else:
        outcome.notes += notes + ([] if plan is None else plan.notes)
    if plan is None or not plan.host.runs_systemd:
        _say(outcome, as_json)
        return
    diagnoses = doctor.look()
    _say(outcome, as_json, diagnoses)
    raise typer.Exit(exit_code(diagnoses))


class _HostUndo:
    """Undoes what was installed on the host; what can't be undone is a note."""

    def __init__(self, found: SiteSettings) -> None:
        file = found.file or daemon_options.SETTINGS_FILE
        self._steps, self._forget = undo_host(Host(), file)
        self.shown = [step.shown for step in self._steps]
        self._stays = f"the user {USER}, {file.parent} and what was learned stay"

    def run(self, outcome: Outcome) -> None:
        for step in self._steps:
            try:
                step.do()
            except ForetimeError as error:
                outcome.notes.append(f"left: {step.shown} ({error})")
            else:
                outcome.done.append(step.shown)
        self._forget()
        if self._steps:
            outcome.notes.append(self._stays)


def _say(outcome: Outcome, as_json: bool, diagnoses: list[Diagnosis] | None = None) -> None:
    if as_json:
        told: dict[str, Any] = {"done": outcome.done, "notes": outcome.notes}
        if diagnoses is not None:
            told["doctor"] = diagnoses_json(diagnoses)
        typer.echo(json.dumps(told, indent=2))
        return
    for line in outcome.done:
        say(f"done: {line}")
    for note in outcome.notes:
        say(note)
    if diagnoses is not None:
        ill = [one for one in diagnoses if one.finding.health is not Health.OK]
        say(f"foretime doctor: {len(diagnoses) - len(ill)} of {len(diagnoses)} checks are ok")
        if ill:
            print_uncut(diagnoses_table(ill))
