"""Which jobs are never raised, and that one that is keeps all that its user asked for.

The same jobs wait on two clusters alike, one without the daemon. Each would fit where two CPUs are
idle, and is expected to end within a minute or so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from foretime_sidecar.daemon.sidecar import Sidecar

from tests.slurm.harness.raising_site import LIMIT_MIN, RaisingSite, leave_two_cpus_idle, look
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

CONF = {"PriorityType": "priority/multifactor", "PriorityWeightJobSize": "1000"}
PARTITIONS = [
    "main Nodes=n[1-2] Default=YES MaxTime=INFINITE PriorityTier=10",
    "low Nodes=n[1-2] MaxTime=INFINITE PriorityTier=1",
]
_LOOKS = 4


@dataclass(frozen=True)
class Kind:
    """A job: its options, and what root changes of it; {head} is the head job."""

    options: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    user: str = "alice"


NEVER: Mapping[str, Kind] = {
    "held": Kind(("--hold",)),
    "held-by-root": Kind((), ("hold", "{job}")),
    "fixed-priority": Kind((), ("update", "JobId={job}", "Priority=100")),
    "fixed-at-next-to-nothing": Kind((), ("update", "JobId={job}", "Priority=2")),
    "site-factor-of-others": Kind((), ("update", "JobId={job}", "SiteFactor=-7")),
    "for-a-reservation": Kind(("--reservation=tomorrow",)),
    "dependent": Kind(("--dependency=afterany:{head}",)),
    "later": Kind(("--begin=now+1hour",)),
    "heterogeneous": Kind((":", "-n1", f"-t{LIMIT_MIN}")),
    "switched-off": Kind(("--comment=foretime:off",)),
    "for-a-node-that-is-full": Kind(("--nodelist=n1",)),
    "lower-tier": Kind(("--partition=low",)),
    "expected-to-take-long": Kind(("-t300",), user="bob"),
}
# Its priority is not told from one that is worked out, so it is raised; that changes nothing.
IN_VAIN = "fixed-at-next-to-nothing"
RAISED = Kind(("--nice=50", "--time-min=100", "--no-requeue", "--deadline=now+1day"))
KEPT = ("TimeLimit", "TimeMin", "Nice", "Priority", "Requeue", "NumCPUs")


@dataclass
class Seen:
    """What became of each job, by kind: while it waited, and of the one that was raised."""

    waited: dict[str, dict[str, str]]
    raised: dict[str, str]
    given: set[str]
    counts: tuple[int, int] = (0, 0)


def have_them_wait(release: SlurmRelease, *, foretime: bool) -> Seen:
    """Submit all kinds, and after some looks one that may be raised."""
    with SlurmCluster(release, nodes=2, conf=CONF, slurm_partitions=PARTITIONS) as cluster:
        head = leave_two_cpus_idle(cluster)
        site = RaisingSite(cluster, "start-now")
        cluster.checked(
            [
                *("scontrol", "create", "reservation", "ReservationName=tomorrow"),
                *("StartTime=now+1day", "Duration=300", "Nodes=n1", "Users=alice"),
            ]
        )
        jobs: dict[str, str] = {}
        for name, kind in NEVER.items():
            words = [word.format(head=head) for word in kind.options]
            job = jobs[name] = cluster.sbatch("-n1", f"-t{LIMIT_MIN}", *words, user=kind.user)
            if kind.change:
                cluster.checked(["scontrol", *(word.format(job=job) for word in kind.change)])
        daemon = site.start() if foretime else None
        names = {job: name for name, job in jobs.items()}
        given: set[str] = set()
        for _ in range(_LOOKS):
            time.sleep(2)  # Slurm plans each second
            if daemon is not None:
                look(daemon)
                given |= {names.get(job, job) for job in daemon.store.site_factors()}
        waited = {name: shown(cluster, job) for name, job in jobs.items()}
        fixed = shown(cluster, jobs["fixed-priority"])
        assert fixed["Priority"] == "100"
        raised = cluster.sbatch("-n1", f"-t{LIMIT_MIN}", *RAISED.options)
        seen = Seen(waited, {}, given)
        if daemon is None:
            time.sleep(5)
            seen.raised = shown(cluster, raised)
        else:
            seen.raised = started_at_once(cluster, daemon, raised)
            assert daemon.scheduler.starts is not None
            seen.counts = daemon.scheduler.starts.raised, daemon.scheduler.starts.missed
            daemon.end()
        for job in jobs.values():  # what was hidden would show
            cluster.run(["scontrol", "release", job])
        time.sleep(3)
        for name, job in jobs.items():
            waited[name]["released"] = shown(cluster, job)["Priority"]
        site.kill()
        return seen


def started_at_once(cluster: SlurmCluster, daemon: Sidecar, job: str) -> dict[str, str]:
    cluster.wait_for(lambda: shown(cluster, job)["Reason"] != "None", "Slurm to have seen it")
    look(daemon)
    cluster.wait_for_state(job, "RUNNING")
    look(daemon)
    found = cluster.job(job)
    kept_s = int(found["EndTime"]) - int(found["StartTime"])
    return shown(cluster, job) | {"may run for": str(kept_s)}


def shown(cluster: SlurmCluster, job: str) -> dict[str, str]:
    found = cluster.jobs(job)[0]
    return {key: found.get(key, "") for key in ("JobState", "Reason", *KEPT)}


def EXPERIMENT(release: SlurmRelease) -> dict[bool, Seen]:  # noqa: N802
    with ThreadPoolExecutor() as side_by_side:
        runs = {
            foretime: side_by_side.submit(have_them_wait, release, foretime=foretime)
            for foretime in (False, True)
        }
        return {foretime: run.result() for foretime, run in runs.items()}


@pytest.mark.parametrize("kind", NEVER)
def test_it_is_never_raised_and_waits_as_without_foretime(
    experiment: dict[bool, Seen], kind: str
) -> None:
    plain, ours = experiment[False], experiment[True]
    assert kind not in ours.given - {IN_VAIN}
    assert ours.waited[kind]["JobState"] == "PENDING"
    assert without_reason(ours.waited[kind]) == without_reason(plain.waited[kind])
    held = "JobHeld" in plain.waited[kind]["Reason"]
    assert ("JobHeld" in ours.waited[kind]["Reason"]) is held


def without_reason(job: Mapping[str, str]) -> dict[str, str]:
    """Of one that waits for the head job both passes tell, now one and now the other."""
    return {key: value for key, value in job.items() if key != "Reason"}


def test_one_that_may_be_is_and_keeps_all_that_it_asked_for(
    experiment: dict[bool, Seen],
) -> None:
    plain, ours = experiment[False], experiment[True]
    assert plain.raised["JobState"] == "PENDING"
    assert ours.raised["JobState"] == "RUNNING"
    assert ours.raised["may run for"] == f"{LIMIT_MIN * 60}"
    for key in KEPT:
        assert ours.raised[key] == plain.raised[key], key
    assert ours.counts[0] >= 1
