"""Of a job that a limit keeps for ever nothing is said; the others have their forecasts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_estimators import JobRequest
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_sim import Policy
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Limits, Qos
from foretime_sim.waits.forward_forecaster import ForwardForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.workloads.site_jobs import SiteJob

from tests.sim.engine.slurm.test_slurm_forward import SITE, waiting


def test_a_job_that_never_starts_has_no_forecast() -> None:
    shut = replace(SITE, qos={**SITE.qos, "high": Qos("high", limits=Limits(max_jobs=0))})
    ann = ToldJob("ann", ages_since=20)
    snapshot = waiting((ann, ann, replace(ann, said=SiteJob(qos="high"))))
    requests = [JobRequest(str(job), "ann", None, 1, 600, 0) for job in range(3)]
    moment = Moment(snapshot, Policy(backfill=Slurm(shut)), requests, np.array([1, 2]))
    answer = ForwardForecaster("forward", RuntimeHistories(), samples=20).forecast(moment)
    assert answer.answered.tolist() == [True, False]
    assert (answer.wait_s[0] > 0).all()
