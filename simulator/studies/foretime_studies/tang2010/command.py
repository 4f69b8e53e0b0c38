"""``foretime study tang2010``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.frame.progress_bar import later_progress_bar
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.bluegene.machine_source import find_bgp_machine
from foretime_sim.workloads.bgp_jobs import processors_per_node, with_bgp_machine
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Copies, Seed, Size, Workers
from foretime_studies.frame.report import StudyReport
from foretime_studies.tang2010 import study as tang
from foretime_studies.tang2010.claims import claims_table
from foretime_studies.tang2010.figures import figures
from foretime_studies.tang2010.tables import tables

FLAT = "flat"


@study_command(shown=("table3", "figure5", "figure8", "claims"))
def tang2010(
    folder: Path,
    log: Annotated[
        Path | None,
        typer.Option(
            help="Job log, such as ANL-Intrepid-2009-1.swf.gz; else a generated workload."
        ),
    ] = None,
    processors: Size = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="intrepid|flat|FILE",
            help="What it runs on: Intrepid, a flat pool, or the Blue Gene that a TOML file "
            "describes. Intrepid for the generated workload and Intrepid's log, else flat.",
        ),
    ] = None,
    repeat: Copies = 10,
    months: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=f"Further generated months, of other seeds; {tang.MONTHS} if not given. "
            "Not with --log.",
        ),
    ] = None,
    seed: Seed = 1,
    workers: Workers = 2,
) -> StudyReport:
    """Run all of Tang et al. (IPDPS 2010): tables I and III, figures 2 to 10, and what they say.

    Example: [bold]foretime study tang2010 --output-dir tang2010[/bold]
    """
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
    return report(found, "a flat pool" if chosen is None else chosen.name)


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


def report(found: tang.Tang2010, machine: str) -> StudyReport:
    """Put everything together; ``machine`` is what it ran on."""
    main = found.main
    history = 0 if main.history is None else len(main.history)
    workload = (
        f"Workload: {main.test.name}; {history:,} jobs to learn from, {len(main.test):,} simulated "
        f"on {machine}."
    )
    correction = (
        "A job that outlives t_sched is planned with its request from then on; the table of "
        "corrections has the other rules."
    )
    notes = (
        workload,
        *(f"{note[0].upper()}{note[1:].removesuffix('.')}." for note in found.notes),
        correction,
        f"Seed {found.seed}; {found.repeats} jittered copies.",
    )
    title = "Tang et al. (IPDPS 2010) again" + (", on a generated workload" * found.generated)
    return StudyReport(title, notes, (*tables(found), claims_table(found)), figures(found))
