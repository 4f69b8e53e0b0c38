"""``foretime site``: what a site's scheduler goes by, in one file."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.compressed_files import write_text
from foretime_sim.files.file_kinds import exists
from foretime_sim.sites.site_file import Site, format_site, read_site
from foretime_sim.workloads.site_clock import zone_of

from foretime_sidecar.cli.frame.output_files import check_outputs
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.json_option import JsonOption, JsonTablesOption
from foretime_sidecar.cli.options.schedulers_here import schedulers_here
from foretime_sidecar.cli.options.site_settings import find_settings
from foretime_sidecar.cli.reports.site_report import (
    as_json,
    not_modelled_lines,
    refusal_lines,
    refusals,
    site_report,
    summary,
)
from foretime_sidecar.cli.reports.whole_tables import print_uncut
from foretime_sidecar.clients.pbs.commands import PbsProcesses
from foretime_sidecar.clients.slurm.commands import SubprocessRunner
from foretime_sidecar.site_import.live_output import ask_slurm
from foretime_sidecar.site_import.pbs_live_output import ask_pbs
from foretime_sidecar.site_import.pbs_site import import_pbs_site
from foretime_sidecar.site_import.saved_output import read_folder
from foretime_sidecar.site_import.slurm_site import import_site

site_app = typer.Typer(
    help="Import what a site's Slurm or PBS goes by into one file; show and check such a file.\n\n"
    "Example: foretime site import -o site.toml",
    no_args_is_help=True,
)


class SchedulerName(enum.StrEnum):
    """Whose site it is."""

    SLURM = "slurm"
    PBS = "pbs"


FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A site's file (site.toml).")]


@site_app.command("import")
def import_command(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Folder with saved output of Slurm's or PBS's commands, or with slurm.conf. "
            "Default: ask the scheduler of this machine.",
        ),
    ] = None,
    scheduler: Annotated[
        SchedulerName | None,
        typer.Option(
            "--scheduler",
            help="slurm or pbs. Default: the one whose commands or output are there; of both the "
            "daemon's.",
        ),
    ] = None,
    commands_dir: Annotated[
        str,
        typer.Option(
            "--commands-dir",
            metavar="DIR",
            help="Folder of the scheduler's commands. Default: the PATH.",
        ),
    ] = "",
    time_zone: Annotated[
        str,
        typer.Option(help="Time zone of the dates in saved output (Europe/Stockholm)."),
    ] = "UTC",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write. Default: print the file."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over the file, and lose changes made in it.")
    ] = False,
    as_json_text: JsonOption = False,
) -> None:
    """Write what a live Slurm or PBS, or saved output of it, says as a site's file.

    The file has nodes, partitions or queues, settings of the scheduler, priorities, limits, shares
    and reservations, and names what is not modelled. What a simulation refuses is said. Change it
    to ask "what if". For PBS run it as root where pbs_sched runs.

    Example: [bold]foretime site import --from saved/ --output site.toml[/bold]
    """
    if folder is not None and commands_dir:
        raise InputError("--from and --commands-dir: give one of them")
    if output is not None:
        check_outputs({"--output": output}, {})
        if folder is not None and output.resolve().parent == folder.resolve():
            raise InputError(
                f"--output {output}: is in the folder of saved output, which holds nothing else;"
                " name a file in another one"
            )
        if exists(output) and not force:
            raise InputError(
                f"--output {output}: is there already, and changes in it would be lost; name"
                " another file, or give --force"
            )
    site, remarks = _imported(folder, scheduler, commands_dir, zone_of(time_zone))
    text = format_site(site, remarks)
    if output is not None:
        write_text(output, text)
    if as_json_text:
        told = None if output is None else str(output)
        answer = {"file": told, "site": as_json(site), "refused": refusals(site)}
        typer.echo(json.dumps(answer, indent=2))
        return
    if output is None:
        typer.echo(text, nl=False)
    notes = (*not_modelled_lines(site), *refusal_lines(site))
    for line in (summary(site), *notes):
        say(line, err=output is None)
    if output is not None:
        say(f"Written to {output}.")


def _imported(
    folder: Path | None, scheduler: SchedulerName | None, commands_dir: str, zone: tzinfo
) -> tuple[Site, Mapping[str, str]]:
    """Give the site of saved output, or of the scheduler that is here, and remarks for its file."""
    files_zone: tzinfo | None = zone
    if folder is not None:
        printed = read_folder(folder)
        if scheduler is not None and printed.schedulers != [scheduler.value]:
            raise InputError(
                f"--scheduler {scheduler.value}: {folder} has output of {printed.schedulers[0]}:"
                " leave the option out"
            )
    elif _scheduler_here(scheduler, commands_dir) == "pbs":
        printed = ask_pbs(PbsProcesses(commands_dir, attempts=2))
        # The commands are run in UTC; the scheduler's files are in the machine's own time.
        zone, files_zone = UTC, None
    else:
        printed = ask_slurm(SubprocessRunner(commands_dir, attempts=2))
    if printed.schedulers == ["pbs"]:
        return import_pbs_site(printed, files_zone, zone), {}
    found = import_site(printed, zone)
    return found.site, found.remarks


def _scheduler_here(told: SchedulerName | None, commands_dir: str) -> str:
    if told is not None:
        return told.value
    here = schedulers_here(commands_dir)
    if len(here) > 1:
        daemons = find_settings(None)
        if daemons.file is not None:
            return daemons.settings.scheduler.kind
        raise InputError("the commands of Slurm and of PBS are here: give --scheduler slurm or pbs")
    if not here:
        where = f"in {commands_dir}" if commands_dir else "on the PATH"
        raise InputError(
            f"neither scontrol nor qmgr is {where}: name the folder of the scheduler's commands"
            " with --commands-dir, or give saved output with --from"
        )
    return here[0]


@site_app.command("show")
def show(file: FileArgument, as_json_text: JsonTablesOption = False) -> None:
    """Show what a site's file says, and what of the site is not modelled.

    Example: [bold]foretime site show site.toml[/bold]
    """
    site = read_site(file)
    if as_json_text:
        typer.echo(json.dumps(as_json(site), indent=2))
        return
    print_uncut(site_report(site))
    say(summary(site))
    for line in (*not_modelled_lines(site), *refusal_lines(site)):
        say(line)


@site_app.command("check")
def check(file: FileArgument) -> None:
    """Check a site's file; the first mistake is named with its table, key and value.

    What of a good file is not modelled, and what a simulation refuses, is said, too.

    Example: [bold]foretime site check site.toml[/bold]
    """
    site = read_site(file)
    say(f"{file}: good; {summary(site)}")
    for line in (*not_modelled_lines(site), *refusal_lines(site)):
        say(line)
