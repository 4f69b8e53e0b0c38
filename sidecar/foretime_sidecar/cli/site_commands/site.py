"""``foretime site``: what a site's scheduler goes by, in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.compressed_files import write_text
from foretime_sim.files.file_kinds import exists
from foretime_sim.sites.site_file import format_site, read_site
from foretime_sim.workloads.site_clock import zone_of

from foretime_sidecar.cli.frame.output_files import check_outputs
from foretime_sidecar.cli.options.json_option import JsonOption, JsonTablesOption
from foretime_sidecar.cli.reports.site_report import (
    as_json,
    not_modelled_lines,
    refusal_lines,
    refusals,
    site_report,
    summary,
)
from foretime_sidecar.cli.reports.whole_tables import print_uncut
from foretime_sidecar.clients.slurm.commands import SubprocessRunner
from foretime_sidecar.site_import.live_output import ask_slurm
from foretime_sidecar.site_import.saved_output import read_folder
from foretime_sidecar.site_import.slurm_site import import_site

site_app = typer.Typer(
    help="Import what a site's Slurm schedules by into one file; show and check such a file.",
    no_args_is_help=True,
)
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A site's file (site.toml).")]


@site_app.command("import")
def import_command(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Folder with saved output of Slurm's commands, or with slurm.conf. Default: ask "
            "the Slurm of this machine.",
        ),
    ] = None,
    commands_dir: Annotated[
        str,
        typer.Option(
            "--commands-dir", metavar="DIR", help="Folder of Slurm's commands. Default: the PATH."
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
    """Write what a live Slurm, or saved output of it, says as a site's file.

    The file has nodes, partitions, SchedulerParameters, priorities, QOS, accounts and reservations,
    and names what is not modelled. What a simulation refuses is said. Change it to ask "what if".

    Example: [bold]foretime site import --from saved/ --output site.toml[/bold]
    """
    if folder is not None and commands_dir:
        raise InputError("--from and --commands-dir: give one of them")
    if output is not None:
        check_outputs({"--output": output}, {})
        if exists(output) and not force:
            raise InputError(
                f"--output {output}: is there already, and changes in it would be lost; name"
                " another file, or give --force"
            )
    zone = zone_of(time_zone)
    if folder is not None:
        printed = read_folder(folder)
    else:
        printed = ask_slurm(SubprocessRunner(commands_dir, attempts=2))
    found = import_site(printed, zone)
    text = format_site(found.site, found.remarks)
    if output is not None:
        write_text(output, text)
    if as_json_text:
        told = None if output is None else str(output)
        answer = {"file": told, "site": as_json(found.site), "refused": refusals(found.site)}
        typer.echo(json.dumps(answer, indent=2))
        return
    if output is None:
        typer.echo(text, nl=False)
    notes = (*not_modelled_lines(found.site), *refusal_lines(found.site))
    for line in (summary(found.site), *notes):
        typer.echo(line, err=output is None)
    if output is not None:
        typer.echo(f"Written to {output}.")


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
    typer.echo(summary(site))
    for line in (*not_modelled_lines(site), *refusal_lines(site)):
        typer.echo(line)


@site_app.command("check")
def check(file: FileArgument) -> None:
    """Check a site's file; the first mistake is named with its table, key and value.

    What a simulation refuses of a good file is said, too.

    Example: [bold]foretime site check site.toml[/bold]
    """
    site = read_site(file)
    typer.echo(f"{file}: good; {summary(site)}")
    for line in refusal_lines(site):
        typer.echo(line)
