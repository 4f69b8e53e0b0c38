"""``foretime doctor``: whether the installation is sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.cli.options.daemon_options import SettingsOption
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.schedulers_here import schedulers_here
from foretime_sidecar.cli.options.site_settings import SiteSettings, find_settings
from foretime_sidecar.cli.reports.diagnoses import diagnoses_json, diagnoses_table
from foretime_sidecar.cli.reports.whole_tables import print_uncut
from foretime_sidecar.install.doctor.checkup import (
    Check,
    Finding,
    examine,
    exit_code,
    ok,
    warning,
)
from foretime_sidecar.install.doctor.site import site_checks


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
    folder = commands_dir or chosen.scheduler.commands_dir
    kind = chosen.scheduler.kind
    if found.file is None and schedulers_here(folder) == ["pbs"]:
        kind = "pbs"  # without settings the scheduler is the one whose commands are here
    first: list[tuple[str, Check]] = [("settings", lambda: _settings(found))]
    diagnoses = examine([*first, *site_checks(chosen, kind, folder, conf)])
    if as_json:
        typer.echo(json.dumps(diagnoses_json(diagnoses), indent=2))
    else:
        print_uncut(diagnoses_table(diagnoses))
    raise typer.Exit(exit_code(diagnoses))


def _settings(found: SiteSettings) -> Finding:
    if found.missing:
        return warning(
            found.missing,
            "foretime install slurm (or pbs) writes one; or name the daemon's with --settings",
        )
    return ok(str(found.file))
