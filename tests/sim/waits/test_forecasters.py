"""Every forecaster of waits passes the shared checks, on several policies."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.estimated_run import estimator_of
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.best_of import BestOf, ChoiceSettings
from foretime_sim.waits.calibration.calibrated_forecaster import CalibratedForecaster
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.forward_forecaster import our_forecaster
from foretime_sim.waits.learned_forecaster import LearnedForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.plan_forecaster import PlanForecaster
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.survival_forest import ForestSettings
from foretime_sim.workloads.workload import Workload

from tests.support.forecasts.forecaster_checks import CHECKS, Check, Make, check_sees_no_future
from tests.support.forecasts.start_bound_forecaster import StartBoundForecaster

FEW_TREES = ForestSettings(trees=5, least_jobs=5)
FORECASTERS: dict[str, Make] = {
    "plan-req": lambda jobs: PlanForecaster("plan-req", estimator_of("requested", jobs)),
    "plan-sched": lambda jobs: PlanForecaster("plan-sched", estimator_of("similar", jobs)),
    "forward": lambda _: our_forecaster(samples=5),
    "perfect": lambda jobs: PlanForecaster("perfect", estimator_of("actual", jobs)),
    "qbets": lambda _: Qbets(),
    "no-later-than": lambda _: StartBoundForecaster(),
    "calibrated": lambda jobs: CalibratedForecaster(
        PlanForecaster("plan-req", estimator_of("requested", jobs)), "calibrated"
    ),
    "best": lambda jobs: BestOf(
        [
            PlanForecaster("plan-req", estimator_of("requested", jobs)),
            Qbets(),
            LearnedForecaster(settings=FEW_TREES),
        ],
        "best",
        ChoiceSettings(fewest=3),
    ),
    "learned": lambda _: LearnedForecaster(settings=FEW_TREES),
    "learned-from-plan": lambda jobs: LearnedForecaster(
        PlanForecaster("plan-req", estimator_of("requested", jobs)), FEW_TREES
    ),
}
POLICIES = {
    "fcfs-easy": Policy(),
    "wfp-conservative": Policy(Order.WFP, Backfill.CONSERVATIVE),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", FORECASTERS)
def test_every_forecaster_passes_the_shared_checks(
    check: Check, policy: str, name: str, busy: Workload
) -> None:
    check(FORECASTERS[name], busy, POLICIES[policy])


class Clairvoyant(PlanForecaster):
    """Knows every runtime, and does not say so."""

    oracle = False


class Remembering(PlanForecaster):
    """Adds the seconds since the last start that it was told of; honest."""

    last = 0

    def forecast(self, moment: Moment) -> WaitForecasts:
        told = super().forecast(moment)
        assert self.last <= moment.now
        return WaitForecasts(told.wait_s + moment.now - self.last, told.starts_now)

    def started(self, job: JobRequest, start_time: int) -> None:
        self.last = start_time

    def finished(self, job: FinishedJob) -> None:
        self.last = job.end_time


def test_the_check_finds_who_sees_the_future(busy: Workload) -> None:
    def knows(jobs: Workload) -> Clairvoyant:
        return Clairvoyant("knows", estimator_of("actual", jobs))

    def remembers(jobs: Workload) -> Remembering:
        return Remembering("remembers", estimator_of("requested", jobs))

    with pytest.raises(AssertionError, match="depends on what came later"):
        check_sees_no_future(knows, busy, Policy())
    check_sees_no_future(remembers, busy, Policy())
