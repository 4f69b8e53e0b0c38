"""What a real Slurm tells of the jobs of a snapshot, and how forward runs begin with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from foretime_estimators.arrays import Int64Array

from foretime_sim import _core
from foretime_sim.engine.native.slurm_core import JOB_COLUMNS, StepwiseNames
from foretime_sim.engine.native.snapshot_columns import NEVER
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.site_jobs import SiteJob


@dataclass(frozen=True, slots=True)
class ToldJob:
    """What a real Slurm tells of a job, besides what it asks of nodes.

    Begin times, dependencies and throttles of arrays are those of the snapshot.

    Attributes
    ----------
    user, account
        Whose it is; ``None`` if that is not known: nobody's, whom no limit keeps.
    reservation
        In which it runs.
    said
        QOS, nice, licenses.
    ages_since
        From when on its age counts for its priority, seconds; ``None``: it does not yet.
    priority
        As it is told to be now. What differs from the priority by the site's rules stays with the
        job: so the queue has the live order now, and what ages and is used changes it. ``None``:
        as the site's rules say.
    at_limit
        Whether a limit keeps it waiting now: it is in nobody's way then.
    """

    user: str | None = None
    account: str | None = None
    reservation: str | None = None
    said: SiteJob = field(default_factory=SiteJob)
    ages_since: int | None = None
    priority: int | None = None
    at_limit: bool = False


def describe_told(
    beginning: _core.Beginning,
    site: SlurmSite,
    told: Sequence[ToldJob],
    slurm_partitions: Sequence[str],
) -> None:
    """Tell the core whose the jobs of a snapshot are, running ones first.

    Parameters
    ----------
    beginning
        To which the jobs have been added.
    site
        Which the jobs have been submitted to.
    told
        Of each job.
    slurm_partitions
        Where each runs, or the first that it names.

    Raises
    ------
    InputError
        If a job names what the site has not.
    """
    names = StepwiseNames(site)
    rows, licenses = [], []
    for place, (job, where) in enumerate(zip(told, slurm_partitions, strict=True)):
        row, asked = names.row(
            f"job {place}", job.user, job.account, job.reservation, where, job.said
        )
        rows.append(row)
        licenses.append(asked)
    pending = told[len(told) - beginning.pending_jobs :]
    beginning.describe_for_slurm(
        _table(rows),
        licenses,
        np.array(
            [NEVER if job.ages_since is None else job.ages_since for job in pending],
            dtype=np.int64,
        ),
        [job.priority for job in pending],
    )


def own_arrivals(
    arrivals: _core.Arrivals, site: SlurmSite, owners: Sequence[ToldJob], owner: Int64Array
) -> None:
    """Tell the core whose the jobs that come later are: a row of ``owners`` for each."""
    names, first = StepwiseNames(site), site.machine.slurm_partitions[0].name
    rows = [
        names.row("a later job", one.user, one.account, None, first, one.said)[0] for one in owners
    ]
    _core.give_owners(
        arrivals,
        _table(rows),
        np.ascontiguousarray(owner, dtype=np.int64),
    )


def _table(rows: Sequence[tuple[int, ...]]) -> Int64Array:
    return np.array(rows, dtype=np.int64).reshape(-1, JOB_COLUMNS)
