"""Forecasts of a replayed PBS: its queue run forward as its own site schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.forecasts import production_forecaster
from foretime_sidecar.forecasts.pbs_moment import under_pbs
from foretime_sidecar.queue.forecast_question import Look, QueueMoment
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.engine.forward import start_times_of
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsServer, PbsSite
from foretime_sim.waits.best_of import BestOf

from tests.support.replay_runs import CLOCK, made_workload


def site(cpus: int, **server: Any) -> PbsSite:
    """One host, whose shortest job goes first, and nobody passes it."""
    return PbsSite(
        (PbsHost("pool", {"ncpus": cpus}),),
        (PbsQueue("workq"),),
        PbsServer(backfill_depth=0, job_sort_formula="-walltime", **server),
        PbsScheduler(strict_ordering=True),
    )


def replay_of(scheduled: PbsSite, **options: Any) -> Replay:
    policy = Policy(backfill=Pbs(scheduled), correction=Correction.PBS)
    return Replay(policy, mechanism=Mechanism.PBS_SOFT_WALLTIME, **options)


def test_a_site_is_run_forward_as_it_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's own code learns that the site is right, and the settings' policy is not."""
    choices: list[BestOf] = []

    def noted(*arguments: Any) -> BestOf:
        choices.append(BestOf(*arguments))
        return choices[-1]

    monkeypatch.setattr(production_forecaster, "BestOf", noted)
    workload = made_workload(150, days=4)
    replay = replay_of(
        site(workload.machine_processors), state_dir=tmp_path, forecast_interval_s=7200
    )
    statistics = replay(workload, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.forecasts is not None
    assert statistics.forecasts.scored > 50
    learned = choices[-1].state()
    judged, beyond = (
        dict(zip(learned["forecasters"], learned[name], strict=True))
        for name in ("judged", "beyond")
    )
    assert min(judged["site"], judged["forward"]) > 10
    assert choices[-1].ranked[0].name == "site"
    assert beyond["forward"] / judged["forward"] > 0.03


def test_forecasts_of_a_site_change_nothing_that_is_scheduled() -> None:
    workload = made_workload(100, days=4)
    waits = []
    for interval_s in (None, 14_400):
        replay = replay_of(site(workload.machine_processors), forecast_interval_s=interval_s)
        statistics = replay(workload, 0).statistics
        assert isinstance(statistics, AdjustedStatistics)
        waits.append(statistics.wait)
    np.testing.assert_array_equal(waits[0], waits[1])


def test_looks_at_a_site_give_the_starts_that_come() -> None:
    """With runtimes known, and nobody to come, its forward runs are what the mock does next."""
    workload = made_workload(60, days=1)
    submitted = np.sort(workload.submit_time // 50)
    limits = PbsLimits(max_run={"u:PBS_GENERIC": 2})
    scheduled = site(workload.machine_processors, limits=limits)
    policy = Policy(backfill=Pbs(scheduled), correction=Correction.PBS)
    setup = PbsSetup(workload.machine_processors, machine=scheduled.machine)
    pbs = MockPbs(setup, policy, None, CLOCK)
    for job, submit_time in enumerate((submitted + CLOCK).tolist()):
        if submit_time > pbs.now:
            pbs.advance(submit_time)
        pbs.submit(
            PbsSubmission(
                f"user{job % 5}",
                None,
                None,
                int(workload.processors[job]),
                int(workload.requested_time[job]),
                int(workload.actual_runtime[job]),
            )
        )
    pbs.advance(pbs.now + 1)
    client = PbsCommands(pbs.run)
    look = Look(pbs.now, client.queue(), soft_limit=True, correction=Correction.PBS)
    moment = QueueMoment.of(look, ForecastSettings())
    by_site, _ = under_pbs(moment.everybody(), scheduled)
    jobs = [int(request.job_id.partition(".")[0]) - 1 for request in moment.requests]
    runtimes = workload.actual_runtime[jobs][None, :]
    assert len(by_site.asked) > 20
    starts = start_times_of(by_site.asked, by_site.snapshot, by_site.policy, runtimes)[0]
    pbs.finish()
    came = pbs.schedule().start_time[[jobs[column] for column in by_site.asked.tolist()]]
    assert starts.tolist() == came.tolist()


def test_a_site_of_several_hosts_is_refused_with_forecasts() -> None:
    hosts = tuple(PbsHost(f"n{number}", {"ncpus": 8}) for number in range(2))
    workload = replace(made_workload(10, days=1), machine_processors=16)
    with pytest.raises(InputError, match="give a site of one host"):
        replay_of(PbsSite(hosts, (PbsQueue("workq"),)), forecast_interval_s=3600)(workload, 0)
