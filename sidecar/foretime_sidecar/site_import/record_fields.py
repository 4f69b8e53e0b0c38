"""What fields of scontrol's records must be there, and what they may say."""

from __future__ import annotations

import re
from collections.abc import Mapping

from foretime_sidecar.site_import.site_output import SiteOutput

_COUNT = r"\d{1,15}"
_LIMIT = rf"{_COUNT}|UNLIMITED|INFINITE|NONE|N/A|\(null\)|"
_YES = r"YES|NO"
_FORMS: Mapping[str, Mapping[str, str]] = {
    "nodes": {
        "CPUTot": _COUNT,
        "CPUEfctv": rf"{_COUNT}|",
        "RealMemory": _COUNT,
        "MemSpecLimit": rf"{_COUNT}|\(null\)|",
        "Weight": _COUNT,
    },
    "partitions": {
        **dict.fromkeys(
            (
                "DefMemPerCPU", "DefMemPerNode", "GraceTime", "MaxCPUsPerNode", "MaxMemPerCPU",
                "MaxMemPerNode", "MaxNodes", "MinNodes", "OverTimeLimit", "PriorityJobFactor",
                "PriorityTier",
            ),
            _LIMIT,
        ),
        "Default": _YES,
        "Exclusive": rf"{_YES}|NODE|USER|TOPO",
        "OverSubscribe": r"NO|EXCLUSIVE|(?:YES|FORCE)(?::\d+)?",
        "State": r"UP|DOWN|DRAIN|INACTIVE",
    },
}  # fmt: skip
"""What values of fields look like. An empty form takes a field that says nothing."""
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "nodes": ("State", "CPUTot", "RealMemory", "Weight"),
    "partitions": (),
    "reservations": ("StartTime", "EndTime", "State"),
}
"""Fields that every release prints, some of them at a record's end."""


def check_fields(output: SiteOutput, kind: str, whose: str, values: Mapping[str, str]) -> None:
    """Refuse a record that is cut off, or a value that Slurm never prints.

    Parameters
    ----------
    output
        What the record is of.
    kind
        ``nodes``, ``partitions`` or ``reservations``.
    whose
        What errors call the record.
    values
        Its fields.

    Raises
    ------
    InputError
        Naming output, record, field and value.
    """
    needed = _NEEDED[kind]
    # Those of slurm.conf have defaults, and the mock Slurm's are short.
    if kind == "partitions" and "AllowGroups" in values and kind not in output.remedies:
        needed = ("Nodes", "State", "TRES")
    for name in needed:
        if name not in values:
            raise output.fault(kind, f"{whose} has no {name}: the output is cut off")
    for name, form in _FORMS.get(kind, {}).items():
        if name in values and not re.fullmatch(form, values[name], re.ASCII | re.IGNORECASE):
            raise output.fault(kind, f"{whose}: {name} is {values[name]!r}, which Slurm never says")
    kept = values.get("MemSpecLimit", "")
    if kept.isdecimal() and int(kept) > int(values["RealMemory"]):
        raise output.fault(kind, f"{whose}: MemSpecLimit={kept} is more than its RealMemory")
