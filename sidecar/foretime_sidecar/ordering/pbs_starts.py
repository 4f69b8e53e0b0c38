"""Which waiting jobs of a PBS should start now, by the model of its scheduler, and in which order.

With strict_ordering PBS plans a start for its top jobs, by its own order, and these keep it. Behind
them the jobs that wait are gone through by the same scheduler (docs/pbs_model.md), the shortest
expected first, each planned with what it is expected to take and those that run with all that they
asked for. Named are those that start so, if PBS would start them, too, once they are raised.

PBS itself fills what a job leaves as it ends, before anybody can look. Where its own order is that
of submissions, jobs therefore have ranks all the time: who was submitted first stands in front, and
the others behind by what they are expected to take, so that PBS, too, tries the shortest first. A
tenth of a second is added for each second that a job was submitted later: a rank need not change
as time goes by, and whoever has waited ten hours longer than one goes before it even if it is
expected to take an hour more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import Int8Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.forward import first_pass
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.policies.role_times import RoleTimes
from foretime_sim.sites.pbs.formula import RANK
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.waits.moment import Moment

from foretime_sidecar.clients.client import QueuedJob, SchedulerConfiguration
from foretime_sidecar.forecasts.pbs_moment import under_pbs
from foretime_sidecar.ordering.queue_order import can_start
from foretime_sidecar.ordering.raising import SeenFactors
from foretime_sidecar.ordering.start_plan import StartPlan, as_asked, start_key
from foretime_sidecar.ordering.start_way import ExpectedOf
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_snapshot import snapshot_of
from foretime_sidecar.site_import.kept_site import KeptSite

logger = logging.getLogger("foretime")

_BY_PLACE = "job_priority"  # in the model a job's place in our order stands there
_SOFT = "soft_walltime"
_RAISED, _HEADS, _OTHERS = 3_000_000_000, 2_000_000_000, 1_000_000_000
_EPOCH = 1_600_000_000  # 2020, so that ranks are small numbers
_PER_SECOND = 10
_UNTOLD_LOOKS, _TRIED_AGAIN_LOOKS = 3, 60


class PbsStarts:
    """PBS: by a rank that job_sort_formula is, in front of its top jobs.

    Parameters
    ----------
    known
        The site as it is read from PBS; ``None`` if nothing reads it.
    """

    owns_all = True

    def __init__(self, known: KeptSite | None) -> None:
        self._known = known
        self._said = ""
        self._untold: dict[str, int] = {}  # looks at a first job that PBS has told no start of

    def why_not(self, look: Look, configuration: SchedulerConfiguration) -> str:
        """Say why no job can be started safely; "" if one can."""
        del look
        if self._known is None:
            return 'how this PBS schedules is not read: set forecast.run_as = "site"'
        site = self._known.site
        if not isinstance(site, PbsSite):
            return f"how this PBS schedules is not known: {self._known.standing.why_not}"
        if configuration.parameters.get("scheduling", "").lower() != "true":
            return "scheduling is switched off in PBS"
        return why_no_ranks(site)

    def plan(
        self,
        look: Look,
        expected: ExpectedOf,
        seen: SeenFactors,
        lateness: Callable[[str], float],
        late_by: Callable[[QueuedJob], float | None],
    ) -> tuple[StartPlan, dict[str, int]]:
        """Say who should start now, and the ranks; nobody where the model can't have the queue."""
        del seen, late_by  # nobody else gives ranks; PBS's own top jobs hold the reservations
        if self._known is None or not isinstance(self._known.site, PbsSite):
            return StartPlan((), {}), {}
        site = self._known.site
        waiting = [job for job in look.queue.jobs if can_start(job, look.taken_at)]
        by_submission = goes_by_submission(site)
        depth = site.server.backfill_depth or 1
        first = self._submitted_first(waiting, depth) if by_submission else told_starts(waiting)
        heads = {job.request.job_id: job for job in first}
        try:
            plan = plan_starts_on_pbs(look, site, heads, expected, lateness, self._known.read_at)
        except InputError as error:
            if str(error) != self._said:
                logger.warning("no job is started at once: %s", error)
            self._said = str(error)
            return StartPlan((), heads), {}
        self._said = ""
        ranks: dict[str, int] = {}
        if by_submission:
            for job in waiting:
                time = expected(job)
                takes = job.request.requested_time if time is None else time.queue
                later = (job.request.submit_time - _EPOCH) // _PER_SECOND
                ranks[job.request.job_id] = max(_OTHERS - later - takes, 1)
            ranks |= _descending(_HEADS, heads.values())
        return plan, ranks | _descending(_RAISED, plan.starts)

    def _submitted_first(self, waiting: Sequence[QueuedJob], depth: int) -> list[QueuedJob]:
        """Give the jobs that were submitted first, but for those that PBS plans no start of.

        Such a job can't run as things are, and nobody else would have a planned start while it
        stands in front. It is tried again from time to time.
        """
        first: list[QueuedJob] = []
        untold: dict[str, int] = {}
        for job in waiting:
            if len(first) == depth:
                break
            name = job.request.job_id
            looks = 0 if job.start_time is not None else self._untold.get(name, 0)
            untold[name] = looks + 1
            if looks < _UNTOLD_LOOKS or looks % _TRIED_AGAIN_LOOKS == 0:
                first.append(job)
        self._untold = untold
        return first


