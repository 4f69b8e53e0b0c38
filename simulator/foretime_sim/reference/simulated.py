"""A job in the reference, and what planners see of the simulation that they plan for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from foretime_sim.engine.schedule import StartedBy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy


@dataclass(slots=True)
class ReferenceJob:
    """A job, and what has become of it."""

    index: int
    submit: int
    processors: int
    actual_runtime: int
    requested: int
    queue_time: int
    backfill_time: int
    drain_time: int
    time_limit: int
    priority: int
    start: int = 0
    end: int = 0
    expected_end: int = 0
    expects_no_end: bool = False  # past its requested time: no estimate is left
    corrections: int = 0
    started_by: StartedBy | None = None
    planned_start: int | None = None
    blocked_since: int | None = None  # when it was first seen blocked at the head of the queue
    guarded: bool = False
    extended_s: int = 0
    rank: int = 0  # once it has arrived: its place in the order of arrival

    @property
    def hard_end(self) -> int:
        """When it has run for the requested time, and what was added to it since."""
        return self.start + self.requested + self.extended_s


class Simulated(Protocol):
    """A simulation as those see it who plan for it (`foretime_sim.reference.flat.Simulation`)."""

    policy: Policy
    machine_processors: int
    free: int
    to_submit: list[ReferenceJob]
    pending: list[ReferenceJob]
    running: list[ReferenceJob]
    now: int

    def any_fits(self, jobs: list[ReferenceJob]) -> bool:
        """Say whether there are processors now for any of these."""

    def in_order(self, jobs: list[ReferenceJob], order: Order | None = None) -> list[ReferenceJob]:
        """Put waiting jobs into queue order: the policy's, unless another is given."""

    def start(self, job: ReferenceJob, started_by: StartedBy) -> None:
        """Start a job now."""

    def kill(self, job: ReferenceJob) -> None:
        """End a running job now."""

    def next_time(self) -> int | None:
        """Give when something happens next; ``None`` once every job has ended."""

    def step(self, time: int) -> None:
        """Do what happens next, at this time."""
