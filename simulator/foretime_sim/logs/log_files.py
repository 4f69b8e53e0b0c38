"""Job logs of every kind that Foretime reads; the content tells the kind."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.file_kinds import is_folder
from foretime_sim.logs.cobalt_log import COBALT_RECORD, parse_cobalt_log
from foretime_sim.logs.csv_log import parse_csv_log
from foretime_sim.logs.pbs_accounting import RECORD, parse_pbs_accounting, read_pbs_accounting
from foretime_sim.logs.sacct import parse_sacct
from foretime_sim.logs.swf import parse_swf
from foretime_sim.workloads.job_log import JobLog

LogFormat: TypeAlias = Literal["swf", "sacct", "csv", "pbs", "cobalt"]
_MARKUP = ("{", "[", "<")
"""What a log does not begin with."""


def read_log(
    path: Path | str,
    *,
    lenient: bool = False,
    format: LogFormat | None = None,  # noqa: A002 - what it is called on the command line
    columns: str | None = None,
    time_zone: str | None = None,
) -> JobLog:
    """Read a job log, plain or compressed with gzip or xz.

    Parameters
    ----------
    path
        The file; or PBS's folder of accounting files.
    lenient
        Leave malformed lines out and say so in the notes, instead of refusing the log.
    format
        ``"swf"``, ``"sacct"`` (``sacct --parsable2``), ``"csv"``, ``"pbs"`` or ``"cobalt"``; the
        content tells if not given.
    columns
        For sacct without header line: its fields or a preset. For CSV: the mapping or a preset.
        See `foretime_sim.logs.sacct.parse_sacct` and `foretime_sim.logs.csv_log.parse_csv_log`.
    time_zone
        Name of the site's time zone, for sacct, CSV and PBS; UTC if not given.

    Raises
    ------
    InputError
        If the file can't be read; says where, with which value, and what to do.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim import generate, read_log, write_swf
    >>> from foretime_sim.workloads.job_log import log_of_workload
    >>> log = log_of_workload(generate("lublin2003", jobs=100, seed=1))
    >>> with TemporaryDirectory() as folder:
    ...     write_swf(log, f"{folder}/made.swf.gz")
    ...     read = read_log(f"{folder}/made.swf.gz")
    >>> read.name, len(read)
    ('made', 100)
    """
    if format is not None and format not in get_args(LogFormat):
        raise InputError(f"--format {format}: use one of {', '.join(get_args(LogFormat))}")
    path = Path(path)
    source = str(path)
    if is_folder(path) and format in (None, "pbs"):
        _refuse_columns(columns, source)
        return read_pbs_accounting(path, time_zone=time_zone, lenient=lenient)
    text = read_text(path)
    if format is None and text.lstrip()[:1] in _MARKUP:
        raise InputError(
            f"{source}: that is JSON or markup, and no job log: give SWF, accounting of PBS or "
            "Cobalt, CSV, or what sacct --parsable2 prints"
        )
    match format or format_of(text):
        case "swf":
            if columns is not None:
                raise InputError(
                    f"{source}: --columns is for sacct and CSV; SWF has fixed fields; leave it out"
                )
            if time_zone is not None:
                raise InputError(
                    f"{source}: --time-zone is for sacct, CSV and PBS; SWF counts seconds from its "
                    "UnixStartTime; leave it out"
                )
            return parse_swf(text, source=source, lenient=lenient)
        case "sacct":
            return parse_sacct(
                text, source=source, columns=columns, time_zone=time_zone, lenient=lenient
            )
        case "csv":
            return parse_csv_log(
                text, source=source, columns=columns, time_zone=time_zone, lenient=lenient
            )
        case "pbs":
            _refuse_columns(columns, source)
            return parse_pbs_accounting(text, source=source, time_zone=time_zone, lenient=lenient)
        case "cobalt":
            _refuse_columns(columns, source)
            if time_zone is not None:
                raise InputError(f"{source}: --time-zone is for sacct, CSV and PBS; leave it out")
            return parse_cobalt_log(text, source=source, lenient=lenient).job_log


def _refuse_columns(columns: str | None, source: str) -> None:
    if columns is not None:
        raise InputError(
            f"{source}: --columns is for sacct and CSV; records name their own fields; leave it out"
        )


def format_of(text: str) -> LogFormat:
    """Tell a log's format by its first line that says something.

    SWF begins with ``;`` comments or is numbers only; a record of PBS or Cobalt with a date, ``;``
    and a letter; sacct separates by ``|``, CSV by comma, semicolon or tab.
    """
    line = next((line for line in text.split("\n") if line.strip()), "").strip()
    if line.startswith(";"):
        return "swf"
    if RECORD.match(line):
        return "cobalt" if COBALT_RECORD.match(line) else "pbs"
    if "|" in line:
        return "sacct"
    return "csv" if any(mark in line for mark in ",;\t") and not _all_numbers(line) else "swf"


def _all_numbers(line: str) -> bool:
    """Whether a line has nothing but numbers and blanks (SWF may be separated by tabs)."""
    return all(word.lstrip("+-").replace(".", "", 1).isdigit() for word in line.split())
