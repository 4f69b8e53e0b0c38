"""The sizes of the machines of a study of several logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from foretime_estimators.jobs.errors import InputError

SizesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--processors",
        metavar="LOG=COUNT",
        help="Size of a log's machine, the log by the beginning of its file's name; may be "
        "given repeatedly. Else the paper's for its logs, and the log's own for others.",
    ),
]


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
