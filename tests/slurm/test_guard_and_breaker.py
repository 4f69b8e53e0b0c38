"""What stops planning by itself on a live cluster: the starvation guard, the circuit breaker."""

from __future__ import annotations

import time

from foretime_sidecar.schedulers.slurm import SlurmStrategy
from foretime_sidecar.table.table import Mode

from tests.slurm.harness.foretime_site import ForetimeSite
from tests.slurm.harness.slurm_cluster import SlurmCluster

PLANNED, NOT_PLANNED = "00:02:00", "N/A"
BOUND_S = 3
JUDGES_EACH_S = 300


def time_mins(cluster: SlurmCluster, *jobs: str) -> list[str]:
    return [cluster.job(job)["TimeMin"] for job in jobs]


def mode_of(site: ForetimeSite) -> Mode:
    """The mode of the table that the next poll publishes."""
    site.publish()
    return site.table().settings.mode


def test_a_head_that_waits_too_long_stops_planning_until_it_starts(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster, starvation_guard_s=BOUND_S)
    site.publish()
    # A CPU is free on each node, so the head, which needs two on one, is planned to start at once.
    fillers = [
        cluster.sbatch("-n", "3", "-w", node, "-t", "60", user="root") for node in ("n1", "n2")
    ]
    for job in fillers:
        cluster.wait_for_state(job, "RUNNING")
    head = cluster.sbatch("-N", "1", "-n", "2", "-t", "20")
    second = cluster.sbatch("-N", "1", "-n", "3", "-t", "20", user="bob")
    own = cluster.sbatch("-N", "1", "-n", "4", "-t", "20", "--time-min=1", user="carol")
    began = time.time()
    site.look()
    assert time_mins(cluster, head, second, own) == [PLANNED] * 3

    def stepped_in() -> bool:
        site.look()
        scheduler = site.sidecar.scheduler
        assert isinstance(scheduler, SlurmStrategy)
        return scheduler.guard is not None and scheduler.guard.waiting_too_long == head

    cluster.wait_for(stepped_in, "the guard to step in", 30)
    assert time.time() - began > BOUND_S
    assert time_mins(cluster, head, second, own) == [NOT_PLANNED, NOT_PLANNED, "00:01:00"]
    assert mode_of(site) is Mode.OBSERVE
    meanwhile = cluster.sbatch("-N", "1", "-n", "4", "-t", "20")
    site.look()
    assert "AdminComment" not in cluster.job(meanwhile)
    assert time_mins(cluster, head, second, meanwhile) == [NOT_PLANNED] * 3, "until it has started"

    cluster.run(["scancel", fillers[0]])
    assert cluster.wait_for_state(head, "RUNNING")["TimeLimit"] == "00:20:00"
    site.look()
    assert time_mins(cluster, second, own, meanwhile) == [PLANNED, PLANNED, NOT_PLANNED]
    assert mode_of(site) is Mode.ENFORCE


def test_a_breaker_that_opens_clears_jobs_and_outlives_the_daemon(cluster: SlurmCluster) -> None:
    site = ForetimeSite(cluster, breaker={"most_head_slip_s": 600})
    site.publish()
    full = cluster.sbatch("-N", "2", "--exclusive", "-t", "60", user="root")
    cluster.wait_for_state(full, "RUNNING")
    head = cluster.sbatch("-n", "4", "-t", "20")
    second = cluster.sbatch("-n", "4", "-t", "20", user="bob")

    def planned_start() -> str:
        job = cluster.job(head)
        return job["StartTime"] if job["Reason"] == "Resources" else "Unknown"

    cluster.wait_for(lambda: planned_start() != "Unknown", "Slurm to plan the head's start")
    before = planned_start()
    site.look()
    assert time_mins(cluster, head, second) == [PLANNED] * 2
    # What runs may run an hour longer, and the head's start slips by that.
    assert cluster.scontrol("update", f"JobId={full}", "TimeLimit=120").returncode == 0
    cluster.wait_for(lambda: planned_start() not in ("Unknown", before), "a later start")
    site.sidecar.look(int(time.time()) + JUDGES_EACH_S)
    trip = site.sidecar.oversight.breaker.trip()
    assert trip is not None
    assert "a head job's start slipped by 01:00:0" in trip.reason
    site.look()
    assert time_mins(cluster, head, second) == [NOT_PLANNED] * 2
    assert mode_of(site) is Mode.OBSERVE
    assert "AdminComment" not in cluster.job(cluster.sbatch("-n", "4", "-t", "20"))

    site.restart()
    site.look()
    assert time_mins(cluster, head, second) == [NOT_PLANNED] * 2
    assert mode_of(site) is Mode.OBSERVE
    assert site.sidecar.oversight.breaker.reset(int(time.time())) == trip
    site.look()
    assert time_mins(cluster, head, second) == [PLANNED] * 2, "though the head's start is as late"
    assert mode_of(site) is Mode.ENFORCE
    cluster.run(["scancel", full])
    assert cluster.wait_for_state(head, "RUNNING")["TimeLimit"] == "00:20:00"
