"""Workloads of the model of Lublin and Feitelson, with requests and users added.

Sizes, runtimes and arrivals: U. Lublin and D. G. Feitelson, "The workload on parallel
supercomputers: modeling the characteristics of rigid jobs", Journal of Parallel and Distributed
Computing 63(11), 2003; parameters of its batch jobs, as in the authors' own program
(m_lublin99.c). That model has neither requested times nor users; `request_model` adds them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array

from foretime_sim.models.generation import check_jobs, check_machine, random_streams
from foretime_sim.models.request_model import RequestModel, requested_workload
from foretime_sim.workloads.workload import Workload

HALF_HOUR_S = 1_800
BUCKETS = 48
"""Half hours in a day."""
LARGEST_LOG_RUNTIME = 12.0
"""Runtimes beyond exp(12) s, 45 h, are drawn again."""
LARGEST_LOG_GAP = 13.0
"""Gaps beyond exp(13) s, 5 days, are drawn again."""
FIRST_BUCKET = 11
"""The arrival density runs from this half hour (5:30) to the same of the next day."""


@dataclass(frozen=True, slots=True)
class Lublin2003:
    """The model's parameters; the defaults are the published ones of batch jobs.

    Attributes
    ----------
    serial_probability, power_of_two_probability
        Shares of jobs of one processor, and of parallel jobs rounded to a power of two.
    log2_smallest
        Where the two-stage uniform distribution of log2(size) begins; 0.2 above or below 1 makes
        jobs of two processors rarer or more frequent.
    middle_below_largest
        How far its middle lies below its end, log2(processors of the machine).
    low_probability
        Share of sizes below the middle.
    runtime_shape, runtime_scale
        Of the two gamma distributions of log(runtime).
    first_slope, first_offset
        The first gamma's share is ``first_slope * size + first_offset``, within 0 to 1: larger
        jobs run longer.
    gap_shape, gap_scale, all_day_ratio
        Gamma distribution of the log of the time between arrivals in rush hours; the ratio,
        multiplied with the shape, makes it fit the whole day.
    day_shape, day_scale
        Gamma distribution of arrivals over the day, in half hours.
    """

    serial_probability: float = 0.2927
    power_of_two_probability: float = 0.6686
    log2_smallest: float = 1.2
    middle_below_largest: float = 2.0
    low_probability: float = 0.875
    runtime_shape: tuple[float, float] = (6.57, 639.1)
    runtime_scale: tuple[float, float] = (0.823, 0.0156)
    first_slope: float = -0.003
    first_offset: float = 0.6986
    gap_shape: float = 6.0415
    gap_scale: float = 0.8531
    all_day_ratio: float = 1.0519
    day_shape: float = 6.1271
    day_scale: float = 5.2740

    def sizes(self, jobs: int, processors: int, rng: np.random.Generator) -> Int64Array:
        """Draw the processors of jobs on a machine: shape (jobs,)."""
        largest = math.log2(processors)
        smallest = min(self.log2_smallest, largest)
        middle = max(smallest, largest - self.middle_below_largest)
        kind = rng.random(jobs)
        low = rng.random(jobs) < self.low_probability
        log2_size = np.where(low, rng.uniform(smallest, middle, jobs), 0.0)
        log2_size = np.where(low, log2_size, rng.uniform(middle, largest, jobs))
        power_of_two = kind <= self.serial_probability + self.power_of_two_probability
        log2_size = np.where(power_of_two, np.floor(log2_size + 0.5), log2_size)
        sizes = np.floor(2.0**log2_size + 0.5).astype(np.int64)
        # On a machine that is no power of two, rounding up may exceed it.
        sizes = np.where(sizes > processors, 2 ** int(largest), sizes)
        return np.where(kind <= self.serial_probability, 1, sizes).astype(np.int64)

    def runtimes(self, sizes: Int64Array, rng: np.random.Generator) -> Int64Array:
        """Draw runtimes for jobs of given sizes: shape (jobs,), seconds, at least 1."""
        first = rng.random(len(sizes)) <= np.clip(
            self.first_slope * sizes + self.first_offset, 0.0, 1.0
        )
        shape = np.where(first, *self.runtime_shape)
        scale = np.where(first, *self.runtime_scale)
        logs = _gamma_below(shape, scale, LARGEST_LOG_RUNTIME, rng)
        return np.maximum(np.exp(logs).astype(np.int64), 1)

    def arrivals(
        self, jobs: int, rng: np.random.Generator, *, span_s: float | None = None
    ) -> Int64Array:
        """Draw arrival times: shape (jobs,), seconds since a midnight, not decreasing.

        Gaps are drawn as if all half hours were alike, and are spent faster in busy half hours.
        With a span, gaps are scaled so that this much time passes from midnight to the last
        arrival; the daily cycle stays a day long.
        """
        shape = np.full(jobs, self.gap_shape * self.all_day_ratio)
        scale = np.full(jobs, self.gap_scale)
        spent = np.cumsum(np.exp(_gamma_below(shape, scale, LARGEST_LOG_GAP, rng)))
        # "Points" paid from midnight to the end of each half hour; a whole day costs a day.
        paid = np.concatenate(([0.0], np.cumsum(self.daily_cycle()))) * HALF_HOUR_S
        clock = np.arange(BUCKETS + 1) * float(HALF_HOUR_S)
        day = clock[-1]
        if span_s is not None:
            whole, rest = divmod(span_s, day)
            spent *= (whole * day + float(np.interp(rest, clock, paid))) / spent[-1]
        whole_days = np.floor(spent / day)
        return np.asarray(
            whole_days * day + np.interp(spent - whole_days * day, paid, clock)
        ).astype(np.int64)

    def daily_cycle(self) -> Float64Array:
        """Relative arrival rate of each half hour from midnight: shape (48,), mean 1."""
        nodes, weights = np.polynomial.legendre.leggauss(16)
        rates = np.empty(BUCKETS)
        for bucket in range(FIRST_BUCKET, FIRST_BUCKET + BUCKETS):
            # The model counts half hours from 1: the density from i - 1/2 to i + 1/2 is i's share.
            x = bucket + nodes / 2
            density = np.exp(
                (self.day_shape - 1) * np.log(x)
                - x / self.day_scale
                - math.lgamma(self.day_shape)
                - self.day_shape * math.log(self.day_scale)
            )
            rates[(bucket - 1) % BUCKETS] = float(density @ weights) / 2
        return np.asarray(rates / rates.mean())


def generate(
    jobs: int = 5_000,
    *,
    processors: int = 256,
    seed: int = 1,
    load: float | None = 0.7,
    model: Lublin2003 | None = None,
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
        Offered load: processor-seconds of all jobs / (processors x time of the last submission),
        reached by scaling the times between arrivals. ``None`` leaves them as published.
    model, request_model
        Parameters; the published ones, and the defaults of `RequestModel`, if not given.

    Returns
    -------
    Workload
        Its name and notes say that it is generated.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> from foretime_sim.models.lublin2003 import generate
    >>> workload = generate(100, processors=64, seed=1)
    >>> len(workload), workload.machine_processors
    (100, 64)
    """
    check_jobs(jobs)
    check_machine(processors, load)
    model = Lublin2003() if model is None else model
    size_rng, runtime_rng, arrival_rng, request_rng = random_streams(seed, 4)
    sizes = model.sizes(jobs, processors, size_rng)
    workload = requested_workload(
        f"generated-lublin2003-{jobs}-jobs-seed-{seed}",
        sizes,
        model.runtimes(sizes, runtime_rng),
        lambda span_s: model.arrivals(jobs, arrival_rng, span_s=span_s),
        processors=processors,
        load=load,
        model=request_model,
        rng=request_rng,
    )
    return replace(
        workload,
        notes=(
            f"generated, not real: sizes, runtimes and arrivals by the model of Lublin and "
            f"Feitelson (2003), requested times and users by Foretime's own; seed {seed}, "
            + ("arrivals as published" if load is None else f"offered load {load:g}"),
        ),
    )


def _gamma_below(
    shape: Float64Array, scale: Float64Array, largest: float, rng: np.random.Generator
) -> Float64Array:
    """Draw from gamma distributions, again where a value exceeds the largest allowed."""
    values = rng.gamma(shape, scale)
    while (again := np.flatnonzero(values > largest)).size:
        values[again] = rng.gamma(shape[again], scale[again])
    return values
