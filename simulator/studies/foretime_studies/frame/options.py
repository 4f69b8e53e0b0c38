"""Options that several studies have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from foretime_estimators.jobs.errors import InputError

Logs: TypeAlias = Annotated[
    list[Path],
    typer.Argument(metavar="LOG...", help="Job logs with requested times, such as KTH's in SWF."),
]
Copies: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Jittered copies of each log for the intervals.")
]
Seed: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Of all that is drawn at random, such as jittered copies.")
]
Workers: TypeAlias = Annotated[int, typer.Option(min=1, help="Runs at once.")]
Size: TypeAlias = Annotated[
    int | None, typer.Option(help="Size of the log's machine; the log's own if not given.")
]
Sizes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--processors",
        metavar="LOG=COUNT",
        help="Size of a log's machine, the log by the beginning of its file's name; may be "
        "given repeatedly. Else the paper's for its logs, and the log's own for others.",
    ),
]


def check_one_log(processors: int | None, logs: Sequence[Path]) -> None:
    """Refuse a single size for several logs."""
    if processors is not None and len(logs) != 1:
        raise InputError("--processors is for a single log: run each by itself")


def sizes_of(given: Sequence[str] | None, logs: Sequence[Path]) -> dict[str, int]:
    """Read what ``--processors`` says, by file name; InputError if a size is of no log."""
    sizes: dict[str, int] = {}
    for text in given or ():
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
