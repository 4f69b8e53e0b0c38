"""Which site factors of pending jobs are ours, also as a store tells it without its daemon."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.store.reading import read_only

SELECT = "SELECT job_id, site_factor FROM site_factors"


def by_job(rows: Iterable[tuple[str, int]]) -> dict[str, frozenset[int]]:
    """Give the site factors of each job: the one that it has is among them."""
    found: dict[str, set[int]] = defaultdict(set)
    for job_id, factor in rows:
        found[str(job_id)].add(int(factor))
    return {job_id: frozenset(factors) for job_id, factors in found.items()}


def site_factors_in(path: Path) -> dict[str, frozenset[int]]:
    """Give them by job, as `by_job`.

    Raises
    ------
    StateError
        If it can't be read.
    """
    try:
        with read_only(path, timeout_s=1) as connection:
            return by_job(connection.execute(SELECT))
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StateError(f"{path}: can't read which site factors were set: {error}") from error
