"""Which site factors of pending jobs are ours, as a store tells it without its daemon."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from pathlib import Path

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.store.reading import read_only


def site_factors_in(path: Path) -> dict[str, frozenset[int]]:
    """Give them by job: the one that it has is among them.

    Raises
    ------
    StateError
        If it can't be read.
    """
    found: dict[str, set[int]] = defaultdict(set)
    try:
        with read_only(path, timeout_s=1) as connection:
            for job_id, factor in connection.execute(
                "SELECT job_id, site_factor FROM site_factors"
            ):
                found[str(job_id)].add(int(factor))
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StateError(f"{path}: can't read which site factors were set: {error}") from error
    return {job_id: frozenset(factors) for job_id, factors in found.items()}
