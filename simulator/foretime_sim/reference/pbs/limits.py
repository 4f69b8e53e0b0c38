"""Limits of the server and its queues (limits.cpp of OpenPBS).

Limits of running jobs are looked at before a job starts, at this moment and at each moment until
its end at which a top job would run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from foretime_sim.reference.pbs.calendar import Calendar, EventKind
from foretime_sim.reference.pbs.job import PbsJob
from foretime_sim.sites.pbs.limits import EntityLimits, PbsLimits
from foretime_sim.sites.pbs.site import PbsSite

_JOBS = "jobs"
Key = tuple[str, str, str]
"""Where it is counted (a queue, "" for the server), of whom, and what (a resource, or jobs)."""


@dataclass(slots=True)
class Counts:
    """What running jobs have, by place, person and resource."""

    of: dict[Key, float] = field(default_factory=dict)

    def copy(self) -> Counts:
        """Give another with the same."""
        return Counts(dict(self.of))

    def add(self, job: PbsJob, sign: int) -> None:
        """Count a job that starts (1) or ends (-1)."""
        amounts = {_JOBS: 1.0, **job.list}
        for place in ("", job.queue):
            for who in entities(job):
                for what, amount in amounts.items():
                    key = (place, who, what)
                    self.of[key] = self.of.get(key, 0) + sign * amount

    def raise_to(self, other: Counts) -> None:
        """Take the greater of each count."""
        for key, amount in other.of.items():
            self.of[key] = max(self.of.get(key, 0), amount)


def entities(job: PbsJob) -> tuple[str, ...]:
    """Give whom a job is counted with: all, its user, its group, its project."""
    return ("o:PBS_ALL", f"u:{job.user}", f"g:{job.group}", f"p:{job.project}")


def why_not_started(
    site: PbsSite, job: PbsJob, counts: Counts, calendar: Calendar, end: int
) -> str | None:
    """Say which limit keeps a job from starting now; ``None``: no limit."""
    most = counts.copy()
    if calendar.run_before(end):
        then = counts.copy()
        for event in calendar.until(end):
            if event.job is None or event.job is job:
                continue
            begins = event.kind is EventKind.RUN
            then.add(event.job, 1 if begins else -1)
            if begins:
                most.raise_to(then)
    for place, limits in _places(site, job):
        for what, by_whom in (
            (_JOBS, limits.max_run),
            *((name, found) for name, found in limits.max_run_res.items()),
        ):
            amount = 1.0 if what == _JOBS else job.list.get(what)
            if amount is None:
                continue
            for who, limit in _of_job(by_whom, job):
                if most.of.get((place, who, what), 0) + amount > limit:
                    return f"{place or 'server'}: {what} of {who}: {limit}"
    return None


def why_refused(site: PbsSite, job: PbsJob, in_queue: Counts, waiting: Counts) -> str | None:
    """Say which limit refuses a job at its submission; ``None``: it is taken.

    ``in_queue`` counts jobs that wait or run, ``waiting`` those that wait.
    """
    for place, limits in _places(site, job):
        for counts, jobs, resources in (
            (in_queue, limits.max_queued, limits.max_queued_res),
            (waiting, limits.queued_jobs_threshold, limits.queued_jobs_threshold_res),
        ):
            for what, by_whom in ((_JOBS, jobs), *resources.items()):
                amount = 1.0 if what == _JOBS else job.list.get(what, 0)
                for who, limit in _of_job(by_whom, job):
                    if counts.of.get((place, who, what), 0) + amount > limit:
                        return f"{place or 'server'}: queued {what} of {who}: {limit}"
    queue = site.queue(job.queue)
    if not queue.enabled:
        return f"queue {queue.name} is disabled"
    return _out_of_range(site, job)


def _out_of_range(site: PbsSite, job: PbsJob) -> str | None:
    for owner in (site.server, site.queue(job.queue)):
        for name, most in owner.resources_max.items():
            if job.list.get(name, 0) > most:
                return f"{name} above {most}"
        for name, least in owner.resources_min.items():
            if name in job.list and job.list[name] < least:
                return f"{name} below {least}"
    return None


def _places(site: PbsSite, job: PbsJob) -> tuple[tuple[str, PbsLimits], ...]:
    return (("", site.server.limits), (job.queue, site.queue(job.queue).limits))


def _of_job(limits: EntityLimits, job: PbsJob) -> Iterator[tuple[str, int]]:
    """Give the limits that hold for a job, one for each kind; a name goes before the generic."""
    for who in entities(job):
        generic = f"{who[0]}:PBS_GENERIC"
        if who in limits:
            yield who, limits[who]
        elif generic in limits:
            yield who, limits[generic]


def resources_available(site: PbsSite, job: PbsJob) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Give what the server and the job's queue have for all their jobs together."""
    yield "", site.server.resources_available
    yield job.queue, site.queue(job.queue).resources_available
