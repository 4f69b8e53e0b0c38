"""The files that a command writes: refused at once where they can't be, and tables as CSV."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

SWF_ENDINGS = (".swf", ".swf.gz", ".swf.xz")


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse at once what could only be refused after the whole run otherwise.

    Parameters
    ----------
    outputs
        Files to write, by their options.
    inputs
        Files read, by what messages call them; none may be written over.

    Raises
    ------
    InputError
        Naming the option and the file.
    """
    taken = {path.resolve(): name for name, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise InputError(f"{option} {path}: this is {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = option
        if path.is_dir():
            raise InputError(f"{option} {path}: is a folder; name a file")
        if not path.parent.is_dir() or not os.access(
            path if path.exists() else path.parent, os.W_OK
        ):
            raise InputError(f"{option} {path}: can't be written; {_obstacle(path)}")
        if option == "--plot":
            from foretime_sim.scores.plots import FORMATS  # matplotlib is slow to load

            if path.suffix.lower() not in FORMATS:
                raise InputError(f"{option} {path}: end it in {' or '.join(sorted(FORMATS))}")


def _obstacle(path: Path) -> str:
    """Say why a file can't be written, and what to do."""
    folder = path.parent
    if path.exists():
        return "you may not change this file; name another"
    if folder.is_dir():
        return f"you may not write into {folder}; name a file in another folder"
    if folder.exists():
        return f"{folder} is a file; name a folder"
    return f"there is no such folder; make {folder} first, or name another"


def check_no_file(option: str, folder: Path) -> None:
    """Refuse a folder in whose place, or above which, there is a file.

    Raises
    ------
    InputError
        Naming the option and the folder.
    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            which = "this" if path == folder else str(path)
            raise InputError(f"{option} {folder}: {which} is a file; name a folder")


def check_folder(option: str, folder: Path) -> None:
    """Refuse at once a folder that can't be made, or written into; nothing is left behind.

    Parameters
    ----------
    option
        What names it.
    folder
        The folder; it need not be there, nor those above it.

    Raises
    ------
    InputError
        Naming the option and the folder.
    """
    check_no_file(option, folder)
    made: list[Path] = []
    try:
        # Only trying tells: permissions say nothing of /proc, or of a disk mounted read-only.
        for path in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
            path.mkdir()
            made.append(path)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{option} {folder}: can't be made or written into: {error.strerror}; name another "
            "folder"
        ) from error
    finally:
        for path in reversed(made):
            with suppress(OSError):  # somebody has begun to use it
                path.rmdir()


def check_swf_name(path: Path) -> None:
    """Refuse a name that promises another format than SWF.

    Raises
    ------
    InputError
        If it does not end as an SWF file does.
    """
    if not path.name.lower().endswith(SWF_ENDINGS):
        raise InputError(
            f"{path}: what is written is SWF: end the name in {', '.join(SWF_ENDINGS)}"
        )


def write_csv(
    path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, float | str | None]]
) -> None:
    """Write rows as the CSV file that ``--csv`` names.

    Raises
    ------
    InputError
        If the file can't be written.
    """
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise InputError(f"--csv {path}: can't write it: {error.strerror}") from error
