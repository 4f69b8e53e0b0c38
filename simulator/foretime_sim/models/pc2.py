"""A workload like that of PC2's 96-node hpcLine in 2001, from what Streit 2002 tells of it.

The log itself is not public. Table 2 gives means, extremes and the Weibull distribution of the time
between submissions; the text around figure 1 says that three requests make up 52% of all, and that
many jobs end at the limit; tables 3 and 5 say how much work 10,000 jobs are. The rest is assumed,
with as few free choices as will do:

- widths are powers of two, their shares falling as width^theta to meet the published mean, and for
  one job in 500 the whole machine: with more of these, jobs wait far longer than in tables 4 and 5;
- the three frequent requests are equally frequent; the others are round times from the shortest to
  the longest published one, their shares falling as time^gamma to meet the published mean;
- a job either runs into its limit, or its runtime is uniform in the logarithm from a second to its
  request; the share of the former (31%: figure 1's steps) meets the published mean, and 57% of the
  jobs come out below 5 minutes, where section 5.2 has almost half of those of all four sets;
- width and request are tied by a normal copula, so that work is what table 5's utilization says.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.time_units import DAY_S, HOUR_S, MINUTE_S

from foretime_sim.models.generation import check_jobs, check_machine, random_streams
from foretime_sim.models.weibull import Weibull
from foretime_sim.workloads.job_log import count_jobs
from foretime_sim.workloads.workload import Workload

PROCESSORS = 96
INTERARRIVAL = Weibull(0.25, 40.0)
"""Table 2; its mean is 960 s, and the log's 870 s."""
MEAN_WIDTH, MEAN_REQUEST_S, MEAN_RUNTIME_S = 6.34, 11_716.0, 4_346.0
"""Table 2."""
FREQUENT_REQUESTS_S = (600, 1_800, 7_200)
FREQUENT_SHARE = 0.52
"""Section 4, on figure 1."""
WIDTHS = np.array([1, 2, 4, 8, 16, 32, 64, PROCESSORS], dtype=np.int64)
WHOLE_MACHINE_SHARE = 0.002
"""Chosen from 1.3% (the power law's), 0.2% and 0.05% by waits under FCFS and SJF with
conservative backfilling: response times weighted by width are 43,000 and 32,000 s (medians of ten
sets), where table 4 has 43,124 s for the decider that starts most jobs by FCFS and 31,493 s for the
one that starts them by SJF. With 1.3% they are 150,000 and 70,000 s."""
OTHER_REQUESTS_S = np.array(
    [minutes * MINUTE_S for minutes in (5, 15, 20, 45)]
    + [hours * HOUR_S for hours in (1, 3, 4, 6, 8, 12)]
    + [days * DAY_S for days in (1, 2, 3, 7)],
    dtype=np.int64,
)
RARE_REQUESTS_S = (1, 1_209_600)
RARE_SHARE = 1 / 35_094
"""Of each: one job of the log. The paper's set of 10,000 has the shortest, and not the longest."""
LONGEST_RUNTIME_S = 604_800
"""Table 2: who asked for two weeks ran for one at most."""
CORRELATION = 0.148
"""Of the two normal variables behind width and request. The mean of width x runtime becomes 1.436
times the product of their means: table 5's utilization of 42.49% of 96 processors over 10,000 gaps
of 1,013 s (table 3), over 6.48 x 4,442 s."""


