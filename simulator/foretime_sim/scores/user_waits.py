"""Waits of each user in two runs of the same jobs: nobody is to pay for what others gain."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from foretime_estimators.arrays import Float64Array, Int64Array

from foretime_sim.workloads.workload import Workload

Waits: TypeAlias = Int64Array | Float64Array
FEWEST_JOBS = 51
"""Users and classes with fewer jobs are not judged: single jobs decide their means."""
WORSE = 1.05
"""Who waits longer than this times as long is worse off."""


def waits_by_user(workload: Workload, baseline: Waits, adjusted: Waits) -> pd.DataFrame:
    """Give the mean waits of each user; jobs of nobody known are left out.

    Parameters
    ----------
    workload
        The jobs.
    baseline, adjusted
        Shape (jobs,): waits in the two runs, seconds.

    Returns
    -------
    pandas.DataFrame
        Indexed by user; columns ``jobs``, ``baseline`` and ``adjusted`` (seconds).
    """
    names = [None] * len(workload) if workload.users is None else workload.users.by_job()
    columns = {"user": names, "baseline": baseline, "adjusted": adjusted}
    by_user = pd.DataFrame(columns).groupby("user")
    means = by_user[["baseline", "adjusted"]].mean()
    means.insert(0, "jobs", by_user.size())
    return means


class WorseOff(NamedTuple):
    """Who waits longer, and the mean waits of the two runs, seconds."""

    name: str
    baseline_s: float
    adjusted_s: float


def worse_off(waits: pd.DataFrame) -> list[WorseOff]:
    """Give who has `FEWEST_JOBS` and a mean wait over `WORSE` times as long, the worst first.

    Parameters
    ----------
    waits
        Columns ``jobs``, ``baseline``, ``adjusted``, as of `waits_by_user`.
    """
    judged = waits[waits["jobs"] >= FEWEST_JOBS]
    longer = judged[judged["adjusted"] > WORSE * judged["baseline"]]
    ratio = longer["adjusted"] / longer["baseline"].replace(0, np.nan)
    longer = longer.loc[ratio.sort_values(ascending=False, na_position="first").index]
    return [
        WorseOff(str(name), float(before), float(after))
        for name, before, after in longer[["baseline", "adjusted"]].itertuples()
    ]
