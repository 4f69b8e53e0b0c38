"""What ``foretime doctor`` has found."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Column, Table
from rich.text import Text

from foretime_sidecar.install.doctor.checkup import Diagnosis, Health

_STYLES = {Health.OK: "green", Health.WARNING: "yellow", Health.PROBLEM: "red"}


def diagnoses_json(diagnoses: Iterable[Diagnosis]) -> list[dict[str, str]]:
    """Give diagnoses for JSON."""
    return [
        {
            "check": diagnosis.name,
            "health": diagnosis.finding.health.value,
            "message": diagnosis.finding.message,
            "remedy": diagnosis.finding.remedy,
        }
        for diagnosis in diagnoses
    ]


def diagnoses_table(diagnoses: Iterable[Diagnosis]) -> Table:
    """Give diagnoses as a table."""
    named = (Column("check", no_wrap=True), Column("", no_wrap=True))
    table = Table(*named, "what is so, and what to do", box=None, pad_edge=False)
    for diagnosis in diagnoses:
        finding = diagnosis.finding
        told = finding.message + (f"\n-> {finding.remedy}" if finding.remedy else "")
        health = Text(finding.health.value, style=_STYLES[finding.health])
        table.add_row(diagnosis.name, health, Text(told))
    return table