def generate(
    jobs: int = 10_000, *, seed: int = 1, shrink: float = 1.0, load: float | None = None
) -> Workload:
    """Generate a workload; the same arguments always give the same.

    Parameters
    ----------
    jobs
        How many; the paper has 10,000.
    seed
        At least 0.
    shrink
        What the times between submissions are multiplied by (section 5).
    load
        Offered load, in place of ``shrink``: the factor that reaches it is taken.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> from foretime_sim.models.pc2 import generate
    >>> workload = generate(100, seed=1)
    >>> len(workload), workload.machine_processors
    (100, 96)
    """
    check_jobs(jobs)
    check_machine(PROCESSORS, load)
    arrival_rng, job_rng = random_streams(seed, 2)
    submissions = np.floor(np.cumsum(INTERARRIVAL.draw(jobs - 1, arrival_rng)))
    processors, requested, runtime = _jobs(jobs, job_rng)
    submit = np.concatenate(([0], submissions.astype(np.int64)))
    if load is not None and submit[-1]:
        shrink = float(processors @ runtime) / (PROCESSORS * load * float(submit[-1]))
    note = (
        f"generated, not real: {count_jobs(jobs)} after the published statistics of PC2's log "
        f"(Streit 2002, tables 2, 3 and 5); seed {seed}, shrinking factor {shrink:g}"
    )
    workload = Workload(
        name=f"generated-pc2-{jobs}-jobs-seed-{seed}",
        machine_processors=PROCESSORS,
        unix_start_time=None,
        job_id=np.arange(1, jobs + 1, dtype=np.int64),
        submit_time=submit,
        processors=processors,
        actual_runtime=runtime,
        requested_time=requested,
        notes=(note,),
    )
    return workload.with_interarrival_factor(shrink)


def width_shares() -> Float64Array:
    """Give the share of each of `WIDTHS`."""
    rest = 1 - WHOLE_MACHINE_SHARE
    mean = (MEAN_WIDTH - WHOLE_MACHINE_SHARE * PROCESSORS) / rest
    return np.append(rest * shares_of_mean(WIDTHS[:-1], mean), WHOLE_MACHINE_SHARE)


def request_shares() -> tuple[Int64Array, Float64Array]:
    """Give every request, ascending, and its share."""
    frequent = np.array(FREQUENT_REQUESTS_S, dtype=np.int64)
    rare = np.array(RARE_REQUESTS_S, dtype=np.int64)
    rest = 1 - FREQUENT_SHARE - 2 * RARE_SHARE
    known = FREQUENT_SHARE * float(frequent.mean()) + RARE_SHARE * float(rare.sum())
    others = rest * shares_of_mean(OTHER_REQUESTS_S, (MEAN_REQUEST_S - known) / rest)
    requests = np.concatenate((frequent, rare, OTHER_REQUESTS_S))
    shares = np.concatenate((np.full(3, FREQUENT_SHARE / 3), np.full(2, RARE_SHARE), others))
    order = np.argsort(requests)
    return requests[order], shares[order]


def limit_share() -> float:
    """Give the share of jobs that run into their limit."""
    requests, shares = request_shares()
    seconds = np.minimum(requests, LONGEST_RUNTIME_S).astype(np.float64)
    # The mean of what is uniform in the logarithm from 1 to t is (t - 1) / ln t.
    shorter = np.where(seconds > 1, (seconds - 1) / np.log(np.maximum(seconds, 2)), 1.0)
    mean_shorter = float(shares @ shorter)
    return (MEAN_RUNTIME_S - mean_shorter) / (float(shares @ seconds) - mean_shorter)


def shares_of_mean(values: Int64Array, mean: float) -> Float64Array:
    """Give shares in proportion to value^exponent, with the exponent that gives a mean."""
    logs = np.log(values.astype(np.float64))
    low, high = -20.0, 20.0
    for _ in range(80):
        exponent = (low + high) / 2
        weights = np.exp(exponent * (logs - logs.mean()))
        shares = weights / weights.sum()
        low, high = (low, exponent) if float(shares @ values) > mean else (exponent, high)
    return np.asarray(shares)


def _jobs(jobs: int, rng: np.random.Generator) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Draw widths, requests and runtimes."""
    requests, shares = request_shares()
    one = rng.standard_normal(jobs)
    other = CORRELATION * one + np.sqrt(1 - CORRELATION**2) * rng.standard_normal(jobs)
    processors = WIDTHS[np.searchsorted(_ends(width_shares()), one)]
    requested = requests[np.searchsorted(_ends(shares), other)]
    longest = np.minimum(requested, LONGEST_RUNTIME_S)
    shorter = np.maximum(np.floor(longest ** rng.random(jobs)), 1).astype(np.int64)
    at_limit = rng.random(jobs) < limit_share()
    return processors, requested, np.where(at_limit, longest, shorter)


def _ends(shares: Float64Array) -> Float64Array:
    """Give where each share but the last ends on the axis of a standard normal variable."""
    normal = NormalDist()
    return np.array([normal.inv_cdf(end) for end in np.cumsum(shares)[:-1].tolist()])
