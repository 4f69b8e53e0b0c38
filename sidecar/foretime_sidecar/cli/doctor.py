"""``foretime doctor``: whether the installation is sound."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from foretime_sidecar.doctor import Check, Diagnosis, Finding, Health, examine, exit_code, warning
from foretime_sidecar.doctor_pbs import pbs_checks
from foretime_sidecar.doctor_table import table_checks
from foretime_sidecar.pbs_server import PbsServer
from foretime_sidecar.settings import Settings, read_settings

_STYLES = {Health.OK: "green", Health.WARNING: "yellow", Health.PROBLEM: "red"}


def doctor(
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="The daemon's settings, if not defaults."),
    ] = None,
    commands_dir: Annotated[
        str,
        typer.Option(
            "--commands-dir",
            metavar="DIR",
            help="Folder of the scheduler's commands; the PATH if not given.",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look whether the table and the hook in PBS are sound, and say what to do where not.

    Run it as root on the server's host. With settings for Slurm only the table is looked at. Exit
    code 1 if there is a problem; warnings don't count.

    Example: [bold]foretime doctor --settings /etc/foretime/foretime.toml[/bold]
    """
    chosen = Settings() if settings is None else read_settings(settings)
    now = int(time.time())
    own: list[tuple[str, Check]]
    if settings is not None and chosen.scheduler.kind == "slurm":
        own = [("Slurm", _no_slurm_checks)]
    else:
        own = pbs_checks(chosen, PbsServer(commands_dir), now, commands_dir)
    diagnoses = examine([*table_checks(chosen, now), *own])
    if as_json:
        typer.echo(json.dumps([_as_json(diagnosis) for diagnosis in diagnoses], indent=2))
    else:
        Console(soft_wrap=True).print(_as_table(diagnoses))
    raise typer.Exit(exit_code(diagnoses))


def _no_slurm_checks() -> Finding:
    return warning(
        "there are no checks of Slurm and of the hook in it yet: only the table was looked at",
        "compare slurm.conf and the hook with plugin/README.md",
    )


def _as_json(diagnosis: Diagnosis) -> dict[str, str]:
    finding = diagnosis.finding
    return {
        "check": diagnosis.name,
        "health": finding.health.value,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _as_table(diagnoses: list[Diagnosis]) -> Table:
    table = Table("check", "", "what is so, and what to do", box=None, pad_edge=False)
    for diagnosis in diagnoses:
        finding = diagnosis.finding
        told = finding.message + (f"\n-> {finding.remedy}" if finding.remedy else "")
        health = Text(finding.health.value, style=_STYLES[finding.health])
        table.add_row(diagnosis.name, health, Text(told))
    return table
