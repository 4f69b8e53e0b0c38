"""What jobs say to a site's scheduler besides what they ask of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from foretime_estimators.arrays import MaskedInt64Array
from foretime_estimators.arrays import Selection as Jobs

from foretime_sim.workloads.labels import Labels


@dataclass(frozen=True, slots=True)
class SiteJobs:
    """Columns of shape (jobs,), in the order of a workload's jobs; ``None`` where no job says it.

    Users, accounts (`Workload.projects`), job arrays and partitions are columns of the workload and
    of its requests.

    Attributes
    ----------
    qos
        ``--qos``; missing: the default of the job's association.
    nice
        ``--nice``; missing: 0.
    site_factor
        Of the priority; missing: 0.
    time_min_s
        ``--time-min``, seconds.
    begin_time
        ``--begin``, seconds on the workload's clock.
    reservations
        ``--reservation``.
    licenses
        ``--licenses`` as given.
    array_most_running
        ``--array=...%N``, the same of all tasks of an array.
    after
        Position of the job that it comes after; missing: of none.
    after_what
        What must have happened to that one: a value of `foretime_sim.engine.admission.After`.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim.workloads.site_jobs import SiteJobs
    >>> jobs = SiteJobs(nice=np.ma.array([100, 0], mask=[False, True]))
    >>> jobs.take([0]).nice.tolist()
    [100]
    """

    qos: Labels | None = None
    nice: MaskedInt64Array | None = None
    site_factor: MaskedInt64Array | None = None
    time_min_s: MaskedInt64Array | None = None
    begin_time: MaskedInt64Array | None = None
    reservations: Labels | None = None
    licenses: Labels | None = None
    array_most_running: MaskedInt64Array | None = None
    after: MaskedInt64Array | None = None
    after_what: MaskedInt64Array | None = None

    def take(self, jobs: Jobs) -> SiteJobs:
        """Give the columns of a selection of jobs (indices or a boolean mask).

        Positions that jobs come after are those of the whole; take no part of jobs that have any.
        """
        columns: dict[str, Any] = {}
        for name in (column.name for column in fields(self)):
            column = getattr(self, name)
            if isinstance(column, Labels):
                columns[name] = column.take(jobs)
            elif column is not None:
                columns[name] = column[jobs]
        return replace(self, **columns)

    @property
    def says_more_than_qos(self) -> bool:
        """Whether any job says something else than its QOS, which PBS has no use for."""
        return any(getattr(self, column.name) is not None for column in fields(self)[1:])

    def job(self, index: int) -> SiteJob:
        """Give what the job at a position says; its array and reservation stand elsewhere.

        Examples
        --------
        >>> import numpy as np
        >>> from foretime_sim.workloads.site_jobs import SiteJobs
        >>> SiteJobs(nice=np.ma.array([100, 0], mask=[False, True])).job(0).nice
        100
        """
        said: dict[str, Any] = {}
        for name in _OF_A_JOB:
            column = getattr(self, name)
            if isinstance(column, Labels):
                said[name] = column.get(index)
            elif column is not None and column[index] is not np.ma.masked:
                said[name] = int(column[index])
        return SiteJob(**said)


_OF_A_JOB = tuple(column.name for column in fields(SiteJobs) if column.name != "reservations")


@dataclass(frozen=True, slots=True)
class SiteJob:
    """What one job says to a site's scheduler; ``None`` where it says nothing.

    Attributes
    ----------
    qos, nice, site_factor, time_min_s, begin_time, licenses, array_most_running
        As the columns of `SiteJobs`.
    array
        Which job array it is a task of.
    after, after_what
        Index of the job that it comes after, and what must have happened to that one.

    Examples
    --------
    >>> from foretime_sim.workloads.site_jobs import SiteJob
    >>> SiteJob(nice=100).nice
    100
    """

    qos: str | None = None
    nice: int = 0
    site_factor: int = 0
    time_min_s: int | None = None
    begin_time: int | None = None
    licenses: str | None = None
    array: str | None = None
    array_most_running: int | None = None
    after: int | None = None
    after_what: int | None = None
