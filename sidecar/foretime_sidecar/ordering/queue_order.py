"""In which order Slurm's queue should stand, and the site factors that put it there.

Pure: from scores to the fewest changes of site factors; `foretime_sidecar.ordering.ordering` makes
them. The orders are those of the engine (`foretime_sim.policies.order.Order`), on t_sched and on
the wait since a job could first have started: FCFS, WFP (Tang 2010, equation 1: (wait / time)^3 *
processors), SJF, LJF, and the largest expansion factor ((wait + time) / time). Whatever the order,
some jobs may go before all others: those that have waited for too long, or near the bound that they
were told.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from foretime_sim.engine.queue_places import score
from foretime_sim.policies.order import Order

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.queue.site_factors import name_of


@dataclass(frozen=True, slots=True)
class Contender:
    """What is put in order: a pending job, or a whole job array.

    Attributes
    ----------
    job_id
        The job's identifier; for an array its own, never a task's.
    score
        Higher goes first.
    submit_time
        Among equal scores the earlier goes first.
    goes_first
        Whether it goes before all that don't, among which its score then is its wait.
    """

    job_id: str
    score: float
    submit_time: int
    goes_first: bool = False


def contenders(
    jobs: Iterable[QueuedJob],
    order: Order,
    scheduled_time: Callable[[QueuedJob], int],
    now: int,
    goes_first: Callable[[QueuedJob], bool] = lambda _: False,
) -> list[Contender]:
    """Give what can be put in order: pending jobs that could start now, arrays as one.

    Held and dependent jobs, those that may begin later only, and parts of heterogeneous jobs are
    left where they are. An array stands where its first task would. Jobs that go first stand before
    the others, whoever waits longest in front.

    Parameters
    ----------
    jobs
        The queue.
    order
        One by t_sched.
    scheduled_time
        t_sched of a job, seconds.
    now
        Epoch seconds.
    goes_first
        Whether a job goes before the others, whatever the order.
    """
    found: dict[str, Contender] = {}
    for job in jobs:
        if not can_start(job, now):
            continue
        request = job.request
        name, first = name_of(job), goes_first(job)
        by = Order.FCFS if first else order
        wait_s = now - (now if job.eligible_time is None else job.eligible_time)
        value = score(by, wait_s, scheduled_time(job), request.processors)
        known = found.get(name)
        if known is None or (first, value) > (known.goes_first, known.score):
            found[name] = Contender(name, value, request.submit_time, first)
    return sorted(
        found.values(),
        key=lambda each: (not each.goes_first, -each.score, each.submit_time, each.job_id),
    )


def can_start(job: QueuedJob, now: int) -> bool:
    """Whether only the machine and other jobs keep a job from starting now (epoch seconds)."""
    if job.state is not QueueState.PENDING or job.held or job.dependent or job.heterogeneous:
        return False
    return job.eligible_time is not None and job.eligible_time <= now


def site_factors(
    in_order: Sequence[str], current: Mapping[str, int], highest: int
) -> dict[str, int]:
    """Give the site factors that must change for jobs to stand in an order, as few as can be.

    The first job gets the highest factor; all lie in 1..``highest``. Those whose present factors
    already stand in order keep them (the longest increasing sequence of them), and the others get
    factors in between. Where there is no room in between, all are spread out anew. With more jobs
    than factors, neighbours share one, and Slurm orders them by itself.

    Parameters
    ----------
    in_order
        Jobs, first to last.
    current
        The factors that they have; one without any, or with one out of bounds, is new.
    highest
        Highest factor, at least 1.

    Returns
    -------
    dict
        New factors of the jobs whose factor changes.
    """
    upwards = list(reversed(in_order))
    if len(upwards) > highest:
        wanted = {
            job_id: 1 + place * highest // len(upwards) for place, job_id in enumerate(upwards)
        }
    else:
        wanted = _fitted(upwards, current, highest) or _spread(upwards, 0, highest + 1)
    return {job_id: factor for job_id, factor in wanted.items() if current.get(job_id) != factor}


def _spread(job_ids: Sequence[str], below: int, above: int) -> dict[str, int]:
    """Spread factors evenly between two bounds, neither of which is taken."""
    step = (above - below) / (len(job_ids) + 1)
    return {job_id: below + int((place + 1) * step) for place, job_id in enumerate(job_ids)}


def _fitted(
    upwards: Sequence[str], current: Mapping[str, int], highest: int
) -> dict[str, int] | None:
    """Put the jobs that move between those that stay; ``None`` if there is no room."""
    staying = _longest_increasing(
        [
            (place, current[job_id])
            for place, job_id in enumerate(upwards)
            if 1 <= current.get(job_id, 0) <= highest
        ]
    )
    wanted: dict[str, int] = {}
    first, below = 0, 0
    for place, factor in [*staying, (len(upwards), highest + 1)]:
        moving = upwards[first:place]
        if len(moving) > factor - below - 1:
            return None
        wanted |= _spread(moving, below, factor)
        if place < len(upwards):
            wanted[upwards[place]] = factor
        first, below = place + 1, factor
    return wanted


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give a longest subsequence whose second members strictly increase (patience sorting)."""
    tops: list[int] = []
    top_places: list[int] = []
    before: list[int | None] = []
    for number, (_, value) in enumerate(pairs):
        # Strictly: an equal value replaces its equal.
        pile = bisect_right(tops, value - 1)
        before.append(top_places[pile - 1] if pile else None)
        if pile == len(tops):
            tops.append(value)
            top_places.append(number)
        else:
            tops[pile] = value
            top_places[pile] = number
    sequence = []
    number_or_none = top_places[-1] if top_places else None
    while number_or_none is not None:
        sequence.append(pairs[number_or_none])
        number_or_none = before[number_or_none]
    return sequence[::-1]
