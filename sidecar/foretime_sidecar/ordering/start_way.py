"""How a kind of scheduler has jobs raised: when that is safe, and who should start now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from foretime_estimators.estimators.estimator import RolePrediction

from foretime_sidecar.clients.client import QueuedJob, QueueState, SchedulerConfiguration
from foretime_sidecar.ordering.own_site_factors import why_no_site_factors
from foretime_sidecar.ordering.raising import SeenFactors
from foretime_sidecar.ordering.start_plan import StartMoments, StartPlan, plan_starts
from foretime_sidecar.queue.forecast_question import Look

ExpectedOf = Callable[[QueuedJob], RolePrediction | None]


class StartWay(Protocol):
    """A kind of scheduler, as `foretime_sidecar.ordering.start_now.StartNow` needs it.

    Attributes
    ----------
    owns_all
        Whether every factor of a pending job is Foretime's, as nobody else has a use for one.
    """

    owns_all: bool

    def why_not(self, look: Look, configuration: SchedulerConfiguration) -> str:
        """Say why no job can be started safely; "" if one can."""

    def plan(
        self,
        look: Look,
        expected: ExpectedOf,
        seen: SeenFactors,
        lateness: Callable[[str], float],
        late_by: Callable[[QueuedJob], float | None],
    ) -> tuple[StartPlan, dict[str, int]]:
        """Say who should start now, and the factors that jobs are to have for that.

        Parameters as of `plan_starts`; ``seen``: the factors that jobs have.
        """


class SlurmStarts:
    """Slurm: by site factors, in front of the first job of each slurm_partition."""

    owns_all = False

    def __init__(self) -> None:
        self._moments = StartMoments()

    def why_not(self, look: Look, configuration: SchedulerConfiguration) -> str:
        """Say why no job can be started safely; "" if one can."""
        if why_not := why_none_raised(configuration):
            return why_not
        if look.cluster is None:
            return f"which nodes there are is not known: {look.nodes_unread}"
        return ""

    def plan(
        self,
        look: Look,
        expected: ExpectedOf,
        seen: SeenFactors,
        lateness: Callable[[str], float],
        late_by: Callable[[QueuedJob], float | None],
    ) -> tuple[StartPlan, dict[str, int]]:
        """Say who should start now, and what raises them."""
        plan = plan_starts(look, expected, seen.own_priority, lateness, late_by, self._moments)
        waiting = [job for job in look.queue.jobs if job.state is QueueState.PENDING]
        return plan, seen.above_all(plan.starts, waiting)


def why_none_raised(configuration: SchedulerConfiguration) -> str:
    """Say why Slurm's configuration lets no job be raised safely; "" if it does."""
    if why_not := why_no_site_factors(configuration):
        return why_not
    if configuration.preempt_type not in ("", "preempt/none"):
        return f"PreemptType is {configuration.preempt_type}: a job that is raised may end others"
    return ""
