"""Asking a run's policies in Python at each pass, and checking what they give back.

The native engine and the reference in plain Python both ask through `PolicyCalls`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_views import (
    FinishedView,
    JobLabels,
    JobSource,
    KnownJobs,
    MachineView,
    QueueView,
    StartedView,
)
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder, PythonPolicy, user_line
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

_NO_JOBS: Int64Array = np.array([], dtype=np.int64)


def has_python(policy: Policy) -> bool:
    """Say whether any part of a policy is written in Python."""
    return isinstance(policy.order, PythonOrder) or isinstance(policy.backfill, PythonBackfill)


_Given = TypeVar("_Given")


class _Asked:
    """One user's policy in one run: what is called, and what it has not been told yet."""

    def __init__(self, policy: PythonPolicy) -> None:
        self.policy = policy
        self.kind = f"{policy.kind} {policy}"
        self.folder = policy.folder or _folder(policy.function)
        self.call: Callable[..., Any] = policy.function
        if isinstance(policy.function, type):
            self.call = self.guarded(
                policy.function, "when the run begins", called="the class is made without arguments"
            )
        if not callable(self.call):
            raise InputError(f"{self.kind}: give the class a __call__(self, ...), to ask it")
        self.wants_started = getattr(self.call, "started", None)
        self.wants_finished = getattr(self.call, "finished", None)
        self.started = self.finished = _NO_JOBS

    def guarded(
        self, function: Callable[..., _Given], when: str, *arguments: object, called: str
    ) -> _Given:
        """Call the user's code; its own errors are the user's to mend.

        ``called`` tells what does not take the arguments how it is called.
        """
        try:
            return function(*arguments)
        except InputError:
            raise
        except Exception as error:
            line = user_line(error, self.folder, function)
            message = f"{self.kind} failed {when}: {line}: {type(error).__name__}: {error}"
            # Not one frame of the user's was reached: the call itself was refused.
            here = error.__traceback__
            if isinstance(error, TypeError) and here is not None and here.tb_next is None:
                message += f"; {called}"
            raise InputError(message) from error

    def ask(self, when: str, *arguments: object) -> object:
        """Call the policy itself."""
        kind, names = self.policy.kind, self.policy.arguments
        own = f"{'an' if kind == 'order' else 'a'} {kind} is called as {names}"
        return self.guarded(self.call, when, *arguments, called=own)

    def note(self, started: Int64Array, finished: Int64Array) -> None:
        """Keep what happened until the next time that the policy is asked."""
        if self.wants_started is not None:
            self.started = np.concatenate([self.started, started])
        if self.wants_finished is not None:
            self.finished = np.concatenate([self.finished, finished])

    def tell(self, known: KnownJobs, now: int) -> None:
        """Tell what happened, if the policy asks for it: jobs that started, jobs that ended."""
        if self.wants_started is not None and len(self.started):
            jobs, self.started = np.sort(self.started), _NO_JOBS
            view = StartedView(known, jobs)
            own = "it is called as started(jobs, now)"
            self.guarded(self.wants_started, _at(now), view, now, called=own)
        if self.wants_finished is not None and len(self.finished):
            jobs, self.finished = np.sort(self.finished), _NO_JOBS
            ended = FinishedView(known, jobs)
            own = "it is called as finished(jobs, now)"
            self.guarded(self.wants_finished, _at(now), ended, now, called=own)


