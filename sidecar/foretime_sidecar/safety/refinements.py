"""What time_min of pending jobs is refined to, as the scheme ``learned`` learns on.

Only jobs that the hook has planned and noted are refined, and each change goes through the whole
filter of `foretime_sidecar.learning.exclusions` again (`limit_repairs.time_min_changes`). What is
set is written down before it is sent, so that whenever the sidecar dies, its next start and the
watchdog know which time_min are Foretime's own.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.slurm.job_note import read_note
from foretime_sidecar.settings.learned_settings import LearnedSettings
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.refined_times import RefinedTimes, refined_times_in
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

_LEAST_STEP_S = 60  # Slurm's minute
_MOST_ASKED = 2000
"""At one look the estimator is asked about so many jobs at most; the others' turn comes."""


@dataclass(frozen=True, slots=True)
class Refined:
    """What is refined, by job id.

    Attributes
    ----------
    due
        What time_min is to be, seconds; a job that is not named goes by its note.
    ours
        What it has been at some time, besides the note's.
    """

    due: Mapping[str, int] = field(default_factory=dict)
    ours: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def ours_of(self, job: QueuedJob) -> frozenset[int]:
        """Give what has been set of a job, also while it was one of an array's pending tasks."""
        request = job.request
        return self.ours.get(request.job_id, _NONE) | self.ours.get(request.array_id or "", _NONE)


_NONE: frozenset[int] = frozenset()
NOTHING_REFINED = Refined()


class Refinements:
    """Decides what to refine, and remembers what was; used from the thread that polls.

    Parameters
    ----------
    settings
        How far off, how often and how many.
    raises_own
        Whether a user's own ``--time-min`` is a floor (``hook.user_time_min = "raise"``).
    store, lock
        The sidecar's.
    """

    def __init__(
        self, settings: LearnedSettings, *, raises_own: bool, store: Store, lock: threading.RLock
    ) -> None:
        self._settings = settings
        self._raises_own = raises_own
        self._rows = RefinedTimes(store)
        self._lock = lock
        # By job: what was set, the latest last, and when that was.
        self._set: dict[str, list[int]] | None = None
        self._set_at: dict[str, int] = {}
        self._asked_at: dict[str, int] = {}

    def now(
        self,
        jobs: Sequence[QueuedJob],
        estimated: Callable[[QueuedJob], int | None] | None,
        now: int,
    ) -> Refined:
        """Say what time_min of pending jobs is to be.

        Parameters
        ----------
        jobs
            The queue as it is.
        estimated
            Gives what a job is to be planned with, seconds, ``None`` if it is to stay as it is;
            ``None`` if nothing is refined now: then all go by their notes.
        now
            Epoch seconds.

        Raises
        ------
        StateError
            If it can't be told which time_min are ours, as the store can't be read.
        """
        known = self._known()
        self._forget_gone(jobs, known)
        if estimated is None:
            return Refined(ours=_sets(known))
        pending = {job.request.job_id: job for job in jobs if _is_noted(job)}
        due = {job_id: known[job_id][-1] for job_id in known.keys() & pending.keys()}
        chosen = self._chosen(pending, due, estimated, now)
        if chosen and self._write_down(chosen, now):
            due |= chosen
        return Refined(due, _sets(known))

    def _chosen(
        self,
        pending: Mapping[str, QueuedJob],
        due: Mapping[str, int],
        estimated: Callable[[QueuedJob], int | None],
        now: int,
    ) -> dict[str, int]:
        """Give the jobs that are furthest off, and what they should have, seconds."""
        interval_s = self._settings.refine_interval_s
        self._asked_at = {key: at for key, at in self._asked_at.items() if key in pending}
        turn = sorted(
            (self._asked_at.get(job_id, -1), job_id)
            for job_id in pending
            if not 0 <= now - self._asked_at.get(job_id, -interval_s) < interval_s
        )
        far: list[tuple[float, str, int]] = []
        for _, job_id in turn[:_MOST_ASKED]:
            self._asked_at[job_id] = now
            job = pending[job_id]
            note = read_note(job.admin_comment)
            wanted = estimated(job)
            if (
                note is None
                or wanted is None
                or now - self._set_at.get(job_id, -interval_s) < interval_s
            ):
                continue
            if note.own_time_min is not None and self._raises_own:
                wanted = max(wanted, note.own_time_min)
            current = due.get(job_id, note.time_min or 0)
            off_s = abs(wanted - current)
            if off_s >= max(_LEAST_STEP_S, self._settings.refine_tolerance * current):
                far.append((-off_s / max(current, 1), job_id, wanted))
        far.sort()
        for _, job_id, _ in far[self._settings.most_refined :]:
            del self._asked_at[job_id]  # its turn is the next look
        return {job_id: wanted for _, job_id, wanted in far[: self._settings.most_refined]}

    def _known(self) -> dict[str, list[int]]:
        """Give what is set, by job, the latest last."""
        if self._set is None:
            found: dict[str, list[int]] = defaultdict(list)
            with self._lock:
                rows = self._rows.all()
            for job_id, time_min_s, set_at in rows:
                found[job_id].append(time_min_s)
                self._set_at[job_id] = set_at
            self._set = dict(found)
        return self._set

    def _write_down(self, chosen: Mapping[str, int], now: int) -> bool:
        """Write down what is about to be set; if that can't be, nothing may be set."""
        try:
            with self._lock:
                self._rows.set(chosen, now)
        except StateError as error:
            logger.warning("time_min of pending jobs is not refined: %s", error)
            return False
        known = self._known()
        for job_id, time_min_s in chosen.items():
            values = known.setdefault(job_id, [])
            if time_min_s in values:
                values.remove(time_min_s)
            values.append(time_min_s)
            self._set_at[job_id] = now
        return True

    def _forget_gone(self, jobs: Sequence[QueuedJob], known: dict[str, list[int]]) -> None:
        present = {job.request.job_id for job in jobs} | {job.request.array_id for job in jobs}
        gone = known.keys() - present
        if not gone:
            return
        try:
            with self._lock:
                self._rows.forget(gone)
        except StateError as error:
            logger.warning("%s", error)
            return  # the next look tries it again
        for job_id in gone:
            del known[job_id]
            self._set_at.pop(job_id, None)


def refinements_of(settings: Settings, store: Store, lock: threading.RLock) -> Refinements | None:
    """Give what refines as the settings say; ``None`` if the hook sets no time_min."""
    if settings.hook.mechanism != "slurm-soft-limit":
        return None
    raises_own = settings.hook.user_time_min == "raise"
    return Refinements(settings.learned, raises_own=raises_own, store=store, lock=lock)


def _is_noted(job: QueuedJob) -> bool:
    """Whether the hook has noted that time_min of this pending job may be refined."""
    if job.state is not QueueState.PENDING:
        return False
    note = read_note(job.admin_comment)
    return (
        note is not None
        and note.learned
        and note.time_min is not None
        and note.time_min <= job.request.requested_time
    )


def _sets(known: Mapping[str, Sequence[int]]) -> dict[str, frozenset[int]]:
    return {job_id: frozenset(values) for job_id, values in known.items()}


def refined_in(store: Path) -> Refined:
    """Give what a store tells that was refined, without its daemon; nothing if it can't be read."""
    known: dict[str, list[int]] = defaultdict(list)
    try:
        for job_id, time_min_s, _ in refined_times_in(store):
            known[job_id].append(time_min_s)
    except StateError:
        return NOTHING_REFINED
    return Refined(ours=_sets(known))
