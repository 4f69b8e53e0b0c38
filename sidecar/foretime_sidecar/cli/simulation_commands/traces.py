"""``foretime traces``: job logs of the Parallel Workloads Archive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from foretime_sim.logs.workload_archive import ARCHIVE_URL, LOGS, fetch, find_log
from rich.table import Table

from foretime_sidecar.cli.frame.output_files import check_folder
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sidecar.cli.options.json_option import JsonTablesOption
from foretime_sidecar.cli.reports.whole_tables import print_whole

ArchiveOption = Annotated[
    str, typer.Option(metavar="URL", help="Address of the archive, or of a mirror of it.")
]

app = typer.Typer(
    help="Fetch job logs from the Parallel Workloads Archive.\n\nExample: foretime traces list",
    no_args_is_help=True,
)


@app.command("list")
def list_command(archive: ArchiveOption = ARCHIVE_URL, as_json: JsonTablesOption = False) -> None:
    """Show the logs that can be fetched.

    Example: [bold]foretime traces list --json[/bold]
    """
    if as_json:
        rows = [
            {
                "name": log.name,
                "jobs": log.jobs,
                "processors": log.processors,
                "years": log.years,
                "url": log.url(archive),
            }
            for log in LOGS
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("jobs", justify="right")
    table.add_column("processors", justify="right")
    table.add_column("recorded")
    for log in LOGS:
        table.add_row(log.name, f"{log.jobs:,}", f"{log.processors:,}", log.years)
    print_whole(table)
    say(f"\nParallel Workloads Archive, {archive}")
    say("Whoever uses a log is asked to acknowledge who made it: see its header.")


@app.command("get")
def get_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names as listed.")],
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for the logs.")
    ] = Path(),
    archive: ArchiveOption = ARCHIVE_URL,
    as_json: JsonTablesOption = False,
) -> None:
    """Fetch logs by name, and verify them: records and checksum.

    Example: [bold]foretime traces get ANL-Intrepid-2009-1[/bold]
    """
    logs = [find_log(name) for name in names]
    check_folder("--output-dir", output_dir)
    fetched = []
    for log in logs:
        with progress_bar(log.name, None, "bytes") as show:
            path, new = fetch(log, output_dir, archive=archive, progress=show)
        fetched.append({"name": log.name, "path": str(path), "jobs": log.jobs, "fetched": new})
        if not as_json:
            how = "fetched and verified" if new else "is there already, verified"
            say(f"{path}: {how}, {log.jobs:,} jobs")
    if as_json:
        typer.echo(json.dumps(fetched, indent=2))
