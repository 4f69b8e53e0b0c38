"""What a forecast of Graham's waits goes by: numbers of a job and of its noon, none from later."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.time_units import DAY_S

from foretime_studies.graham2021.columns import FAIR_SHARE, KNOWN, QUEUED, REQUESTS, RUNNING
from foretime_studies.graham2021.polls import NoonPolls

REMEMBERED_DAYS = 3
"""How many polls back the waits of like jobs are looked at."""

_DRAINS = tuple(
    (queued, cores)
    for scope in ("", "p_", "a_", "p_a_")
    for counted, served in (("core_hours", "cores"), ("gpu_hours", "gpus"), ("jobs", "jobs"))
    for queued, cores in (
        (f"q_{scope}{counted}_above", f"r_{scope}{served}_above"),
        *([(f"r_{scope}{counted}_above", f"r_{scope}{served}_above")] if counted != "jobs" else []),
    )
)
"""Work ahead, and what works on it: their ratio is a time."""
_ALIKE = ("account and slurm_partition", "account", "slurm_partition")


@dataclass(frozen=True, slots=True)
class Features:
    """Numbers of each job of some polls."""

    names: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]  # by name of a group, the names in it
    values: Float64Array  # shape (jobs, names); amounts as their logarithms

    def without(self, group: str) -> Float64Array:
        """Give the values less a group's, shape (jobs, names left)."""
        left_out = self.groups[group]
        return self.values[:, [name not in left_out for name in self.names]]


def features_of(polls: NoonPolls) -> Features:
    """Work out the features of every job, each from what was known at its own poll."""
    columns = (*KNOWN, "gpus", "nodes")
    known = dict(zip(columns, polls.known.T, strict=True))
    values = {name: _log(column) for name, column in known.items()}
    values["waited"] = _log(polls.poll_time - polls.submit_time)
    values["slurm_partition"] = polls.slurm_partition.astype(np.float64)
    ratios = {f"{ahead} / {server}": values[ahead] - values[server] for ahead, server in _DRAINS}
    history = _history(polls)
    groups: dict[str, Collection[str]] = {
        "request": (*REQUESTS, "gpus", "nodes", "waited", "slurm_partition"),
        "queue": (*QUEUED, *(name for name in ratios if name.startswith("q_"))),
        "running": (*RUNNING, *ratios),
        "fair share": FAIR_SHARE,
        "waits of like jobs": history,
    }
    values |= ratios | history
    return Features(
        tuple(values),
        {name: tuple(group) for name, group in groups.items()},
        np.column_stack(list(values.values())),
    )


def _log(amount: Float64Array | Int64Array) -> Float64Array:
    return np.asarray(np.sign(amount) * np.log1p(np.abs(amount)))


def _history(polls: NoonPolls) -> dict[str, Float64Array]:
    """Give, of like jobs of the polls before: how many, mean log of their waits, share started.

    Each poll is weighted by a half for each day that it is back. Waits that go on count as long as
    they are by the job's own poll, as nothing else was known then. -1 where there is no like job.
    """
    found = {
        f"{what} by {alike}": np.full(len(polls), -1.0)
        for alike in _ALIKE
        for what in ("recent jobs", "recent wait", "recent starts")
    }
    both = polls.account * (int(polls.slurm_partition.max()) + 1) + polls.slurm_partition
    kinds = dict(zip(_ALIKE, (both, polls.account, polls.slurm_partition), strict=True))
    for now in polls.polls.tolist():
        here = polls.rows_of(now)
        past, waited_s, started = polls.known_outcomes(now)
        days = (now - polls.poll_time[past]) / DAY_S
        recent = days <= REMEMBERED_DAYS
        past, log_wait, started = past[recent], np.log10(waited_s[recent]), started[recent]
        weight = np.exp2(1 - days[recent])
        for alike, kind in kinds.items():
            kinds_here, place = np.unique(kind[here], return_inverse=True)
            like = np.searchsorted(kinds_here, kind[past])
            like = np.where(like < len(kinds_here), like, 0)
            same = kinds_here[like] == kind[past]

            def total(
                each: Float64Array, of: Int64Array = like[same], groups: int = len(kinds_here)
            ) -> Float64Array:
                return np.bincount(of, each, minlength=groups).astype(np.float64)

            jobs = total(weight[same])
            some = np.maximum(jobs, 1e-12)
            wait = np.where(jobs > 0, total((weight * log_wait)[same]) / some, -1)
            starts = np.where(jobs > 0, total((weight * started)[same]) / some, -1)
            found[f"recent jobs by {alike}"][here] = np.log1p(jobs)[place]
            found[f"recent wait by {alike}"][here] = wait[place]
            found[f"recent starts by {alike}"][here] = starts[place]
    return found
