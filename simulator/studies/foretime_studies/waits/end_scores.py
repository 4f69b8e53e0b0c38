"""Forecasts of when jobs will have ended, scored: the wait and the runtime, both uncertain.

What the daemon tells (`foretime_sidecar.forecasts.job_ends`) is made of the wait that was forecast
and of the runtime that was forecast at the same moment. Beside it stand what a user sees without
us, the planned start and the time limit, and ours with one of the two parts known.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array
from foretime_sidecar.forecasts.job_ends import ends
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts
from foretime_sim.waits.wait_scores import ForecastOutcomes

from foretime_studies.waits.runs import FORWARD, OURS, PLAN, WaitsRun

LIMIT_PLAN = "plan-req + time limit"
PLAIN = f"{OURS}, runtime uncalibrated"
WAIT_KNOWN, RUNTIME_KNOWN = f"{OURS}, wait known*", f"{OURS}, runtime known*"
"""Told one part of the future each."""


def end_outcomes(run: WaitsRun, chosen: BoolArray) -> Mapping[str, ForecastOutcomes]:
    """Give every method's forecasts of ends, with what came of them; in seconds from the moment.

    Parameters
    ----------
    run
        One in which runtimes were asked for.
    chosen
        Of which records.
    """
    if run.runtimes is None:
        return {}
    records, runtimes = run.records.take(chosen), run.runtimes.take(chosen)
    waited_s = np.repeat(records.waited_s[:, np.newaxis].astype(float), len(LEVELS), axis=1)
    end_s = records.waited_s + runtimes.runtime_s

    def outcomes(told_s: Float64Array) -> ForecastOutcomes:
        told = WaitForecasts(np.ceil(told_s), np.zeros(len(records)))  # as they are told
        return ForecastOutcomes(records.job, records.made_at, end_s, end_s == 0, told)

    ours_s = records.of(OURS).wait_s
    return {
        LIMIT_PLAN: outcomes(records.of(PLAN).wait_s + runtimes.limit_s[:, np.newaxis]),
        FORWARD: outcomes(ends(records.of(FORWARD).wait_s, runtimes.plain_s)),
        PLAIN: outcomes(ends(ours_s, runtimes.plain_s)),
        OURS: outcomes(ends(ours_s, runtimes.calibrated_s)),
        RUNTIME_KNOWN: outcomes(ours_s + runtimes.runtime_s[:, np.newaxis]),
        WAIT_KNOWN: outcomes(ends(waited_s, runtimes.calibrated_s)),
    }
