"""Start no later than beside forecasts' 95% quantiles, on a log: the table of docs/slack.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sidecar.wording.durations import format_duration
from foretime_sim.engine.engine import simulate
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS, WaitForecaster
from foretime_sim.waits.forward_forecaster import our_forecaster
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.scores.moments import Asking, ask_forecasters, sampled_evenly
from foretime_sim.waits.scores.wait_sources import SimulatedWaits
from foretime_sim.workloads.workload import Workload

from tests.support.forecasts.start_bound_forecaster import StartBoundForecaster
from tests.support.workloads.real_logs import KTH, read_workload

JOBS, ASKED = 10_000, 1_000
AT_95 = LEVELS.index(0.95)
SLACK = Policy(backfill=Backfill.SLACK)


def row(
    run: str, method: str, bound: np.ndarray[tuple[int], np.dtype[np.float64]], waited: Int64Array
) -> str:
    """Say how often bounds held, of all and of those that waited, and of these how tight."""
    waits = waited > 0
    held = waited <= bound
    margin = np.sort((bound - waited)[waits])
    times = [
        float(np.median(bound[waits])),
        *(margin[int(np.ceil(share * len(margin))) - 1] for share in (0.5, 0.95)),
    ]
    told = " | ".join(format_duration(round(time)) for time in times)
    return f"| {run} | {method} | {held.mean():.1%} | {held[waits].mean():.1%} | {told} |"


def rows(workload: Workload, policy: Policy, forecasters: list[WaitForecaster]) -> list[str]:
    """Ask at the submission of jobs drawn along the log; the first tenth is not scored."""
    chosen = Asking(sampled_evenly(workload, ASKED, seed=1))
    records = ask_forecasters(SimulatedWaits(workload, policy), forecasters, chosen)
    records = records.take(records.made_at >= workload.submit_time[len(workload) // 10])
    found = []
    run = str(policy.backfill)
    if policy.backfill is Backfill.SLACK:
        schedule = simulate(workload, policy)
        assert schedule.latest_start is not None
        promised = (schedule.latest_start - workload.submit_time)[records.job].astype(np.float64)
        found.append(row(run, "its own promise", promised, records.waited_s))
    for method in records.methods:
        bound = records.of(method).wait_s[:, AT_95]
        assert not np.isnan(bound).any()
        found.append(row(run, f"`{method}`", bound, records.waited_s))
    return found


def test_the_table_of_the_page_comes_out(trace: Callable[[str], Path], repository: Path) -> None:
    workload = replace(read_workload(trace(f"{KTH}.swf.gz")).head(JOBS), name=KTH)
    table = [
        *rows(workload, Policy(), [StartBoundForecaster(), our_forecaster(samples=100), Qbets()]),
        *rows(workload, SLACK, [StartBoundForecaster(), Qbets()]),
    ]
    page = (repository / "docs" / "slack.md").read_text()
    assert [line for line in table if line not in page] == [], "\n".join(table)
