"""Workloads of Downey's model: work and parallelism uniform in the logarithm, and a speedup.

A. B. Downey, "A parallel workload model and its implications for processor allocation", Sixth IEEE
International Symposium on High Performance Distributed Computing, 1997. Of a job the model knows
its cumulative runtime, its average parallelism and how much that varies; how many processors it
gets is the scheduler's choice. Here jobs are rigid: each asks for its average parallelism, and its
runtime follows from `foretime_sim.models.speedup`. The paper's numbers were not at hand: the
defaults are fitted, as he fits, to the log of the machine that he looked at, SDSC's Paragon
(`Downey1997.of`). The model has neither requested times nor users; `request_model` adds them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.uniform_log import fit_uniform_log
from foretime_estimators.jobs.errors import InputError

from foretime_sim.models.generation import MONDAY, check_jobs, check_machine, random_streams
from foretime_sim.models.request_model import RequestModel, requested_workload
from foretime_sim.models.speedup import speedups
from foretime_sim.models.week_profile import WeekProfile
from foretime_sim.workloads.workload import Workload

DAY_HOURS = (8, 20)
"""The half of a day in which jobs come."""


@dataclass(frozen=True, slots=True)
class Downey1997:
    """The model's parameters.

    Attributes
    ----------
    least_work_s, most_work_s
        Ends of the distribution of cumulative runtime, processor-seconds on one processor: its
        cdf is a straight line over ln t between them.
    most_parallelism
        Average parallelism is distributed likewise from 1 to this; ``None``: to the machine's size.
    most_variation
        Variation of parallelism (sigma of the speedup) is uniform from 0 to this; 0 is linear
        speedup.
    night_rate
        Submissions are a Poisson process in two halves of a day, one with this share of the other's
        rate. That there are two halves of 12 hours is the model's; that nobody comes in one of
        them, and that the other is from 8:00 to 20:00, is our reading.
    """

    least_work_s: float = 2.36
    most_work_s: float = 6_246_484.0
    most_parallelism: float | None = None
    most_variation: float = 2.0
    night_rate: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.least_work_s < self.most_work_s:
            raise InputError(
                f"work from {self.least_work_s:g} to {self.most_work_s:g} processor-seconds: give "
                "at least 1, and more"
            )
        if self.most_parallelism is not None and not self.most_parallelism >= 1:
            raise InputError(f"most_parallelism is {self.most_parallelism:g}; give at least 1")
        if not 0 <= self.most_variation < np.inf:
            raise InputError(f"most_variation is {self.most_variation:g}; give 0 or more")
        if not 0 <= self.night_rate <= 1:
            raise InputError(f"night_rate is {self.night_rate:g}; it is a share from 0 to 1")

    @classmethod
    def of(cls, workload: Workload) -> Downey1997:
        """Fit work and parallelism to a log; jobs' processor-seconds stand for their work.

        Raises
        ------
        InputError
            If its jobs are too few, or too much alike, for a line.
        """
        work = fit_uniform_log(workload.processors * workload.actual_runtime)
        parallelism = fit_uniform_log(workload.processors)
        if work is None or parallelism is None:
            raise InputError(f"{workload.name}: its jobs are too few, or too much alike, for a fit")
        return cls(
            least_work_s=max(work.t_min, 1.0),
            most_work_s=max(work.t_max, 2.0),
            most_parallelism=max(parallelism.t_max, 1.0),
        )

    def jobs(
        self, jobs: int, processors: int, rng: np.random.Generator
    ) -> tuple[Int64Array, Int64Array]:
        """Draw processors and runtimes (seconds, at least 1): each of shape (jobs,)."""
        most = min(processors, self.most_parallelism or processors)
        parallelism = np.exp(rng.uniform(0.0, np.log(most), jobs))
        work = np.exp(rng.uniform(np.log(self.least_work_s), np.log(self.most_work_s), jobs))
        variation = rng.uniform(0.0, self.most_variation, jobs)
        sizes = np.clip(np.rint(parallelism), 1, processors).astype(np.int64)
        runtimes = work / speedups(parallelism, variation, sizes)
        return sizes, np.maximum(np.floor(runtimes), 1).astype(np.int64)

    def arrivals(
        self, jobs: int, rng: np.random.Generator, *, span_s: float | None = None
    ) -> Int64Array:
        """Draw arrival times: shape (jobs,), seconds since a Monday's midnight, not decreasing.

        So much time passes to the last arrival, but for half a day; 600 s a job if not given.
        """
        hours = np.full((7, 24), self.night_rate)
        hours[:, slice(*DAY_HOURS)] = 1.0
        profile = WeekProfile((hours / hours.mean()).ravel())
        spent: Float64Array = np.cumsum(rng.exponential(600.0, jobs))
        if span_s is not None:
            spent *= span_s / spent[-1]
        start = float(profile.busy_time(MONDAY))
        return np.floor(profile.epoch_time(start + spent) - MONDAY).astype(np.int64)


def generate(
    jobs: int = 5_000,
    *,
    processors: int = 256,
    seed: int = 1,
    load: float | None = 0.7,
    model: Downey1997 | None = None,
    request_model: RequestModel | None = None,
) -> Workload:
    """Generate a workload; the same arguments always give the same.

    Parameters
    ----------
    jobs
        How many.
    processors
        Size of the machine, at least 2.
    seed
        Seed of the random numbers, at least 0.
    load
        Offered load, reached by scaling the times between arrivals; ``None``: a job in 10 minutes.
    model, request_model
        Parameters; the defaults if not given.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> from foretime_sim.models.downey1997 import generate
    >>> workload = generate(100, processors=64, seed=1)
    >>> len(workload), workload.machine_processors
    (100, 64)
    """
    check_jobs(jobs)
    check_machine(processors, load)
    model = Downey1997() if model is None else model
    job_rng, arrival_rng, request_rng = random_streams(seed, 3)
    workload = requested_workload(
        f"generated-downey1997-{jobs}-jobs-seed-{seed}",
        *model.jobs(jobs, processors, job_rng),
        lambda span_s: model.arrivals(jobs, arrival_rng, span_s=span_s),
        processors=processors,
        load=load,
        model=request_model,
        rng=request_rng,
    )
    arrivals = "a submission in 600 s" if load is None else f"offered load {load:g}"
    note = (
        "generated, not real: work, parallelism and speedup by the model of Downey (1997), "
        f"requested times and users by Foretime's own; seed {seed}, {arrivals}"
    )
    return replace(workload, notes=(note,))
