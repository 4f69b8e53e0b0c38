"""Parameters that several paths have."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

LATEST = 253_402_300_799
"""The last second of the year 9999, beyond which no calendar goes."""

_JOB = Query(min_length=1, max_length=64, description="A job's id.", examples=["4711"])
_SINCE = Query(ge=0, le=LATEST, description="Not before then, epoch seconds.")

JobId = Annotated[str, _JOB]
AnyJobId = Annotated[str | None, _JOB]
Since = Annotated[int, _SINCE]
AnySince = Annotated[int | None, _SINCE]
User = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=255,
        description="Whose; the caller's own if left out. Operators may name anybody.",
    ),
]
