"""The site's scheduler without Foretime, run on with the clock.

Where it turns out that jobs are otherwise than was thought, the run goes back to before that
matters. So at any time it stands where a run from its beginning would with what is known then.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from foretime_sim.engine.begun_engine import begun_engine
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.slurm import Slurm

from foretime_sidecar.forecasts.slurm_moment import known_to
from foretime_sidecar.plain_beside.beginnings import Beginning, RealMoment
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.living_jobs import begin, leave, submission_order
from foretime_sidecar.queue.live_machine import LiveMachine
from foretime_sidecar.queue.prepared_jobs import PreparedJobs
from foretime_sidecar.queue.queue_events import Key
from foretime_sidecar.queue.queue_snapshot import told_of

_KEPT_EVERY_S = 3 * 3600
"""How the run stands is kept so often, to go back to. To keep it takes longer than to run on."""
_FORGOTTEN_AFTER_S = 2 * 86_400
"""It is kept for so long. A run that goes back further begins anew."""
_AHEAD_S = 6 * 3600
_LONGEST_AHEAD_S = 30 * 86_400


class _Facts(NamedTuple):
    """What is known of a job: when it joins the queue, how long it runs, when it is withdrawn.

    Epoch seconds, and seconds; infinite for never.
    """

    could_start: float
    runtime: int
    leaves_at: float

    @classmethod
    def of(cls, job: KnownJob, now: int) -> _Facts:
        """Give what is known at a time."""
        withdrawn = job.end_time if job.start_time is None else None
        return cls(
            math.inf if job.could_start is None else job.could_start,
            job.runtime_at(now),
            math.inf if withdrawn is None else withdrawn,
        )


@dataclass(slots=True)
class _Part:
    """A job of the run.

    Attributes
    ----------
    facts
        As the engine has been told.
    index
        In the engine, unless it was over before that began; ``None`` of a job that takes no part.
    start, over_at
        When it started, and ended or left, in the run, epoch seconds; ``None``: not yet.
    """

    facts: _Facts
    index: int | None = None
    start: int | None = None
    over_at: int | None = None

    def changes_from(self, facts: _Facts) -> float:
        """Say from when on the run is another one, if this is what is known of the job."""
        old, at = self.facts, math.inf
        if facts == old:
            return at
        if facts.could_start != old.could_start:
            at = min(facts.could_start, old.could_start)
        if facts.leaves_at != old.leaves_at:
            at = min(at, facts.leaves_at, old.leaves_at)
        if facts.runtime != old.runtime and self.start is not None:
            at = min(at, self.start + min(facts.runtime, old.runtime))
        return math.inf if self.over_at is not None and at > self.over_at else at


class _Kept(NamedTuple):
    """How the run stood at a time: a snapshot, and whose its columns are."""

    at: int
    snapshot: Snapshot
    keys: tuple[Key, ...]


class PlainRun:
    """A run from a moment on.

    Parameters
    ----------
    moment
        Where it begins, with its nodes and site.
    beginning
        Who runs there, and who has ended.
    """

    def __init__(self, moment: RealMoment, beginning: Beginning) -> None:
        self._moment, self._beginning = moment, beginning
        self._engine: Engine | None = None
        self._live: LiveMachine | None = None
        self._prepared = PreparedJobs()
        self._parts: dict[Key, _Part] = {}
        self._keys: list[Key] = []  # by index
        self._kept: list[_Kept] = []

    def go_on(self, known: Iterable[KnownJob], now: int) -> Generator[None, None, None]:
        """Run on until ``now``, epoch seconds, with what is known of the jobs; pause now and then.

        Raises
        ------
        InputError
            If the site or the queue can't be simulated.
        """
        jobs = {job.key: job for job in known if job.key not in self._beginning.over}
        facts = {key: _Facts.of(job, now) for key, job in jobs.items()}
        engine = self._engine
        if engine is not None:
            engine = self._before_what_changes(engine, jobs, facts)
        self._engine = engine = engine or self._begin(jobs, facts, now)
        self._tell(engine, jobs, facts)
        leaving = sorted(
            (int(part.facts.leaves_at), key)
            for key, part in self._parts.items()
            if part.facts.leaves_at <= now and part.over_at is None and part.index is not None
        )
        for at, key in leaving:
            yield from self._advance(engine, at)
            part = self._parts[key]
            if part.over_at is None and part.index is not None:
                leave(engine, part.index, engine.now)
                if part.start is None:
                    part.over_at = engine.now
        yield from self._advance(engine, now)

    def starts(self) -> dict[Key, int | None]:
        """Give the start of each job that has joined the queue, epoch seconds.

        ``None``: it has not started.
        """
        now = self._moment.began_at if self._engine is None else self._engine.now
        return {
            key: part.start
            for key, part in self._parts.items()
            if part.facts.could_start <= now
            and (part.index is not None or part.over_at is not None)
            and key not in self._beginning.running
        }

    def starts_ahead(self) -> Generator[None, None, Mapping[Key, int | None]]:
        """Run on beside, until all who wait have started; give what `starts` would then."""
        starts = self.starts()
        waiting = {
            key
            for key, start in starts.items()
            if start is None and self._parts[key].over_at is None
        }
        if self._engine is None or not waiting:
            return starts
        engine, keys = self._again(self._engine, self._as_it_stands(self._engine))
        open_ones = {key: index for index, key in enumerate(keys) if key in waiting}
        end = engine.now + _LONGEST_AHEAD_S
        while open_ones and engine.now < end and engine.next_event_time is not None:
            engine.advance(engine.now + _AHEAD_S)
            started = {
                key: start
                for key, index in open_ones.items()
                if (start := engine.job(index).start_time) is not None
            }
            starts |= started
            open_ones = {key: index for key, index in open_ones.items() if key not in started}
            yield
        return starts

    def _begin(self, jobs: Mapping[Key, KnownJob], facts: Mapping[Key, _Facts], now: int) -> Engine:
        living = begin(jobs.values(), self._moment, self._beginning, now)
        self._live, self._prepared, self._kept = living.live, PreparedJobs(), []
        self._keys = [job.key for job, _ in living.jobs]
        self._parts = {key: _Part(facts[key]) for key in jobs}
        for index, key in enumerate(self._keys):
            self._parts[key].index = index
            if (runs := self._beginning.running.get(key)) is not None:
                self._parts[key].start = runs[0]
        return living.engine

    def _before_what_changes(
        self, engine: Engine, jobs: Mapping[Key, KnownJob], facts: Mapping[Key, _Facts]
    ) -> Engine | None:
        """Give the engine before what is known now makes a difference; ``None``: begin anew."""
        if not self._parts.keys() <= jobs.keys() or not self._tells_nodes_apart(jobs):
            return None
        before = math.inf
        for key, told in facts.items():
            part = self._parts.get(key)
            if part is not None:
                before = min(before, part.changes_from(told))
            else:  # at the clock's time it may join yet
                before = min(before, told.could_start + 1)
        if before > engine.now:
            return engine
        while self._kept and self._kept[-1].at >= before:
            self._kept.pop()
        return self._go_back(engine, self._kept[-1], facts) if self._kept else None

    def _tells_nodes_apart(self, jobs: Mapping[Key, KnownJob]) -> bool:
        """Whether new jobs name no other groups of nodes than the machine was made for."""
        groups = {} if self._live is None else self._live.groups_of
        asked = (job.job.asked for key, job in jobs.items() if key not in self._parts)
        return all(
            not names or names in groups
            for each in asked
            if each is not None
            for names in (each.required, each.excluded)
        )

    def _go_back(self, engine: Engine, kept: _Kept, facts: Mapping[Key, _Facts]) -> Engine:
        for key in kept.keys:
            part = self._parts[key]
            part.facts = part.facts._replace(runtime=facts[key].runtime)
        engine, self._keys = self._again(engine, kept)
        parts = {
            key: part
            for key, part in self._parts.items()
            if part.over_at is not None and part.over_at <= kept.at
        }
        for part in parts.values():
            part.index = None
        for index, key in enumerate(self._keys):
            part = parts[key] = self._parts[key]
            part.index, part.over_at = index, None
            if part.start is not None and part.start > kept.at:
                part.start = None
            self._allow(engine, part)
        self._parts = parts  # who came later is told of anew
        return engine

    def _again(self, engine: Engine, kept: _Kept) -> tuple[Engine, list[Key]]:
        """Give an engine as this one stood, with runtimes as known now, and whose jobs it has."""
        runtimes = np.array([self._parts[key].facts.runtime for key in kept.keys], dtype=np.int64)
        again, index = begun_engine(kept.snapshot, engine.policy, runtimes)
        return again, [kept.keys[column] for column in np.argsort(index).tolist()]

    def _tell(
        self, engine: Engine, jobs: Mapping[Key, KnownJob], facts: Mapping[Key, _Facts]
    ) -> None:
        """Tell the engine what is new of its jobs, and of new ones."""
        joining = []
        for key, told in facts.items():
            part = self._parts.get(key)
            if part is None:
                self._parts[key] = part = _Part(told)
                joining.append((told.could_start, submission_order(key), key))
            before, part.facts = part.facts, told
            if part.over_at is not None or before == told:
                continue
            if part.start is None and before.could_start != told.could_start:
                if part.index is not None:
                    engine.cancel(part.index)
                    part.index = None
                joining.append((told.could_start, submission_order(key), key))
            elif part.index is not None and before.runtime != told.runtime:
                engine.update(part.index, actual_runtime=told.runtime)
                self._allow(engine, part)
        for could_start, _, key in sorted(joining):
            if could_start < math.inf:
                self._join(engine, jobs[key], self._parts[key])

    def _allow(self, engine: Engine, part: _Part) -> None:
        """Let a job run as long as it has, as the real scheduler may be slow to end it."""
        if part.index is not None and part.facts.runtime > engine.job(part.index).time_limit:
            engine.update(part.index, time_limit=part.facts.runtime)

    def _join(self, engine: Engine, job: KnownJob, part: _Part) -> None:
        """Let a job join the queue, if it could ever run."""
        could_start = int(part.facts.could_start)
        record, live, slurm = job.waiting_from(could_start), self._live, engine.policy.backfill
        if live is None or not isinstance(slurm, Slurm):
            raise TypeError("a run that has begun has nodes, and is a site's Slurm")
        [prepared] = self._prepared.of([record], live, knows_limits=True)
        if prepared.left_out is not None:
            return
        told, asked = known_to(slurm.site, told_of(record)), prepared.submitted
        part.index = engine.submit(
            could_start,
            asked.processors,
            part.facts.runtime,
            asked.requested_time,
            time_limit=max(asked.requested_time, part.facts.runtime),
            resources=live.resources(record),
            user=told.user,
            project=told.account,
            said=told.said,
        )
        self._keys.append(job.key)

    def _advance(self, engine: Engine, until: int) -> Generator[None, None, None]:
        while engine.now < until:
            next_kept = (engine.now // _KEPT_EVERY_S + 1) * _KEPT_EVERY_S
            moves = engine.advance(min(next_kept, until))
            for index in moves.started.tolist():
                self._parts[self._keys[index]].start = engine.started_at(index)
            for index in moves.finished.tolist():
                _, self._parts[self._keys[index]].over_at = engine.ran(index)
            if engine.now == next_kept:
                first = engine.now - _FORGOTTEN_AFTER_S
                self._kept = [each for each in self._kept if each.at > first]
                self._kept.append(self._as_it_stands(engine))
            yield

    def _as_it_stands(self, engine: Engine) -> _Kept:
        snapshot = Snapshot.of(engine)
        index = snapshot.engine_index
        if index is None:
            raise TypeError("a snapshot of an engine has indices")
        return _Kept(engine.now, snapshot, tuple(self._keys[each] for each in index.tolist()))
