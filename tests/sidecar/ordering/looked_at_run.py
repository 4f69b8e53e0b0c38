"""A run of a log at whose queue somebody looks after something has happened, as a daemon does."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sim.engine.job_view import Moves
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.workload import Workload


class LookedAtRun(ABC):
    """One run.

    Parameters
    ----------
    workload
        On one pool.
    policy
        How the scheduler schedules.
    machine
        The pool.
    look_s
        Between two looks; ``None``: nobody looks.

    Attributes
    ----------
    start
        When each job started; -1: not yet.
    waiting, running
        Jobs in the order in which they came, and started.
    """

    def __init__(
        self, workload: Workload, policy: Policy, machine: Machine, look_s: int | None
    ) -> None:
        self.workload, self.look_s = workload, look_s
        self.begin = self.now = int(workload.submit_time[0])
        self.engine = Engine(
            workload.machine_processors, policy, self.begin, machine=machine,
            epoch_of_zero=workload.epoch_of_zero,
        )  # fmt: skip
        self.runtimes: list[int] = workload.actual_runtime.tolist()
        self.asked = workload.requested_time.astype(np.int64)
        self.processors = workload.processors.astype(np.int64)
        self.start = np.full(len(workload), -1, np.int64)
        self.waiting: dict[int, None] = {}
        self.running: dict[int, None] = {}
        self.due: int | None = None

    def run(self) -> Int64Array:
        """Give when each job starts."""
        for job, now in enumerate(self.workload.submit_time.tolist()):
            self._live_until(now)
            self._submit(job)
            self.waiting[job] = None
            self._happened()
        while self.waiting and (event := self.engine.next_event_time) is not None:
            self._live_until(event + 1)
        self._take(self.engine.finish())
        return self.start

    @abstractmethod
    def _submit(self, job: int) -> None:
        """Submit the job at this place of the workload now."""

    @abstractmethod
    def _look(self) -> None:
        """Look at the queue, and change what is to be changed."""

    def _learn(self, job: int) -> None:
        """Learn of a job that has ended; nothing is learned here."""
        del job

    def _happened(self) -> None:
        if self.due is None and self.look_s is not None:
            self.due = self.now + (self.begin - self.now) % self.look_s

    def _live_until(self, until: int) -> None:
        while True:
            moment = self.engine.next_event_time if self.due is None else self.due
            if moment is None or moment >= until:
                break
            self._advance(moment)
            if self.due is not None and self.due <= self.now:
                self.due = None
                self._look()
            self._take(self.engine.settle())
        self._advance(until)

    def _advance(self, until: int) -> None:
        if until > self.now:
            moves = self.engine.advance(until)
            self.now = until
            self._take(moves)

    def _take(self, moves: Moves) -> None:
        for job in moves.started.tolist():
            self.start[job] = self.engine.started_at(job)
            del self.waiting[job]
            self.running[job] = None
        for job in moves.finished.tolist():
            del self.running[job]
            self._learn(job)
        if len(moves.started) or len(moves.finished):
            self._happened()
