"""A workload model that is read off a log: Streit 2002, section 4, after Krallmann 1998.

The time between submissions follows a Weibull distribution. Width, requested time and runtime
depend on each other and follow no known distribution: a sparse three-dimensional table holds the
probability of every combination that occurs. The published table 3 shows the table to hold exact
values, not bins: the largest runtime of its CTC-like set is the log's own to the second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.models.generation import check_jobs, random_streams
from foretime_sim.models.week_profile import WeekProfile
from foretime_sim.models.weibull import (
    Weibull,
    fit_likelihood,
    fit_moments,
    fit_shape,
    search_moments,
)
from foretime_sim.workloads.job_log import count_jobs
from foretime_sim.workloads.workload import Workload

Arrivals: TypeAlias = Literal["independent", "modulated"]
GapFit: TypeAlias = Literal["moments", "search", "shape", "likelihood"]
Runtimes: TypeAlias = Literal["exact", "in-bins"]

LEAST_JOBS = 10
BINS_PER_DECADE = 10
"""Of runtimes, where they are drawn within bins."""


@dataclass(frozen=True, slots=True)
class JobTable:
    """The joint distribution of width, requested time and runtime.

    Attributes
    ----------
    processors, requested_time, actual_runtime
        Of each cell that occurs: shape (cells,), seconds.
    probability
        Shape (cells,), sum 1.
    """

    processors: Int64Array
    requested_time: Int64Array
    actual_runtime: Int64Array
    probability: Float64Array

    @classmethod
    def of(cls, workload: Workload) -> JobTable:
        """Count a workload's combinations."""
        jobs = np.column_stack(
            (workload.processors, workload.requested_time, workload.actual_runtime)
        )
        cells, counts = np.unique(jobs, axis=0, return_counts=True)
        processors, requested_time, actual_runtime = cells.T.copy()
        return cls(processors, requested_time, actual_runtime, counts / len(workload))

    def draw(
        self, jobs: int, rng: np.random.Generator, runtimes: Runtimes = "exact"
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Draw processors, requested times and runtimes: each of shape (jobs,).

        One draw of a cell is what the paper's three random numbers amount to (width, request given
        the width, runtime given both). With ``"in-bins"`` a runtime is drawn again, evenly in its
        logarithm, within its tenth of a decade, so that sets hold runtimes that the log has not;
        one that reaches the requested time stays, and none that did not does.
        """
        cell = rng.choice(len(self.probability), size=jobs, p=self.probability)
        processors, requested = self.processors[cell], self.requested_time[cell]
        runtime = self.actual_runtime[cell]
        if runtimes == "in-bins":
            bin_ = np.floor(np.log10(runtime) * BINS_PER_DECADE + 1e-9)
            drawn = 10 ** ((bin_ + rng.random(jobs)) / BINS_PER_DECADE)
            drawn = np.minimum(np.maximum(drawn.astype(np.int64), 1), requested - 1)
            runtime = np.where(runtime < requested, drawn, runtime)
        return processors, requested, runtime


@dataclass(frozen=True, slots=True)
class LogModel:
    """What is known of a log's jobs and submissions.

    Attributes
    ----------
    name, machine_processors, jobs
        Of the log; how many jobs the model was read off.
    unix_start_time
        Epoch seconds of the first submission, ``None`` where the log does not say.
    interarrival
        Time between submissions.
    table
        Width, requested time and runtime.
    profile
        Submissions by hour of the week.
    busy_interarrival
        Time between submissions on the profile's clock.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.models.log_model import LogModel
    >>> model = LogModel.of(generate("lublin2003", jobs=500, seed=1))
    >>> like_it = model.generate(100, seed=2)
    >>> model.jobs, len(like_it)
    (500, 100)
    """

    name: str
    machine_processors: int
    jobs: int
    unix_start_time: int | None
    interarrival: Weibull
    table: JobTable
    profile: WeekProfile
    busy_interarrival: Weibull

    @classmethod
    def of(
        cls, workload: Workload, *, fit: GapFit = "moments", interarrival: Weibull | None = None
    ) -> LogModel:
        """Read the model off a workload.

        Parameters
        ----------
        workload
            What the filters leave of a log.
        fit
            How the Weibull distributions are found: ``"moments"`` keeps mean and deviation of the
            gaps, and so the load and most of how uneven submissions are; ``"search"`` is that on
            the paper's grid; ``"shape"`` takes alpha by likelihood and keeps the mean, nearer to
            common gaps, but too even; or ``"likelihood"``.
        interarrival
            The time between independent submissions, in place of a fit: table 2's, say.

        Raises
        ------
        InputError
            If there are fewer than 10 jobs, or all were submitted in the same second.
        """
        if len(workload) < LEAST_JOBS:
            raise InputError(
                f"{workload.name}: {len(workload)} jobs are too few for a model; give a log of at "
                f"least {LEAST_JOBS}"
            )
        gaps = np.diff(workload.submit_time)
        if not gaps.any():
            raise InputError(
                f"{workload.name}: all {len(workload):,} jobs were submitted in the same second, "
                "which says nothing about the time between submissions"
            )
        profile = WeekProfile.of(workload)
        submissions = workload.submit_time + workload.epoch_of_zero
        busy = profile.busy_time(submissions)
        busy_gaps = np.diff(busy)
        widths = profile.busy_time(submissions[1:] + 1) - busy[1:]
        start = workload.unix_start_time
        return cls(
            workload.name,
            workload.machine_processors,
            len(workload),
            None if start is None else start + int(workload.submit_time[0]),
            _fit(gaps, 1.0, fit) if interarrival is None else interarrival,
            JobTable.of(workload),
            profile,
            _fit(busy_gaps, widths, fit),
        )

    def generate(
        self,
        jobs: int,
        *,
        seed: int = 1,
        arrivals: Arrivals = "independent",
        shrink: float = 1.0,
        runtimes: Runtimes = "exact",
    ) -> Workload:
        """Generate a workload; the same arguments always give the same.

        Parameters
        ----------
        jobs
            How many, the first of them submitted at time 0.
        seed
            At least 0; jobs and submissions have random numbers of their own, so that a seed gives
            the same jobs with other arrivals or another shrinking factor.
        arrivals
            ``"independent"``: gaps are independent draws, as in the paper; nights and weekends are
            as busy as days. ``"modulated"``: they are drawn on a clock that runs with the log's
            hours of the week, from the hour of the log's first submission.
        shrink
            What gaps are multiplied by (section 5, the shrinking factor). Independent submissions
            are those of factor 1 by `Workload.with_interarrival_factor`; modulated ones come closer
            on the profile's clock, so that days stay days.
        runtimes
            As in the log, or drawn within bins (`JobTable.draw`).

        Raises
        ------
        InputError
            If an argument is out of range.
        """
        check_jobs(jobs)
        if not 0 < shrink <= 1_000:
            raise InputError(f"shrinking factor {shrink:g}: give more than 0 and at most 1,000")
        arrival_rng, job_rng = random_streams(seed, 2)
        processors, requested, runtime = self.table.draw(jobs, job_rng, runtimes)
        modulated = arrivals == "modulated"
        submit = (
            self._modulated(jobs, arrival_rng, shrink)
            if modulated
            else self._independent(jobs, arrival_rng)
        )
        gaps = self.busy_interarrival if modulated else self.interarrival
        note = (
            f"generated, not real: {count_jobs(jobs)} like the {self.jobs:,} of {self.name} "
            f"(Streit 2002, section 4), {arrivals} submissions with Weibull gaps "
            f"(alpha {gaps.alpha:.3g}, beta {gaps.beta_s:.3g} s), width, requested time and "
            "runtime drawn together"
            f"{'' if runtimes == 'exact' else ', runtimes within bins'}; seed {seed}, shrinking "
            f"factor {shrink:g}"
        )
        workload = Workload(
            name=f"generated-like-{self.name}-{jobs}-jobs-seed-{seed}",
            machine_processors=self.machine_processors,
            unix_start_time=self.unix_start_time,
            job_id=np.arange(1, jobs + 1, dtype=np.int64),
            submit_time=submit,
            processors=processors,
            actual_runtime=runtime,
            requested_time=requested,
            notes=(note,),
        )
        return workload if modulated else workload.with_interarrival_factor(shrink)

    def _independent(self, jobs: int, rng: np.random.Generator) -> Int64Array:
        """Add up independent gaps; rounding down once, not gap by gap, keeps their mean."""
        return _seconds(np.cumsum(self.interarrival.draw(jobs - 1, rng)))

    def _modulated(self, jobs: int, rng: np.random.Generator, shrink: float) -> Int64Array:
        """Add up gaps on the profile's clock, and read them on the wall."""
        start = 1_000_000_000 if self.unix_start_time is None else self.unix_start_time
        spent = np.cumsum(self.busy_interarrival.draw(jobs - 1, rng)) * shrink
        busy = float(self.profile.busy_time(start)) + spent
        return np.maximum(_seconds(self.profile.epoch_time(busy) - start), 0)


