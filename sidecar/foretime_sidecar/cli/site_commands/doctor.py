"""``foretime doctor``: whether the installation is sound."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from rich.table import Column, Table
from rich.text import Text

from foretime_sidecar.cli.options.daemon_options import SettingsOption
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.schedulers_here import schedulers_here
from foretime_sidecar.cli.options.site_settings import SiteSettings, find_settings
from foretime_sidecar.cli.reports.whole_tables import print_uncut
from foretime_sidecar.clients.pbs.server import PbsServer
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install.doctor.checkup import (
    Check,
    Diagnosis,
    Finding,
    Health,
    examine,
    exit_code,
    ok,
    warning,
)
from foretime_sidecar.install.doctor.daemon import daemon
from foretime_sidecar.install.doctor.pbs import pbs_checks
from foretime_sidecar.install.doctor.slurm import slurm_checks
from foretime_sidecar.install.doctor.table import table_checks
from foretime_sidecar.settings.settings import Settings

_STYLES = {Health.OK: "green", Health.WARNING: "yellow", Health.PROBLEM: "red"}


def doctor(
    settings: SettingsOption = None,
    commands_dir: Annotated[
        str,
        typer.Option(
            "--commands-dir",
            metavar="DIR",
            help="Folder of the scheduler's commands. Default: the PATH.",
        ),
    ] = "",
    conf: Annotated[
        Path | None,
        typer.Option(
            "--conf", metavar="FILE", help="slurm.conf. Default: where slurmctld says it is."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the table, the scheduler and the hook, and suggest fixes.

    Run it as root on the host of slurmctld or pbs_server. Exit code 1 if there is a problem;
    warnings do not count.

    Example: [bold]foretime doctor[/bold]
    """
    if conf is not None and not conf.is_file():
        raise InputError(f"--conf {conf}: there is no such file; name slurm.conf")
    found = find_settings(settings)
    chosen = found.settings
    now = int(time.time())
    folder = commands_dir or chosen.scheduler.commands_dir
    kind = chosen.scheduler.kind
    if found.file is None and schedulers_here(folder) == ["pbs"]:
        kind = "pbs"  # without settings the scheduler is the one whose commands are here
    own = _OWN_CHECKS[kind](chosen, now, folder, conf)
    first: list[tuple[str, Check]] = [("settings", lambda: _settings(found))]
    last: list[tuple[str, Check]] = [("daemon", lambda: daemon(chosen)), *own]
    diagnoses = examine([*first, *table_checks(chosen, now), *last])
    if as_json:
        typer.echo(json.dumps([_as_json(diagnosis) for diagnosis in diagnoses], indent=2))
    else:
        print_uncut(_as_table(diagnoses))
    raise typer.Exit(exit_code(diagnoses))


def _settings(found: SiteSettings) -> Finding:
    if found.missing:
        return warning(found.missing, "name the daemon's with --settings, or write one there")
    return ok(str(found.file))


def _slurm_checks(
    settings: Settings, now: int, folder: str, conf: Path | None
) -> list[tuple[str, Check]]:
    if settings.scheduler.client == "demo":
        said = "foretime demo's own, within its daemon: no commands and no hook to check"
        return [("scheduler", lambda: ok(said))]
    return slurm_checks(settings, SlurmController(folder), now, folder, conf)


def _pbs_checks(
    settings: Settings, now: int, folder: str, conf: Path | None
) -> list[tuple[str, Check]]:
    return pbs_checks(settings, PbsServer(folder), now, folder)


_OWN_CHECKS = {"slurm": _slurm_checks, "pbs": _pbs_checks}


def _as_json(diagnosis: Diagnosis) -> dict[str, str]:
    finding = diagnosis.finding
    return {
        "check": diagnosis.name,
        "health": finding.health.value,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _as_table(diagnoses: list[Diagnosis]) -> Table:
    named = (Column("check", no_wrap=True), Column("", no_wrap=True))
    table = Table(*named, "what is so, and what to do", box=None, pad_edge=False)
    for diagnosis in diagnoses:
        finding = diagnosis.finding
        told = finding.message + (f"\n-> {finding.remedy}" if finding.remedy else "")
        health = Text(finding.health.value, style=_STYLES[finding.health])
        table.add_row(diagnosis.name, health, Text(told))
    return table
