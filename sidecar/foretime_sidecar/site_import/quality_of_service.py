"""QOS as ``sacctmgr show qos -P`` tells of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.slurm.limits import Limits, Qos
from foretime_sim.sites.slurm.site_tables import QOS_FLAGS
from foretime_sim.sites.slurm.tres_text import parse_tres

from foretime_sidecar.site_import.columns import header_of, nothing, rows_of
from foretime_sidecar.site_import.scheduler_settings import (
    Settings,
    preempt_words,
    seconds,
    whole,
)
from foretime_sidecar.site_import.site_output import SiteOutput

_TIMES = {"grpwall": "grp_wall_s", "maxwall": "max_wall_s"}
_GROUP_COUNTS = {"grpjobs": "grp_jobs", "grpsubmit": "grp_submit_jobs"}
_GROUP_TRES = {
    "grptres": "grp_tres",
    "grptresmins": "grp_tres_mins",
    "grptresrunmins": "grp_tres_run_mins",
    "maxtres": "max_tres_per_job",
    "maxtrespernode": "max_tres_per_node",
    "maxtresmins": "max_tres_mins_per_job",
}
_QOS_COUNTS = {
    "maxjobspu": "max_jobs",
    "maxsubmitpu": "max_submit_jobs",
    "maxjobspa": "max_jobs_per_account",
    "maxsubmitpa": "max_submit_jobs_per_account",
}
_QOS_TRES = {
    "maxtrespu": "max_tres_per_user",
    "maxtrespa": "max_tres_per_account",
    "maxtresrunminspu": "max_tres_run_mins_per_user",
    "maxtresrunminspa": "max_tres_run_mins_per_account",
    "mintres": "min_tres_per_job",
}
_NOT_MODELLED = {
    "usagethres": "UsageThreshold",
    "minpriothres": "MinPrioThreshold",
    "grpjobsaccrue": "GrpJobsAccrue",
    "maxjobsaccrue": "MaxJobsAccrue",
    "maxjobsaccruepu": "MaxJobsAccruePerUser",
    "maxjobsaccruepa": "MaxJobsAccruePerAccount",
}
_ONLY_IF_ASKED_FOR = {
    "maxtresrunminspu": "MaxTRESRunMinsPU",
    "maxtresrunminspa": "MaxTRESRunMinsPA",
    "limitfactor": "LimitFactor",
}
"""Columns that are shown only where they are asked for (format=): the first two in 22.05 alone."""
_FLAGS_NOT_MODELLED = ("NoReserve", "RequiresReservation", "EnforceUsageThreshold")


def limits_of(row: Mapping[str, str], *, qos: bool) -> Limits:
    """Read the limits of a row; ValueError or InputError if one can't be read."""
    counts = {**_GROUP_COUNTS, **(_QOS_COUNTS if qos else {"maxjobs": "max_jobs"})}
    if not qos:
        counts["maxsubmit"] = "max_submit_jobs"
    tres = {**_GROUP_TRES, **(_QOS_TRES if qos else {})}
    values: dict[str, Any] = {}
    for columns, read in ((counts, whole), (tres, parse_tres), (_TIMES, seconds)):
        for column, attribute in columns.items():
            if not nothing(text := row.get(column, "")):
                try:
                    values[attribute] = read(text)
                except (ValueError, InputError) as error:
                    raise ValueError(f"{column} is {text[:80]!r}: {error}") from None
    return Limits(**values)


def count_of(row: Mapping[str, str], column: str, default: int = 0) -> int:
    """Read a whole number of 0 or more; ValueError names the column."""
    text = row.get(column, "")
    try:
        return whole(text) if text else default
    except ValueError as error:
        raise ValueError(f"{column} is {text[:80]!r}: {error}") from None


def note_limits(row: Mapping[str, str], who: str, settings: Settings) -> None:
    """Note the limits of a row that are not modelled."""
    odd = [
        f"{name}={row[column]}"
        for column, name in _NOT_MODELLED.items()
        if not nothing(row.get(column, "")) and row[column] not in ("0", "1.000000")
    ]
    if odd:
        settings.note(f"{who}: {', '.join(odd)}.")


def qos_of(output: SiteOutput, settings: Settings) -> dict[str, Qos]:
    """Read the QOS; none where the output is not there."""
    found: dict[str, Qos] = {}
    columns = header_of(output.text("qos").partition("\n")[0])
    untold = [name for column, name in _ONLY_IF_ASKED_FOR.items() if column not in columns]
    if columns and untold:
        settings.note(
            f"QOS: the output tells no {', '.join(untold)}; save it with format=... if the site"
            " has such."
        )
    for number, row in rows_of(output, "qos"):
        name = row["name"]
        if name in found:
            raise output.fault("qos", f"line {number}: QOS {name} is there twice")
        try:
            found[name] = _qos(name, row)
        except (ValueError, InputError) as error:
            raise output.fault("qos", f"line {number}: QOS {name}: {error}") from None
        note_limits(row, f"QOS {name}", settings)
        if odd := sorted(found[name].flags - set(QOS_FLAGS)):
            settings.note(f"QOS {name}: flags that are not known: {', '.join(odd)}.")
            found[name] = replace(found[name], flags=found[name].flags & set(QOS_FLAGS))
        if "relative" in row.get("flags", "").lower():
            settings.note(f"QOS {name}: Relative: its limits count TRES, not shares of the site.")
        if odd := [flag for flag in _FLAGS_NOT_MODELLED if flag in found[name].flags]:
            settings.note(f"QOS {name}: {', '.join(odd)}.")
    for name, qos in found.items():
        for other in qos.preempt:
            if other not in found:
                raise output.fault(
                    "qos", f"QOS {name} preempts {other}, which is not in the output"
                )
    return found


def _qos(name: str, row: Mapping[str, str]) -> Qos:
    mode = row.get("preemptmode", "")
    exempt, grace = row.get("preemptexempttime", ""), row.get("gracetime", "")
    factor = row.get("limitfactor", "")
    return Qos(
        name,
        priority=count_of(row, "priority"),
        limits=limits_of(row, qos=True),
        flags=frozenset(names_of(row.get("flags", ""))),
        usage_factor=_factor(row, "usagefactor"),
        preempt=names_of(row.get("preempt", "")),
        preempt_mode=None if mode.lower() in ("", "cluster") else preempt_words(mode),
        grace_time_s=0 if nothing(grace) else seconds(grace),
        preempt_exempt_time_s=None if nothing(exempt) else seconds(exempt),
        limit_factor=None if nothing(factor) else _factor(row, "limitfactor"),
    )


def _factor(row: Mapping[str, str], column: str) -> float:
    text = row.get(column, "") or "1"
    if not re.fullmatch(r"\d{1,15}(?:\.\d{1,15})?", text, re.ASCII):
        raise ValueError(f"{column} is {text[:80]!r}: is no number of 0 or more")
    return float(text)


def names_of(text: str) -> tuple[str, ...]:
    """Give the names of a list with commas."""
    return tuple(name for name in text.split(",") if name not in ("", "(null)", "N/A"))
