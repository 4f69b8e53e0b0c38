"""The files that a command writes: refused at once where they can't be, and tables as CSV."""

from __future__ import annotations

import csv
import io
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.file_kinds import exists, is_folder, kind_of
from foretime_sim.files.whole_files import write_whole

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
        if str(path) == "-":  # tables are on the standard output, and all as JSON with --json
            raise InputError(f"{option} -: is no file's name; name a file")
        if path.resolve() in taken:
            raise InputError(f"{option} {path}: this is {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = option
        there, in_folder = _looked_at(option, path), _looked_at(option, path.parent)
        if there == stat.S_IFDIR:
            raise InputError(f"{option} {path}: is a folder; name a file")
        writable = os.access(path.parent if there is None else path, os.W_OK)
        if in_folder != stat.S_IFDIR or not writable:
            raise InputError(f"{option} {path}: can't be written; {_obstacle(path)}")
        if option == "--plot":
            from foretime_sim.scores.plots import FORMATS  # matplotlib is slow to load

            if path.suffix.lower() not in FORMATS:
                raise InputError(f"{option} {path}: end it in {' or '.join(sorted(FORMATS))}")


def _looked_at(option: str, path: Path) -> int | None:
    try:
        return kind_of(path)
    except InputError as error:
        raise InputError(f"{option} {error}") from error


def _obstacle(path: Path) -> str:
    """Say why a file can't be written, and what to do."""
    folder = path.parent
    if exists(path):
        return "you may not change this file; name another"
    if is_folder(folder):
        return f"you may not write into {folder}; name a file in another folder"
    if exists(folder):
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
        if _looked_at(option, path) not in (None, stat.S_IFDIR):
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
        for path in reversed([p for p in (folder, *folder.parents) if not exists(p)]):
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
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise InputError(f"--csv {path}: can't write it: {error.strerror}") from error
