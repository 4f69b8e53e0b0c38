"""``foretime study``: published studies, run again."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.errors import InputError
from foretime_sim.bgp_jobs import with_bgp_machine
from foretime_sim.bgp_machine import BgpMachine, intrepid
from foretime_sim.bgp_machine_file import read_bgp_machine
from foretime_sim.filters import Filters, workload_of_log
from foretime_sim.log_files import read_log
from foretime_sim.studies import tang2010 as tang
from foretime_sim.studies.study_tables import StudyTable
from foretime_sim.workload import Workload
from rich.console import Console
from rich.table import Table

from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import progress_bar

app = typer.Typer(help="Run published studies again, and compare.", no_args_is_help=True)

FLAT = "flat"
SHOWN = ("table3", "figure5", "figure8", "claims")
"""Tables that are printed; all are written."""


@app.callback()
def _root() -> None:
    pass


@app.command("tang2010")
def tang2010(
    log: Annotated[
        Path | None,
        typer.Option(
            help="Job log, such as ANL-Intrepid-2009-1.swf.gz; else a generated workload."
        ),
    ] = None,
    processors: Annotated[
        int | None, typer.Option(help="Size of the log's machine; the log's own if not given.")
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="intrepid|flat|FILE",
            help="What it runs on: Intrepid, a flat pool, or the Blue Gene that a TOML file "
            "describes. Intrepid for the generated workload and Intrepid's log, else flat.",
        ),
    ] = None,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder for report, tables and figures.")
    ] = Path("tang2010"),
    repeat: Annotated[
        int, typer.Option(min=0, help="Jittered copies of the workload for the intervals.")
    ] = 10,
    months: Annotated[
        int, typer.Option(min=0, help="Further generated months, of other seeds; not with --log.")
    ] = tang.MONTHS,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the generated workload and the jittered copies.")
    ] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Threads.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Run all of Tang et al. (IPDPS 2010): tables I and III, figures 2 to 10, and what they say.

    Example: [bold]foretime study tang2010 --output-dir tang2010[/bold]
    """
    began = time.perf_counter()
    check_folder("--output-dir", output_dir)
    chosen = _machine(machine, log)
    workload, notes = (None, ()) if log is None else _read(log, processors, chosen)
    if log is None and processors is not None:
        raise InputError("--processors is for --log; the generated workload is for Intrepid")
    with ExitStack() as bar:

        def begin(runs: int) -> Callable[[int], None]:
            return bar.enter_context(progress_bar("simulating", runs, "runs"))

        found = tang.study(
            workload,
            chosen,
            seed=seed,
            repeats=repeat,
            months=months,
            workers=workers,
            notes=notes,
            begin=begin,
        )
    from foretime_sim.studies.tang2010_figures import figures  # matplotlib is slow to load
    from foretime_sim.studies.tang2010_report import report

    on = "a flat pool" if chosen is None else chosen.name
    written = report(found, _command(log, processors, machine, repeat, months, seed), on)
    written.write(output_dir, figures(found))
    if as_json:
        typer.echo(json.dumps(written.to_json(), indent=2))
        return
    shown = [_shown(table) for table in written.tables if table.key in SHOWN]
    needed = max(Console(width=1_000).measure(table).minimum for table in shown)
    console = Console(width=max(Console().width, needed))  # a long line, not a number cut short
    for note in written.notes:
        console.print(note, highlight=False, markup=False)
    for table in shown:
        console.print()
        console.print(table)
    console.print(
        f"\n{output_dir}: report.md, results.json, tables as CSV, figures as SVG and PNG "
        f"({time.perf_counter() - began:.0f} s)",
        highlight=False,
        markup=False,
    )


def _machine(text: str | None, log: Path | None) -> BgpMachine | None:
    """Choose what to run on."""
    if text is None:
        own = log is None or log.name.startswith(tang.INTREPID_LOG)
        text = "intrepid" if own else FLAT
    if text == FLAT:
        return None
    return intrepid() if text == "intrepid" else read_bgp_machine(Path(text))


def _read(
    log: Path, processors: int | None, machine: BgpMachine | None
) -> tuple[Workload, tuple[str, ...]]:
    """Read a log with the requests and runtimes that it has, and put it on its machine."""
    job_log = read_log(log)
    # R above 1 is part of what is studied; jobs are killed at their request all the same.
    workload, report = workload_of_log(
        job_log, processors=processors, filters=Filters(overruns="keep")
    )
    if machine is None:
        return workload, (report.text,)
    cores = workload.machine_processors == machine.nodes * machine.cores_per_node
    per_node = machine.cores_per_node if cores else 1
    placed = with_bgp_machine(workload, machine, processors_per_node=per_node, leave_out=True)
    return placed, (report.text, *placed.notes[len(workload.notes) :])


def _command(
    log: Path | None,
    processors: int | None,
    machine: str | None,
    repeat: int,
    months: int,
    seed: int,
) -> str:
    """Give the command that writes the same again."""
    words = ["foretime", "study", "tang2010"]
    for option, value, default in (
        ("--log", None if log is None else log.name, None),
        ("--processors", processors, None),
        ("--machine", machine, None),
        ("--repeat", repeat, 10),
        ("--months", months, tang.MONTHS),
        ("--seed", seed, 1),
    ):
        if value != default:
            words += [option, str(value)]
    return shlex.join(words)


def _shown(table: StudyTable) -> Table:
    """Lay a study's table out for a terminal."""
    made = Table(title=table.title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(table.columns):
        number = not any(isinstance(row[place], str) for row in table.rows)
        made.add_column(
            column.title, justify="right" if number else "left", no_wrap=len(column.title) < 14
        )
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        made.add_row(*(column.write(cell) for column, cell in cells))
    return made
