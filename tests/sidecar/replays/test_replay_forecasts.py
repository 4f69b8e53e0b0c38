"""Forecasts served in a replay, at virtual times, and scored when the jobs start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.forecasts import production_forecaster
from foretime_sidecar.forecasts.slurm_moment import under_slurm
from foretime_sidecar.queue.forecast_question import Look, QueueMoment
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sidecar.store.store import Store
from foretime_sim.engine.forward import start_times_of
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.python_policy import PythonOrder
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.best_of import BestOf
from foretime_sim.waits.forecaster import LEVELS
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.workload import Workload

from tests.support.replay_runs import CLOCK, made_workload
from tests.support.workloads.real_logs import KTH, read_workload


def replayed(folder: Path, jobs: int, **options: object) -> AdjustedStatistics:
    workload = made_workload(jobs, days=5)
    replay = Replay(Policy(), state_dir=folder, **options)  # type: ignore[arg-type]
    statistics = replay(workload, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    return statistics


def test_what_came_of_each_forecast_is_what_the_schedule_says(tmp_path: Path) -> None:
    statistics = replayed(tmp_path, 150, forecast_interval_s=1800)
    done = statistics.forecasts
    assert done is not None
    store = Store(tmp_path / "repeat-0" / "foretime.sqlite")
    rows = store.rows(
        "SELECT job_id, made_at, waited_s, outcome FROM served_forecasts WHERE job_id IS NOT NULL"
    )
    store.close()
    assert done.scored == len(rows) > 100
    starts = CLOCK + made_workload(150, days=5).submit_time + statistics.wait
    for job_id, made_at, waited_s, outcome in rows:
        assert outcome == "started"
        assert made_at + waited_s == starts[int(job_id.rpartition("_")[2]) - 1]


@pytest.mark.traces
@pytest.mark.slow
def test_forecasts_of_a_log_slice_hold_about_as_often_as_they_say(
    tmp_path: Path, trace: Callable[[str], Path]
) -> None:
    log = read_workload(trace(f"{KTH}.swf.gz"))
    # The second month, busy, and what was known when it began.
    workload, history = log.take(np.arange(4_000, 4_700)), log.take(np.arange(4_000))
    replay = Replay(Policy(), state_dir=tmp_path, history=history, forecast_interval_s=3600)
    statistics = replay(workload, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    done = statistics.forecasts
    assert done is not None
    assert done.scored > 300
    shares = dict(zip(LEVELS, done.share_within, strict=True))
    # Ten days have few queues that are independent of each other: nothing may be grossly off.
    for level, slack in ((0.5, 0.25), (0.75, 0.2), (0.9, 0.15), (0.95, 0.1)):
        share = shares[level]
        assert share is not None
        assert share == pytest.approx(level, abs=slack)


def test_forecasts_change_nothing_that_is_scheduled(tmp_path: Path) -> None:
    plain = replayed(tmp_path / "plain", 250)
    served = replayed(tmp_path / "served", 250, forecast_interval_s=3600)
    assert plain.forecasts is None
    np.testing.assert_array_equal(plain.wait, served.wait)
    assert plain.hook is not None
    assert served.hook is not None
    assert plain.hook.adjusted == served.hook.adjusted


def test_a_policy_in_python_can_not_be_run_forward(tmp_path: Path) -> None:
    order = PythonOrder(lambda queue, now: -queue.submit_time, "mine")
    replay = Replay(replace(Policy(), order=order), state_dir=tmp_path, forecast_interval_s=900)
    with pytest.raises(InputError, match="no policy in Python"):
        replay(made_workload(5, days=1), 0)


@pytest.mark.parametrize("backfill", [Backfill.SLACK, Backfill.EASY_WSPT])
def test_what_forecasts_can_not_run_forward_is_refused(
    tmp_path: Path, backfill: Backfilling
) -> None:
    replay = Replay(Policy(backfill=backfill), state_dir=tmp_path, forecast_interval_s=900)
    with pytest.raises(InputError, match=f"backfilling is {backfill}: forecasts can't run"):
        replay(made_workload(5, days=1), 0)


NODES = Machine(
    (NodeGroup("a", 4, 4), NodeGroup("b", 4, 4)),
    (SlurmPartition("main", ("a", "b"), default=True), SlurmPartition("short", ("b",), 10)),
)
# It looks at the first job of the queue only, every five minutes.
SITE = SlurmSite(NODES, parameters=SlurmParameters(bf_max_job_test=1, bf_interval=300))


def of_two_partitions(jobs: int) -> Workload:
    workload = replace(made_workload(jobs, days=4), machine=NODES)
    short = (workload.processors <= 8) & (np.arange(jobs) % 3 == 0)
    labels = Labels(short.astype(np.int32), ("main", "short"))
    return replace(workload, requests=ResourceRequests(slurm_partitions=labels))


def test_a_site_is_run_forward_as_it_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's own code learns that the site is right, and the settings' policy is not."""
    choices: list[BestOf] = []

    def noted(*arguments: Any) -> BestOf:
        choices.append(BestOf(*arguments))
        return choices[-1]

    monkeypatch.setattr(production_forecaster, "BestOf", noted)
    workload = of_two_partitions(120)
    replay = Replay(Policy(backfill=Slurm(SITE)), state_dir=tmp_path, forecast_interval_s=7200)
    statistics = replay(workload, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.forecasts is not None
    assert statistics.forecasts.scored > 50
    learned = choices[-1].state()
    sums = np.sum(list(learned["all_losses"].values()), axis=0)
    beyond, judged = (dict(zip(learned["forecasters"], row, strict=True)) for row in sums.tolist())
    assert min(judged["site"], judged["forward"]) > 10
    # Losses are told beyond those of the first, which is the site.
    assert choices[-1].ranked()[0].name == "site"
    assert beyond["site"] == 0
    assert beyond["forward"] / judged["forward"] > 0.03
    store = Store(tmp_path / "repeat-0" / "foretime.sqlite")
    starts = CLOCK + workload.submit_time + statistics.wait
    rows = store.rows(
        "SELECT job_id, made_at + waited_s FROM served_forecasts WHERE outcome = 'started'"
    )
    store.close()
    for job_id, start in rows:
        assert start == starts[int(job_id.rpartition("_")[2]) - 1]


def test_forecasts_of_a_site_change_nothing_that_is_scheduled() -> None:
    workload, policy = of_two_partitions(100), Policy(backfill=Slurm(SITE))
    waits = []
    for interval_s in (None, 14_400):
        statistics = Replay(policy, forecast_interval_s=interval_s)(workload, 0).statistics
        assert isinstance(statistics, AdjustedStatistics)
        waits.append(statistics.wait)
    np.testing.assert_array_equal(waits[0], waits[1])


def test_looks_at_a_site_give_the_starts_that_come() -> None:
    """With runtimes known, and nobody to come, its forward runs are what the mock does next."""
    workload = of_two_partitions(60)
    workload = replace(workload, submit_time=np.sort(workload.submit_time // 50), array_ids=None)
    policy = Policy(backfill=Slurm(SITE))
    setup = SlurmSetup(NODES.cpus, machine=NODES)
    slurm = MockSlurm(setup, policy, None, CLOCK)
    labels = None if workload.requests is None else workload.requests.slurm_partitions
    assert labels is not None
    for job, submit_time in enumerate((workload.submit_time + CLOCK).tolist()):
        if submit_time > slurm.now:
            slurm.advance(submit_time)
        name = str(labels.get(job))
        slurm.submit(
            Submission(
                "ann",
                None,
                name,
                int(workload.processors[job]),
                int(workload.requested_time[job]),
                int(workload.actual_runtime[job]),
                resources=JobResources((name,)),
            )
        )
    slurm.advance(slurm.now + 1)
    slurm.settle()
    client = SlurmCommands(slurm.run)
    look = Look(slurm.now, client.queue(), cluster=client.cluster())
    moment = QueueMoment.of(look, ForecastSettings())
    by_site = under_slurm(moment.everybody(), SITE)
    jobs = [int(request.job_id) - 1 for request in moment.requests]
    runtimes = workload.actual_runtime[jobs][None, :]
    assert len(by_site.asked) > 20
    starts = start_times_of(by_site.asked, by_site.snapshot, by_site.policy, runtimes)[0]
    # A look does not tell when the loops run next: they look at once.
    meant = replace(Snapshot.of(slurm._engine), slurm_notes=None, pass_due=True)
    assert meant.engine_index is not None
    known = workload.actual_runtime[meant.engine_index][None, :]
    first = len(meant.running)
    same = start_times_of(range(first, len(meant)), meant, policy, known)[0].tolist()
    by_job = dict(zip(meant.engine_index[first:].tolist(), same, strict=True))
    assert starts.tolist() == [by_job[jobs[column]] for column in by_site.asked.tolist()]
    slurm.finish()
    came = slurm.schedule().start_time[[jobs[column] for column in by_site.asked.tolist()]]
    generic = start_times_of(by_site.asked, moment.taken.snapshot, moment.policy, runtimes)[0]
    # What is left is the phase of the loops.
    assert np.abs(starts - came).mean() < np.abs(generic - came).mean() / 5
