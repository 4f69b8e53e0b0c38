"""The logs of studies of several, read and named, and the sizes of their machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log

from foretime_studies.gaussier2015.paper import paper_log
from foretime_studies.gaussier2015.study import StudiedLog

_DAY_S = 86_400
SizesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--processors",
        metavar="LOG=COUNT",
        help="Size of a log's machine, the log by the beginning of its file's name; may be "
        "given repeatedly. Else the paper's for its logs, and the log's own for others.",
    ),
]


def studied_logs(logs: list[Path], given: Sequence[str]) -> list[StudiedLog]:
    """Read the logs once, so that one that can't be simulated is refused before all runs.

    Parameters
    ----------
    logs
        Their files.
    given
        What ``--processors`` says.

    Raises
    ------
    InputError
        If a log can't be simulated, two have one name, or a size is of no log.
    """
    sizes = sizes_of(given, logs)
    studied: list[StudiedLog] = []
    for path in logs:
        printed = paper_log(path.name)
        size = sizes.get(path.name, None if printed is None else printed.processors)
        log = read_log(path)
        if not (log.requested_time.filled(0) > 0).any():
            raise InputError(
                f"{path}: none of the {len(log):,} jobs has a requested time, with which all "
                "that is here is compared; leave the log out"
            )
        workload, filtered = workload_of_log(log, processors=size)
        name = workload.name if printed is None else printed.name
        if name in [other.name for other in studied]:
            raise InputError(f"{path}: another log is called {name}, too; give each once")
        days = float(workload.submit_time[-1] - workload.submit_time[0]) / _DAY_S
        studied.append(
            StudiedLog(
                name,
                path,
                workload.machine_processors,
                filtered.jobs_read,
                len(workload),
                days,
                filtered.text,
            )
        )
    return studied


def sizes_of(given: Sequence[str], logs: Sequence[Path]) -> dict[str, int]:
    """Read what ``--processors`` says, by file name; InputError if a size is of no log."""
    sizes: dict[str, int] = {}
    for text in given:
        name, _, count = text.partition("=")
        hit = [log.name for log in logs if log.name.startswith(name)]
        if not name or not count.isdecimal() or int(count) < 1:
            raise InputError(
                f"--processors {text}: write a log and its size, such as CEA-Curie=80640"
            )
        if len(hit) != 1:
            told = "none of the logs begins" if not hit else f"{len(hit)} logs begin"
            raise InputError(
                f"--processors {text}: {told} so; there are {', '.join(log.name for log in logs)}"
            )
        sizes[hit[0]] = int(count)
    return sizes
