"""What the daemon does for a scheduler of one kind at each look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from foretime_sim.policies.policy import Correction

from foretime_sidecar.clients.client import JobChange, QueuedJob, SchedulerConfiguration
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.ordering.ordering import QueueOrdering
from foretime_sidecar.ordering.start_now import StartNow
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.safety.refinements import Refined
from foretime_sidecar.table.table import Mode


class SchedulerStrategy(Protocol):
    """One kind of scheduler; `foretime_sidecar.schedulers.choice.strategy_of` makes it.

    A failure to ask or change the scheduler raises `SchedulerError`, one of the store `StateError`.
    """

    @property
    def correction(self) -> Correction:
        """What the scheduler does with a job that outlives the time it is planned with."""

    @property
    def users_set_time_min(self) -> bool:
        """Whether a user can ask for a shorter planned time than the limit (``--time-min``)."""

    @property
    def ordering(self) -> QueueOrdering | None:
        """What puts the queue in order; ``None`` where that can't be done."""

    @property
    def starts(self) -> StartNow | None:
        """What starts jobs now; ``None`` where nothing does."""

    def watch(self, look: Look) -> None:
        """Watch for jobs that wait too long."""

    def why_not_enforced(self) -> str:
        """Say why no job may be planned short now; "" if jobs may be."""

    def refined(
        self,
        jobs: Sequence[QueuedJob],
        estimated: Callable[[QueuedJob], int | None] | None,
        now: int,
    ) -> Refined:
        """Say what time_min of pending jobs is to be; see `Refinements.now`."""

    def mend(
        self, look: Look, exclusions: Exclusions | None, mode: Mode, pause_s: int, refined: Refined
    ) -> list[JobChange]:
        """Set time_min, and change limits that jobs would be killed at too early; give those.

        Parameters
        ----------
        look
            The queue as it is.
        exclusions
            What is left alone; ``None`` if it can't be told: then no job is planned short.
        mode
            Whether the hook may plan jobs now.
        pause_s
            Seconds until the next look.
        refined
            What time_min is to be, and has been, where it is not what the hook noted.
        """

    def arrange(
        self,
        look: Look,
        configuration: SchedulerConfiguration,
        scheduled_time: Callable[[QueuedJob], int],
        why_not: str,
    ) -> None:
        """Put the queue in order, if the settings say so, by t_sched of its jobs (seconds).

        ``why_not``: why it may not be; "" if it may.
        """

    def give_back(self, jobs: Sequence[QueuedJob] | None = None) -> None:
        """Give back what is only good while the daemon runs: the queue's order.

        ``jobs``: the queue as it is; ``None`` asks for it.
        """
