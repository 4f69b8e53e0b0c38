"""What a workload looks like in figures: load, people, sizes, times, and how submissions come.

Table 2 of Streit 2002, and what a log's shape is judged by besides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array

from foretime_sim.models.week_profile import WeekProfile
from foretime_sim.models.weibull import (
    Weibull,
    fit_likelihood,
    fit_moments,
    fit_shape,
    search_moments,
)
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.site_clock import UTC, SiteClock
from foretime_sim.workloads.workload import Workload

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
POPULAR_REQUESTS = 20
"""Tsafrir, Etsion and Feitelson 2005: the most popular 20 requests are those of 85% of jobs."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Mean, minimum, maximum, and the `QUANTILES` in their order."""

    mean: float
    minimum: float
    maximum: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GapFit:
    """A Weibull distribution of the time between submissions.

    Attributes
    ----------
    alpha, beta_s, mean_s
        Of the distribution; seconds.
    distance
        Largest difference between its cdf and the gaps' own (Kolmogorov and Smirnov's).
    """

    alpha: float
    beta_s: float
    mean_s: float
    distance: float


@dataclass(frozen=True, slots=True)
class Submissions:
    """How submissions come.

    Attributes
    ----------
    gap_s
        Time between submissions, seconds.
    same_second
        Share of jobs submitted in the same second as the one before: what table 2 of Streit 2002
        calls likelihood of interarrival time.
    moments, search, shape, likelihood
        Weibull distributions, by each way to fit one (`foretime_sim.models.weibull`).
    busiest_hour, quietest_hour
        Rates of the busiest and the quietest hour of the day over the mean rate.
    weekend
        Rate on Saturdays and Sundays over the mean rate; ``None`` where the log does not say when
        it started.
    hours_of
        By whose clock: the site's time zone, or UTC where the log names none.
    """

    gap_s: Distribution
    same_second: float
    moments: GapFit
    search: GapFit
    shape: GapFit
    likelihood: GapFit
    busiest_hour: float
    quietest_hour: float
    weekend: float | None
    hours_of: str


@dataclass(frozen=True, slots=True)
class Description:
    """Figures of a workload.

    Attributes
    ----------
    name, jobs, machine_processors
        Of the workload.
    first_submission, last_submission
        Dates (UTC), or days where the log does not say when it started.
    span_s
        Seconds between the two.
    offered_load
        Processor-seconds of all jobs / (processors x span); ``None`` for a span of 0.
    users, projects, queues
        How many distinct ones; ``None`` where the log has none at all.
    size, runtime_s, requested_time_s, accuracy
        Distributions over jobs; accuracy is R = runtime / requested time.
    at_limit
        Share of jobs that ran for their requested time or longer.
    requests, popular_requests
        How many distinct requested times there are, and the share of jobs with one of the 20 most
        popular.
    submissions
        ``None`` where all jobs were submitted in the same second.
    """

    name: str
    jobs: int
    machine_processors: int
    first_submission: str
    last_submission: str
    span_s: int
    offered_load: float | None
    users: int | None
    projects: int | None
    queues: int | None
    size: Distribution
    runtime_s: Distribution
    requested_time_s: Distribution
    accuracy: Distribution
    at_limit: float
    requests: int
    popular_requests: float
    submissions: Submissions | None


def describe(workload: Workload, clock: SiteClock = UTC) -> Description:
    """Work out the figures of a workload; hours and days are those of a clock.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.models.description import describe
    >>> found = describe(generate("lublin2003", jobs=500, load=0.9, seed=1))
    >>> found.jobs, found.requests, round(found.offered_load, 1)
    (500, 18, 0.9)
    """
    first, last = int(workload.submit_time[0]), int(workload.submit_time[-1])
    work = float(workload.processors.astype(np.float64) @ workload.actual_runtime)
    accuracy = workload.actual_runtime / workload.requested_time
    popularity = np.sort(np.unique(workload.requested_time, return_counts=True)[1])[::-1]
    return Description(
        name=workload.name,
        jobs=len(workload),
        machine_processors=workload.machine_processors,
        first_submission=workload.moment(first),
        last_submission=workload.moment(last),
        span_s=last - first,
        offered_load=work / (workload.machine_processors * (last - first))
        if last > first
        else None,
        users=_distinct(workload.users),
        projects=_distinct(workload.projects),
        queues=_distinct(workload.queues),
        size=_distribution(workload.processors),
        runtime_s=_distribution(workload.actual_runtime),
        requested_time_s=_distribution(workload.requested_time),
        accuracy=_distribution(accuracy),
        at_limit=float(np.mean(accuracy >= 1)),
        requests=len(popularity),
        popular_requests=float(popularity[:POPULAR_REQUESTS].sum() / len(workload)),
        submissions=_submissions(workload, clock) if last > first else None,
    )


def _submissions(workload: Workload, clock: SiteClock) -> Submissions:
    gaps = np.diff(workload.submit_time)
    profile = WeekProfile.of(workload, clock)
    by_hour = profile.by_hour_of_day
    return Submissions(
        gap_s=_distribution(gaps),
        same_second=float(np.mean(gaps == 0)),
        moments=_gap_fit(fit_moments(gaps), gaps),
        search=_gap_fit(search_moments(gaps), gaps),
        shape=_gap_fit(fit_shape(gaps), gaps),
        likelihood=_gap_fit(fit_likelihood(gaps), gaps),
        busiest_hour=float(by_hour.max()),
        quietest_hour=float(by_hour.min()),
        weekend=None if workload.unix_start_time is None else float(profile.by_day[5:].mean()),
        hours_of=clock.name,
    )


def _gap_fit(weibull: Weibull, gaps: Int64Array) -> GapFit:
    return GapFit(weibull.alpha, weibull.beta_s, weibull.mean_s, weibull.distance(gaps))


def _distinct(labels: Labels | None) -> int | None:
    """Count the names that occur."""
    return None if labels is None else len(np.unique(labels.codes[~labels.mask]))


def _distribution(values: Int64Array | Float64Array) -> Distribution:
    quantiles = np.quantile(values, QUANTILES)
    return Distribution(
        float(values.mean()), float(values.min()), float(values.max()), tuple(quantiles.tolist())
    )