class PolicyCalls:
    """What a run asks its policies in Python: one for each run, as policies may remember.

    Parameters
    ----------
    policy
        Has a `PythonOrder`, a `PythonBackfill` or both.
    machine_processors
        Size of the machine.
    users, projects
        Of the jobs, where all are known from the start.
    jobs
        How many jobs there are from the start.
    epoch_of_zero
        Added to every time that a policy is told, so that it knows the hour and the day.
    reservations
        Claims from outside.

    Raises
    ------
    InputError
        If a class can't be made, or there are reservations and backfilling in Python.
    """

    def __init__(
        self,
        policy: Policy,
        machine_processors: int,
        users: Labels | None = None,
        projects: Labels | None = None,
        jobs: int = 0,
        epoch_of_zero: int = 0,
        reservations: Sequence[AdvanceReservation] = (),
    ) -> None:
        if reservations:
            policy.check_in(Place.RESERVATIONS)
        self._order = _Asked(policy.order) if isinstance(policy.order, PythonOrder) else None
        own = policy.backfill
        self._backfill = _Asked(own) if isinstance(own, PythonBackfill) else None
        self._machine_processors = machine_processors
        self._users = JobLabels(users, jobs)
        self._projects = JobLabels(projects, jobs)
        self._epoch_of_zero = epoch_of_zero

    @classmethod
    def of_workload(
        cls, policy: Policy, workload: Workload, reservations: Sequence[AdvanceReservation] = ()
    ) -> Self:
        """Ask the policies of a run of a whole workload."""
        return cls(
            policy,
            workload.machine_processors,
            workload.users,
            workload.projects,
            len(workload),
            workload.epoch_of_zero,
            reservations,
        )

    def add_job(self, user: str | None, project: str | None) -> None:
        """Take in the next job's user and project."""
        self._users.add(user)
        self._projects.add(project)

    def scores(
        self,
        source: JobSource,
        queue: Int64Array,
        now: int,
        started: Int64Array,
        finished: Int64Array,
    ) -> Float64Array:
        """Ask for the scores of the waiting jobs.

        Parameters
        ----------
        source
            Where the jobs' columns come from.
        queue
            The waiting jobs, by submission.
        now
            The clock, seconds.
        started, finished
            Jobs that did so since the last pass that asked.

        Returns
        -------
        Shape (waiting jobs,), finite; larger first.

        Raises
        ------
        InputError
            If the user's code fails, or gives anything else.
        """
        asked, known, now = self._begin(self._order, source, started, finished, now)
        view = QueueView(known, queue, now)
        where = _with(now, queue)
        given = asked.ask(where, view, now)
        try:
            scores = np.asarray(given)
        except ValueError:  # rows of different lengths
            scores = np.asarray(None)
        if scores.shape != queue.shape or scores.dtype.kind not in "fiub":
            raise InputError(
                f"{asked.kind} gave {_shape(given, scores)} {where}:"
                f" give an array of one number for each job, {len(queue)} here"
            )
        scores = scores.astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            job = queue[wrong[0]]
            raise InputError(
                f"{asked.kind} gave job {job} the score {scores[wrong[0]]} {where}:"
                " give finite numbers"
            )
        return scores

    def backfill(
        self,
        source: JobSource,
        queue: Int64Array,
        now: int,
        started: Int64Array,
        finished: Int64Array,
        on_requested: bool,
    ) -> Int64Array:
        """Ask which jobs start now, before the head job that does not fit.

        Parameters
        ----------
        source, now, started, finished
            As for `scores`.
        queue
            The waiting jobs, in queue order.
        on_requested
            Whether everything is planned on requested times, because of the guard.

        Returns
        -------
        Jobs by index, in the order in which they start.

        Raises
        ------
        InputError
            If the user's code fails, or gives anything but places in the queue, each at most once,
            of jobs that fit into the free processors together.
        """
        asked, known, now = self._begin(self._backfill, source, started, finished, now)
        view = QueueView(known, queue, now, on_requested)
        machine = MachineView(known, self._machine_processors, on_requested)
        where = _with(now, queue)
        given: Any = asked.ask(where, view, machine, now)
        try:
            places = np.asarray(given if isinstance(given, np.ndarray) else list(given))
        except (TypeError, ValueError):  # nothing to go through, or rows of different lengths
            places = np.asarray(None)
        if places.shape == (0,):
            return _NO_JOBS
        if places.ndim != 1 or places.dtype.kind not in "iu":
            raise InputError(
                f"{asked.kind} gave {_shape(given, places)} {where}: give the places in the queue"
                " of the jobs to start, integers (np.flatnonzero of a mask), or an empty list"
            )
        outside = np.flatnonzero((places < 0) | (places >= len(queue)))
        if len(outside):
            raise InputError(
                f"{asked.kind} would start place {places[outside[0]]} of the queue {where}:"
                f" places go from 0 to {len(queue) - 1}"
            )
        chosen = queue[places]
        if len(np.unique(places)) < len(places):
            twice = next(job for i, job in enumerate(chosen) if job in chosen[:i])
            raise InputError(f"{asked.kind} would start job {twice} twice {where}")
        taken = np.cumsum(view.processors[places])
        if taken[-1] > machine.free_processors:
            first = int(np.argmax(taken > machine.free_processors))
            need = view.processors[places[first]]
            left = machine.free_processors - (taken[first] - need)
            raise InputError(
                f"{asked.kind} would start job {chosen[first]} on {need} processors {where}:"
                f" only {left} of {machine.processors} are free then"
                + (", which is why it waits at the head" if places[first] == 0 else "")
            )
        return np.ascontiguousarray(chosen)

    def _begin(
        self,
        asked: _Asked | None,
        source: JobSource,
        started: Int64Array,
        finished: Int64Array,
        now: int,
    ) -> tuple[_Asked, KnownJobs, int]:
        if asked is None:
            raise TypeError("asked for a policy that is not in Python")
        for each in (self._order, self._backfill):
            if each is not None:
                each.note(started, finished)
        now += self._epoch_of_zero
        known = KnownJobs(source, self._users, self._projects, self._epoch_of_zero)
        asked.tell(known, now)
        return asked, known, now


def _folder(function: Callable[..., Any]) -> str | None:
    code = getattr(function, "__code__", None)
    return None if code is None else str(Path(code.co_filename).parent)


def _at(now: int) -> str:
    return f"at {np.datetime64(now, 's')} ({now} s)"


def _with(now: int, queue: Int64Array) -> str:
    return f"{_at(now)} with {len(queue)} waiting"


def _shape(given: object, array: npt.NDArray[Any]) -> str:
    if not isinstance(given, np.ndarray) and (array.ndim == 0 or array.dtype.kind not in "fiub"):
        return repr(given)[:60]
    return f"shape {array.shape} of {array.dtype}"
