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
from foretime_sim.reference.pbs.fair_share import FairShare
from foretime_sim.reference.pbs.job import Chunk, PbsJob
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import (
    PbsHost,
    PbsQueue,
    PbsServer,
    PbsSite,
    ShareGroup,
)
from foretime_sim.waits.best_of import BestOf
from foretime_sim.workloads.node_request import JobResources

from tests.support.replay_runs import CLOCK, PROCESSORS, made_workload


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
    sums = np.sum(list(learned["all_losses"].values()), axis=0)
    beyond, judged = (dict(zip(learned["forecasters"], row, strict=True)) for row in sums.tolist())
    assert min(judged["site"], judged["forward"]) > 10
    assert choices[-1].ranked()[0].name == "site"
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


LIMITED = site(PROCESSORS, limits=PbsLimits(max_run={"u:PBS_GENERIC": 2}))
FAIR = replace(
    PbsSite.flat(PROCESSORS),
    server=PbsServer(scheduler_iteration_s=10**9),  # no cycles but those of events
    scheduler=PbsScheduler(
        strict_ordering=True,
        fair_share=True,
        fairshare_usage_res="ncpus*walltime",
        unknown_shares=10,
        fairshare_decay_time_s=600,
    ),
    share_groups=tuple(ShareGroup(f"user{number}", shares=10) for number in range(4)),
)


@pytest.mark.parametrize("scheduled", [LIMITED, FAIR], ids=["limits", "fair share"])
def test_looks_at_a_site_give_the_starts_that_come(scheduled: PbsSite) -> None:
    """With runtimes known, and nobody to come, its forward runs are what the mock does next.

    The look comes before the cycle of the last submission.
    """
    workload = made_workload(60, days=1)
    submitted = np.sort(workload.submit_time // 50)
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
    client = PbsCommands(pbs.run)
    look = Look(pbs.now, client.queue(), soft_limit=True, correction=Correction.PBS)
    moment = QueueMoment.of(look, ForecastSettings())
    by_site, _ = under_pbs(moment.everybody(), pbs.site())
    jobs = [int(request.job_id.partition(".")[0]) - 1 for request in moment.requests]
    runtimes = workload.actual_runtime[jobs][None, :]
    assert len(by_site.asked) > 20
    starts = start_times_of(by_site.asked, by_site.snapshot, by_site.policy, runtimes)[0]
    pbs.finish()
    came = pbs.schedule().start_time[[jobs[column] for column in by_site.asked.tolist()]]
    assert starts.tolist() == came.tolist()
    if scheduled is FAIR:  # what was used by then decides
        unread, _ = under_pbs(moment.everybody(), scheduled)
        starts = start_times_of(unread.asked, unread.snapshot, unread.policy, runtimes)[0]
        assert starts.tolist() != came.tolist()


def test_a_mock_of_no_site_has_none_to_tell() -> None:
    with pytest.raises(InputError, match=r"is no site's PBS: give Pbs\(site\)"):
        MockPbs(PbsSetup(8), Policy()).site()


def test_the_site_that_a_mock_tells_has_what_the_specification_charged() -> None:
    """Its own tree is charged with the same jobs, cycle by cycle, until the first has ended."""
    pbs = MockPbs(PbsSetup(PROCESSORS), Policy(backfill=Pbs(FAIR)), None, CLOCK)
    tree = FairShare(FAIR.share_groups, FAIR.scheduler, CLOCK)
    jobs = [
        PbsJob(number, 0, 2_000, (Chunk(1, {"ncpus": 4}),), user=user, walltime_s=2_000)
        for number, user in enumerate(("user1", "user2", "nobody_known"))
    ]
    for number, each in enumerate(jobs):
        pbs.advance(CLOCK + 700 * number)
        pbs.submit(PbsSubmission(each.user, None, None, 4, 2_000, 2_000))
        tree.begin_cycle([(job, 700 * (number - job.index)) for job in jobs[:number]], pbs.now)
        tree.entity_of(each)
        tree.end_cycle([(job, 700 * (number - job.index)) for job in jobs[: number + 1]])
    pbs.advance(CLOCK + 1_500)
    told = pbs.site()
    used = {group.name: group.usage for group in told.share_groups}
    assert used == {name: tree.by_name[name].usage for name in used}
    assert used["user1"] > 1000 > used["nobody_known"] == used["user3"] == 1.0
    assert (told.usage_at, told.decayed_at) == (CLOCK + 1_400, tree.decayed_at)


def test_a_site_of_several_hosts_is_run_forward_on_its_hosts() -> None:
    """Jobs ask for nodes or tasks, some with memory or alone; their hosts are told."""
    hosts = tuple(PbsHost(f"n{number}", {"ncpus": 8, "mem": 16 * 2**30}) for number in range(4))
    server = PbsServer(backfill_depth=2, scheduler_iteration_s=10**9)
    scheduled = PbsSite(hosts, (PbsQueue("workq"),), server, PbsScheduler(strict_ordering=True))
    policy = Policy(backfill=Pbs(scheduled), correction=Correction.PBS)
    pbs = MockPbs(PbsSetup(PROCESSORS, machine=scheduled.machine), policy, None, CLOCK)
    rng = np.random.default_rng(3)
    runtimes = rng.integers(100, 4000, 60)
    for job, runtime in enumerate(runtimes.tolist()):
        pbs.advance(CLOCK + 60 * job)
        nodes, tasks = (int(number) for number in rng.integers(1, 4, 2))
        asked = [
            JobResources(nodes=nodes, tasks=nodes * tasks, cpus_per_task=2),
            JobResources(nodes=nodes, tasks=nodes, memory_per_node_mib=9_000),
            JobResources(tasks=tasks, cpus_per_task=2, memory_per_cpu_mib=512),
            JobResources(nodes=1, tasks=1, exclusive=True),
        ][int(rng.integers(4))]
        cpus = (asked.tasks or 1) * (asked.cpus_per_task or 1)
        pbs.submit(PbsSubmission("ann", None, None, cpus, 4000, runtime, of_nodes=asked))
    client = PbsCommands(pbs.run)
    queue = client.queue()
    running = [job for job in queue.jobs if job.has_nodes]
    assert {node.name for job in running for node in job.has_nodes} == {h.name for h in hosts}
    assert any(job.chunks and job.chunks.exclusive for job in queue.jobs)
    look = Look(pbs.now, queue, soft_limit=True, correction=Correction.PBS)
    moment = QueueMoment.of(look, ForecastSettings())
    by_site, _ = under_pbs(moment.everybody(), pbs.site())
    jobs = [int(request.job_id.partition(".")[0]) - 1 for request in moment.requests]
    assert len(by_site.asked) > 20
    starts = start_times_of(
        by_site.asked, by_site.snapshot, by_site.policy, runtimes[jobs][None, :]
    )[0]
    pbs.finish()
    came = pbs.schedule().start_time[[jobs[column] for column in by_site.asked.tolist()]]
    assert starts.tolist() == came.tolist()


def test_a_replay_of_several_hosts_is_forecast() -> None:
    hosts = tuple(PbsHost(f"n{number}", {"ncpus": 8}) for number in range(4))
    workload = made_workload(40, days=0.5)
    replay = replay_of(PbsSite(hosts, (PbsQueue("workq"),)), forecast_interval_s=3600)
    statistics = replay(
        replace(workload, machine=PbsSite(hosts, (PbsQueue("workq"),)).machine), 0
    ).statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.forecasts is not None
    assert statistics.forecasts.scored > 0