def split_wide(workload: Workload, widest: int) -> Workload:
    """Split jobs wider than a limit into jobs of that width at most, the area unchanged.

    Streit 2002, section 4 (3). A job becomes as few jobs as will do, submitted together and as
    alike as can be: their widths add up to the job's and differ by at most one; request, runtime
    and everything else are the job's own. Jobs are numbered anew.

    Raises
    ------
    InputError
        If the limit is below 1.
    """
    if widest < 1:
        raise InputError(f"--split-wide {widest}: jobs keep at least 1 processor")
    parts = -(-workload.processors // widest)
    of_job = np.repeat(np.arange(len(workload), dtype=np.int64), parts)
    split = workload.take(of_job)
    first = np.cumsum(parts) - parts
    number = np.arange(len(of_job), dtype=np.int64) - first[of_job]
    whole, rest = np.divmod(workload.processors, parts)
    note = (
        f"{int(np.count_nonzero(parts > 1)):,} jobs wider than {widest} processors are split: "
        f"{len(of_job):,} jobs of {len(workload):,}"
    )
    return replace(
        split,
        job_id=np.arange(1, len(of_job) + 1, dtype=np.int64),
        processors=whole[of_job] + (number < rest[of_job]),
        notes=(*workload.notes, note),
    )


def _fit(gaps: npt.ArrayLike, resolution_s: npt.ArrayLike, fit: GapFit) -> Weibull:
    match fit:
        case "moments":
            return fit_moments(gaps)
        case "search":
            return search_moments(gaps)
        case "shape":
            return fit_shape(gaps, resolution_s)
        case "likelihood":
            return fit_likelihood(gaps, resolution_s)


def _seconds(times: Float64Array) -> Int64Array:
    """Round times down, with 0 put before them."""
    return np.concatenate(([0], np.floor(times).astype(np.int64)))
