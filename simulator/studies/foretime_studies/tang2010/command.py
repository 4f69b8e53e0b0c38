"""``foretime study tang2010``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.output_files import JsonOption, check_folder
from foretime_sidecar.cli.progress_bar import later_progress_bar
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.bluegene.machine_source import find_bgp_machine
from foretime_sim.workloads.bgp_jobs import processors_per_node, with_bgp_machine
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.command_output import print_report, study_command
from foretime_studies.tang2010 import study as tang

FLAT = "flat"
SHOWN = ("table3", "figure5", "figure8", "claims")
"""Tables that are printed; all are written."""


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
        int | None,
        typer.Option(
            min=0,
            help=f"Further generated months, of other seeds; {tang.MONTHS} if not given. "
            "Not with --log.",
        ),
    ] = None,
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
    if log is not None and months is not None:
        raise InputError(f"--months {months}: a log has the months that it has; leave it out")
    chosen = _machine(machine, log)
    workload, notes = (None, ()) if log is None else _read(log, processors, chosen)
    if log is None and processors is not None:
        raise InputError("--processors is for --log; the generated workload is for Intrepid")
    with later_progress_bar("simulating", "runs") as begin:
        found = tang.study(
            workload,
            chosen,
            seed=seed,
            repeats=repeat,
            months=tang.MONTHS if months is None else months,
            workers=workers,
            notes=notes,
            begin=begin,
        )
    from foretime_studies.tang2010.figures import figures  # matplotlib is slow to load
    from foretime_studies.tang2010.report import report

    on = "a flat pool" if chosen is None else chosen.name
    options = (
        ("--log", None if log is None else log.name, None),
        ("--processors", processors, None),
        ("--machine", machine, None),
        ("--repeat", repeat, 10),
        ("--months", months, None),
        ("--seed", seed, 1),
    )
    written = report(found, study_command("tang2010", None, options), on)
    written.write(output_dir, figures(found))
    print_report(written, SHOWN, output_dir, time.perf_counter() - began, as_json=as_json)


def _machine(text: str | None, log: Path | None) -> BgpMachine | None:
    """Choose what to run on."""
    if text is None:
        own = log is None or log.name.startswith(tang.INTREPID_LOG)
        text = "intrepid" if own else FLAT
    return None if text == FLAT else find_bgp_machine(text)


def _read(
    log: Path, processors: int | None, machine: BgpMachine | None
) -> tuple[Workload, tuple[str, ...]]:
    """Read a log with the requests and runtimes that it has, and put it on its machine."""
    job_log = read_log(log)
    # R above 1 is part of what is studied; jobs are killed at their request all the same.
    filters = Filters(overruns="keep")
    if machine is None:
        workload, report = workload_of_log(job_log, processors=processors, filters=filters)
        return workload, (report.text,)
    if processors is not None:
        raise InputError(
            f"--processors {processors}: {machine.name} says how large it is; leave it out"
        )
    per_node = processors_per_node(job_log, machine)
    workload, report = workload_of_log(
        job_log,
        processors=machine.nodes * per_node,
        filters=replace(filters, occupied="allocated"),
    )
    placed = with_bgp_machine(workload, machine, processors_per_node=per_node, leave_out=True)
    return placed, (report.text, *placed.notes[len(workload.notes) :])
