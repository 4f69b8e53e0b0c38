"""Which site factors of pending jobs are ours, also as a store tells it without its daemon."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.store.reading import read_only

SELECT = "SELECT job_id, site_factor, earlier FROM site_factors"
GivenFactors: TypeAlias = dict[str, Mapping[int, int]]
"""By job: the factors that we gave it, and for each what stood there before ours."""


def given_factors(rows: Iterable[tuple[Any, ...]]) -> GivenFactors:
    """Give the site factors of each job: the one that it has is among them."""
    found: dict[str, dict[int, int]] = {}
    for job_id, factor, earlier in rows:
        found.setdefault(str(job_id), {})[int(factor)] = int(earlier)
    return dict(found)


def site_factors_in(path: Path) -> GivenFactors:
    """Give them by job, as `given_factors`; none where there is no store.

    Raises
    ------
    StateError
        If it can't be read.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        return {}
    except OSError:
        pass  # opening it says why
    try:
        with read_only(path, timeout_s=1) as connection:
            return given_factors(connection.execute(SELECT))
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StateError(f"{path}: can't read which site factors were set: {error}") from error
