"""Tables with | between columns, whatever their order, and records of scontrol."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foretime_sidecar.clients.slurm.site import fields_of
from foretime_sidecar.site_import.site_output import SiteOutput

_OTHER_NAMES = {
    "fairshare": "share",
    "parname": "parentname",
    "defaultqos": "defqos",
    "grpsubmitjobs": "grpsubmit",
    "maxsubmitjobs": "maxsubmit",
    "maxtrespj": "maxtres",
    "maxtresperjob": "maxtres",
    "maxtrespn": "maxtrespernode",
    "maxtresminsperjob": "maxtresmins",
    "maxtresminspj": "maxtresmins",
    "maxtresperuser": "maxtrespu",
    "maxtresperaccount": "maxtrespa",
    "mintrespj": "mintres",
    "mintresperjob": "mintres",
    "defaultaccount": "defacct",
}
"""Columns by what sacctmgr calls them elsewhere."""


def header_of(line: str) -> list[str]:
    """Give the names of columns, in lower case and without spaces; none if it has no ``|``."""
    if "|" not in line:
        return []
    names = [re.sub(r"[ _]", "", name).lower() for name in line.rstrip("|\n").split("|")]
    # "FairShare" of sshare is the factor.
    if "rawshares" in names:
        return names
    return [_OTHER_NAMES.get(name, name) for name in names]


def rows_of(output: SiteOutput, kind: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Give the rows of a table: number of the line, values by column.

    Raises
    ------
    InputError
        If a row has fewer or more columns than the header: the output is cut off or damaged.
    """
    columns: list[str] = []
    for number, line in enumerate(output.text(kind).splitlines(), 1):
        if not line.strip():
            continue
        if not columns:
            columns = header_of(line)
            continue
        values = line.split("|")
        if len(values) == len(columns) + 1 and not values[-1]:
            values.pop()  # -p ends each line with |
        if len(values) != len(columns):
            raise output.fault(
                kind,
                f"line {number} has {len(values)} columns and the header {len(columns)}:"
                " the output is cut off or damaged",
            )
        yield number, dict(zip(columns, values, strict=True))


def one_record_a_line(text: str, first: str) -> str:
    """Give records of ``scontrol show``, printed with --oneliner or not, a line each.

    Parameters
    ----------
    text
        What was printed.
    first
        The field that begins a record, such as ``NodeName``.
    """
    records: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith(f"{first}="):
            records.append([])
        if records and line.strip():
            records[-1].append(line.strip())
    return "".join(" ".join(record) + "\n" for record in records)


def records_of(text: str) -> list[dict[str, str]]:
    """Give the fields of records, a line each."""
    return [fields_of(line) for line in text.splitlines()]


def nothing(text: str) -> bool:
    """Say whether a value of Slurm's stands for none."""
    return text in (
        "",
        "(null)",
        "N/A",
        "NONE",
        "None",
        "UNLIMITED",
        "INFINITE",
        "ALL",
        "NO",
        "n/a",
    )