def why_no_ranks(site: PbsSite) -> str:
    """Say why a rank does nothing at a site, or harm; "" if it does what it should."""
    server, scheduler = site.server, site.scheduler
    formula = server.job_sort_formula
    if not scheduler.strict_ordering:
        return (
            "strict_ordering is off in sched_config: PBS then starts each job that fits, whoever "
            "waits, and there is nobody to be started before others"
        )
    if formula is None:
        return f"job_sort_formula is not {RANK}: run foretime install pbs --yes"
    if formula != RANK:
        return (
            f"job_sort_formula is the site's own ({formula}), and a job can be raised only where it"
            f" is {RANK}"
        )
    if server.job_sort_formula_threshold is not None:
        return (
            "job_sort_formula_threshold is set: jobs at or below it wait for good, as all that are "
            "not raised would"
        )
    if scheduler.round_robin:
        return "round_robin is on in sched_config: a raised job waits for the turn of its queue"
    if server.backfill_depth == 0 or any(queue.backfill_depth == 0 for queue in site.queues):
        return "backfill_depth is 0: nobody may start before the first job that has to wait"
    return ""


def goes_by_submission(site: PbsSite) -> bool:
    """Say whether PBS, without ranks, orders jobs by their submission alone."""
    scheduler, queues = site.scheduler, [queue for queue in site.queues if queue.started]
    same = len(queues) == 1 or (
        not scheduler.by_queue and len({queue.priority for queue in queues}) == 1
    )
    return same and not (scheduler.fair_share or scheduler.job_sort_key or site.dedicated_time)


def told_starts(waiting: Sequence[QueuedJob]) -> list[QueuedJob]:
    """Give the jobs that PBS has told a start of, the earliest first."""
    told = [(job.start_time, row) for row, job in enumerate(waiting) if job.start_time is not None]
    return [waiting[row] for _, row in sorted(told)]


def plan_starts_on_pbs(
    look: Look,
    site: PbsSite,
    heads: Mapping[str, QueuedJob],
    expected: ExpectedOf,
    lateness: Callable[[str], float],
    read_at: int | None = None,
) -> StartPlan:
    """Say who should start now.

    Parameters
    ----------
    look
        The queue.
    site
        As it was read, its formula being the rank.
    heads
        Whom nobody may delay, by id, in this order.
    expected
        As of `foretime_sidecar.ordering.start_plan.plan_starts`.
    lateness
        How late a top job is, by its id, from 0 to 1; the latest counts for all that could start.
    read_at
        When the site was so, epoch seconds; ``None``: now.

    Returns
    -------
    StartPlan
        Its ``heads`` are those given.

    Raises
    ------
    InputError
        If the model can't have this site's queue.
    """
    taken = snapshot_of(look.queue, taken_at=look.taken_at, soft_limit=look.soft_limit, of_pbs=True)
    waiting = taken.jobs[len(taken.snapshot.running) :]
    row_of = {job.request.job_id: row for row, job in enumerate(waiting)}
    heads = {name: job for name, job in heads.items() if name in row_of}
    first = [row_of[name] for name in heads]
    if not first:
        return StartPlan((), {})
    share = min(max(0.0, *(lateness(name) for name in heads)), 1.0)
    nobody = np.zeros(0, dtype=np.int64)
    plain = Moment(taken.snapshot, Policy(correction=look.correction), taken.requests, nobody)
    snapshot = under_pbs(plain, site, read_at)[0].snapshot
    requested = snapshot.pending.requested_time
    key, fits = requested.astype(np.float64), requested.copy()
    may = np.zeros(len(waiting), dtype=bool)
    of_job = {id(job): expected(job) for job in waiting}
    for row, job in enumerate(waiting):
        if row not in first and (time := of_job[id(job)]) is not None:
            may[row] = True
            key[row] = start_key(time, job, look.taken_at)
            fits[row] = time.backfill + round((int(requested[row]) - time.backfill) * share)
    others = np.argsort(key, kind="stable").tolist()
    in_order = [*first, *(row for row in others if row not in first)]
    times = RoleTimes(fits, fits, None)
    ours = as_asked(snapshot, times, _places(in_order, len(waiting)))
    started = _started(ours, _shortest_first(site, len(first)))
    chosen = [row for row in in_order if may[row] and started[row]]
    if not chosen:
        return StartPlan((), heads)
    pending = replace(snapshot.pending, priority=_places(chosen, len(waiting)))
    by_rank = replace(site, server=replace(site.server, job_sort_formula=_BY_PLACE))
    really = _started(replace(snapshot, pending=pending), by_rank)
    return StartPlan(tuple(waiting[row] for row in chosen if really[row]), heads)


def _descending(highest: int, jobs: Iterable[QueuedJob]) -> dict[str, int]:
    return {job.request.job_id: highest - place for place, job in enumerate(jobs)}


def _places(rows: list[int], jobs: int) -> Int64Array:
    """Give jobs numbers by which the first of some rows is highest, and others have 0."""
    places = np.zeros(jobs, dtype=np.int64)
    places[rows] = np.arange(len(rows), 0, -1)
    return places


def _started(snapshot: Snapshot, site: PbsSite) -> Int8Array:
    here = replace(site, hosts=tuple(host for host in site.hosts if host.name not in snapshot.away))
    return first_pass(snapshot, Policy(backfill=Pbs(here), correction=Correction.PBS))


def _shortest_first(site: PbsSite, heads: int) -> PbsSite:
    """Give a site that goes through jobs by their places, so many of them with a planned start.

    Limits, hosts and what is set aside stay; whose turn it is by queue or share does not count.
    """
    scheduler = site.scheduler
    resources = dict.fromkeys((*scheduler.resources, _SOFT))  # each time is a class of its own
    return replace(
        site,
        server=replace(site.server, job_sort_formula=_BY_PLACE, backfill_depth=heads),
        queues=tuple(replace(queue, backfill_depth=None) for queue in site.queues),
        scheduler=replace(
            scheduler, by_queue=False, fair_share=False, job_sort_key=(), resources=tuple(resources)
        ),
    )
