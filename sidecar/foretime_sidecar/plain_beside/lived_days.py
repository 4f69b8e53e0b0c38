"""The site's own scheduler, run from a real moment on with what is known of later jobs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from foretime_sidecar.clients.cluster import HeldNode
from foretime_sidecar.plain_beside.beginnings import Beginning, RealMoment, nodes_by_index
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.living_jobs import LivingJobs, begin, leave
from foretime_sidecar.queue.queue_events import Key

_STEP_S = 6 * 3600


class Raiser(Protocol):
    """Who lets jobs start before others in a run."""

    interval_s: int

    def look(self, living: LivingJobs) -> None:
        """Change what it wants to at the clock's time."""
        ...


@dataclass(frozen=True, slots=True)
class Lived:
    """What has become of a run.

    Attributes
    ----------
    starts
        The start of each job that could and takes part; ``None``: it never does.
    then
        How jobs stood at the end of the day, for the run of the next one.
    """

    starts: Mapping[Key, int | None]
    then: Beginning


def lived(
    known: Iterable[KnownJob],
    moment: RealMoment,
    beginning: Beginning,
    now: int,
    until: int,
    raiser: Raiser | None = None,
) -> Generator[None, None, Lived]:
    """Run the site's scheduler from a moment on; say when jobs start, and how they stand then.

    It pauses now and then, for whoever has only so much time.

    Jobs take as long as they took, or as long as is expected of them ``now``. Who was withdrawn
    leaves then, started or not.

    Parameters
    ----------
    known
        Jobs that ran, waited or came later.
    moment
        Where the run begins, with its nodes and site.
    beginning
        Who runs there, and who has ended.
    now
        Epoch seconds.
    until
        End of the day, epoch seconds. The run goes on until the jobs that could start before have.
    raiser
        Who lets jobs start before others; ``None``: nobody.

    Raises
    ------
    InputError
        If the site or the queue can't be simulated.
    """
    known = list(known)
    living = begin(known, moment, beginning, now)
    engine, began_at = living.engine, moment.began_at
    waited_for = [
        index
        for index, (job, _) in enumerate(living.jobs)
        if (job.could_start or 0) < until and job.key not in beginning.running
    ]
    leaving = sorted(
        (job.end_time, index)
        for index, (job, _) in enumerate(living.jobs)
        if job.start_time is None and job.end_time is not None
    )
    open_ones, clock = set(waited_for), began_at
    then: Beginning | None = None
    while open_ones or then is None:
        clock = min(clock + _STEP_S, max(until, began_at) if then is None else _NEVER)
        while leaving and leaving[0][0] <= clock:
            at, index = leaving.pop(0)
            at = max(at, engine.now)
            yield from _advance(living, at, raiser)
            leave(engine, index, at)
        yield from _advance(living, clock, raiser)
        if clock >= until and then is None:
            then = _standing(living, known, beginning, until)
        open_ones = {i for i in open_ones if engine.job(i).state in ("submitted", "pending")}
        if then is not None and (engine.next_event_time is None or clock > now + _LONGEST_S):
            break
    starts = {living.jobs[index][0].key: engine.job(index).start_time for index in waited_for}
    return Lived(starts, then)


_NEVER = 2**62
_LONGEST_S = 30 * 86_400
"""Runs end so long after now, whoever still waits; and who has really ended for so long is over."""


def _standing(
    living: LivingJobs, known: Iterable[KnownJob], beginning: Beginning, now: int
) -> Beginning:
    """Say how jobs stand in a run at its clock's time."""
    engine, running = living.engine, dict[Key, tuple[int, tuple[HeldNode, ...]]]()
    nodes, over = nodes_by_index(engine, living.live), set(beginning.over)
    part = set()
    for index, (job, _) in enumerate(living.jobs):
        view = engine.job(index)
        part.add(job.key)
        if (job.end_time or now) < now - _LONGEST_S or view.state in ("finished", "cancelled"):
            over.add(job.key)
        elif view.state == "running" and view.start_time is not None:
            running[job.key] = view.start_time, nodes.get(index, ())
    for job in known:
        if job.key not in part and job.end_time is not None and job.end_time <= now:
            over.add(job.key)
    return Beginning(running, frozenset(over))


def _advance(living: LivingJobs, until: int, raiser: Raiser | None) -> Generator[None, None, None]:
    """Bring the clock up to a time, with a look whenever something has happened."""
    engine = living.engine
    if raiser is None:
        engine.advance(until)
        yield
        return
    while engine.now < until:
        before = engine.now
        at = min(before + raiser.interval_s, until)
        moves = engine.advance(at)
        came = bisect_right(living.joins_at, at) > bisect_right(living.joins_at, before)
        if came or len(moves.started) or len(moves.finished):
            raiser.look(living)
            yield
