"""Forward runs by a plausible policy: pools of partitions, the site's order, jobs that are held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.forward import start_times_of
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.models import lublin2003
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.site_file import parse_site
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forecaster import MEDIAN
from foretime_sim.waits.forward_forecaster import ForwardForecaster
from foretime_sim.waits.moment import Moment
from foretime_studies.logged_policies.plausible_runs import (
    HELD_AFTER_S,
    HeldJobs,
    PlausibleRuns,
    SitePools,
)

SITE = """
[priority]
PriorityType = "priority/multifactor"
PriorityWeightPartition = 1000
[node_groups.thin]
nodes = 4
cpus = 16
[node_groups.fat]
nodes = 2
cpus = 8
[partitions.standard]
node_groups = ["thin"]
Default = true
[partitions.urgent]
node_groups = ["thin"]
PriorityJobFactor = 10
[partitions.large]
node_groups = ["fat"]
"""
NOW = 100_000


@pytest.fixture(scope="module")
def site() -> SlurmSite:
    found = parse_site(SITE, source="site.toml")
    assert isinstance(found, SlurmSite)
    return found


def moment(*jobs: tuple[str, int, str, int], running: int) -> Moment:
    """Give a moment of jobs with id, processors, partition and submission; the last is asked."""
    requests = [JobRequest(name, "ann", None, cpus, 3_600, at, queue)
                for name, cpus, queue, at in jobs]  # fmt: skip
    cpus = np.array([job.processors for job in requests])
    submit = np.array([job.submit_time for job in requests])
    asked_s = np.full(len(jobs), 3_600)
    snapshot = Snapshot(
        NOW,
        200,
        RunningJobs(submit[:running], cpus[:running], asked_s[:running]),
        PendingJobs(submit[running:], cpus[running:], asked_s[running:]),
    )
    return Moment(snapshot, Policy(), requests, asked=np.array([len(jobs) - 1]))


def waits(found: Moment) -> list[int]:
    columns = np.arange(len(found.snapshot.running), len(found.snapshot))
    runtimes = np.array([[job.requested_time for job in found.requests]])
    starts = start_times_of(columns, found.snapshot, found.policy, runtimes)
    found_s: list[int] = (starts[0] - NOW).tolist()
    return found_s


def test_a_partition_has_its_own_nodes_and_unknown_ones_are_the_default(site: SlurmSite) -> None:
    pools = SitePools(site)
    jobs = moment(
        ("1", 16, "large", NOW - 600),
        ("2", 1, "large", NOW - 60),
        ("3", 64, "of old", NOW),
        running=1,
    )
    in_large, in_standard = waits(pools.moment(jobs))
    assert in_large >= 3_000  # the one running fills the fat nodes
    assert in_standard <= 60  # the thin ones are free
    assert pools.fits(jobs.requests).tolist() == [True, True, True]
    assert pools.fits([replace(jobs.requests[0], processors=17)]).tolist() == [False]


def test_what_runs_beyond_a_pool_is_left_out(site: SlurmSite) -> None:
    jobs = moment(
        ("1", 60, "standard", NOW - 600),
        ("2", 60, "standard", NOW - 600),
        ("3", 8, "standard", NOW),
        running=2,
    )
    found = SitePools(site).moment(jobs)
    assert found.snapshot.running.held is not None
    assert found.snapshot.running.held.cpus.tolist() == [60, 4]
    assert waits(found)[0] >= 2_900


def test_a_partition_of_several_groups_is_refused(site: SlurmSite) -> None:
    machine = site.machine
    both = replace(machine.slurm_partitions[0], node_groups=("thin", "fat"))
    mixed = replace(machine, slurm_partitions=(both, *machine.slurm_partitions[1:]))
    with pytest.raises(InputError, match=r"partitions\.standard: node_groups has 2 groups"):
        SitePools(replace(site, machine=mixed))


def plausible(policy: Policy) -> PlausibleRuns:
    forward = ForwardForecaster("plausible", RuntimeHistories(), samples=4)
    workload = replace(lublin2003.generate(jobs=4, seed=1), machine_processors=200)
    return PlausibleRuns(forward, policy, workload)


def test_the_queue_has_the_order_of_the_sites_priorities(site: SlurmSite) -> None:
    runs = plausible(Policy(backfill=Slurm(site)))
    runs.forecast(
        moment(
            ("1", 64, "standard", NOW - 600),
            ("2", 64, "standard", NOW - 60),
            ("3", 64, "urgent", NOW),
            running=1,
        )
    )
    (queue,) = runs.queues
    assert queue.jobs == ("2", "3")
    assert queue.places["fcfs"].tolist() == [0, 1]
    assert queue.places["plausible"].tolist() == [1, 0]


def test_who_could_start_for_ten_minutes_is_held_until_it_starts() -> None:
    held = HeldJobs()
    jobs = [JobRequest(name, "ann", None, 1, 60, 0) for name in "ab"]
    held.look(jobs, np.array([True, True]), 0)
    held.look(jobs, np.array([True, False]), HELD_AFTER_S - 1)
    assert held.among(jobs).tolist() == [False, False]
    held.look(jobs, np.array([True, True]), HELD_AFTER_S)
    assert held.among(jobs).tolist() == [True, False]  # b could not in between
    held.look([jobs[1]], np.array([True]), 2 * HELD_AFTER_S)
    assert held.among(jobs).tolist() == [True, True]
    held.started(jobs[0])
    assert held.among(jobs).tolist() == [False, True]


def test_of_held_jobs_there_is_no_answer_and_nobody_waits_for_them() -> None:
    runs = plausible(Policy())
    wide = ("1", 200, "standard", NOW - 7_200)
    stands = moment(wide, running=0)
    for at in (NOW, NOW + HELD_AFTER_S):
        snapshot = replace(stands.snapshot, now=at)
        answer = runs.forecast(replace(stands, snapshot=snapshot))
    assert not answer.answered.any()
    later = moment(wide, ("2", 200, "standard", NOW - 60), running=0)
    told = runs.forecast(replace(later, snapshot=replace(later.snapshot, now=NOW + 900)))
    assert told.answered.tolist() == [True]
    assert told.wait_s[0, MEDIAN] == 0
    assert runs.queues[-1].held.tolist() == [True, False]
    runs.started(stands.requests[0], NOW + 901)
    again = moment(wide, ("2", 200, "standard", NOW - 60), running=0)
    told = runs.forecast(replace(again, snapshot=replace(again.snapshot, now=NOW + 960)))
    assert told.wait_s[0, MEDIAN] > 0
