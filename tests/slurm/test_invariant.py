"""Foretime never makes Slurm accept or start what it would have refused or kept waiting at t_req.

Every kind of job meets every limit, on a plain cluster and on one with the hook and the daemon;
what becomes of it must be the same on both. All ask for 20 minutes and are planned with 4; every
limit lies between.

On a third cluster the daemon starts jobs at once. Its nodes are idle for 15 minutes before a job
that needs all of them, so that each of these jobs is worth to be raised. There whoever starts must
be one that starts on the plain cluster, where nothing stands in the way but the limit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from tests.slurm.harness.live_sidecar import LiveSidecar
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

SETTLED_S = 12
SHARED_NODES = 8
ENFORCED = "associations,limits,qos,safe"


@dataclass(frozen=True)
class Limit:
    """What stands in a job's way.

    Attributes
    ----------
    account, parent, qos
        Limits of the job's account, of the account above it, of its QOS, as sacctmgr takes them.
    slurm_partition
        More of the slurm_partition's line in slurm.conf; {qos} is the limit's QOS.
    reservation
        A reservation of the node that only this limit's slurm_partition has.
    later
        It is made while the jobs wait on hold, which are released then.
    options
        More options of the job.
    stops
        Whether plain jobs don't start.
    user
        Whose jobs they are. What a user's association inherits has all jobs of that user left
        alone, so such limits have a user of their own.
    """

    account: str = ""
    parent: str = ""
    qos: str = ""
    slurm_partition: str = ""
    reservation: str = ""
    later: bool = False
    options: tuple[str, ...] = ()
    stops: bool = True
    user: str = "alice"


MAINTENANCE = "StartTime=now+8minutes Duration=60 Users=root Flags=MAINT,IGNORE_JOBS"
LIMITS: Mapping[str, Limit] = {
    "none": Limit(stops=False),
    "max-time": Limit(slurm_partition="MaxTime=10"),
    "account-cpu-run-minutes": Limit(account="GrpTRESRunMins=cpu=10"),
    "parent-cpu-run-minutes": Limit(parent="GrpTRESRunMins=cpu=10"),
    "account-cpu-minutes-safe": Limit(account="GrpTRESMins=cpu=10"),
    "parent-cpu-minutes-safe": Limit(parent="GrpTRESMins=cpu=10"),
    "account-max-wall": Limit(account="MaxWall=10", user="bob"),
    "account-group-wall": Limit(account="GrpWall=10"),
    "account-cpu-minutes-per-job": Limit(account="MaxTRESMins=cpu=10", user="bob"),
    "qos-cpu-run-minutes": Limit(qos="GrpTRESRunMins=cpu=10"),
    "qos-cpu-minutes-safe": Limit(qos="GrpTRESMins=cpu=10"),
    "qos-max-wall": Limit(qos="MaxWall=10"),
    "qos-group-wall": Limit(qos="GrpWall=10"),
    "qos-cpu-minutes-per-job": Limit(qos="MaxTRESMins=cpu=10"),
    "qos-cpu-run-minutes-per-user": Limit(qos="MaxTRESRunMinsPU=cpu=10"),
    "qos-cpu-run-minutes-per-account": Limit(qos="MaxTRESRunMinsPA=cpu=10"),
    "partition-qos-cpu-run-minutes": Limit(
        qos="GrpTRESRunMins=cpu=10", slurm_partition="QOS={qos}"
    ),
    "deadline": Limit(options=("--deadline=now+10minutes",)),
    "maintenance-ahead": Limit(reservation=MAINTENANCE),
    "users-reservation-ahead": Limit(reservation="StartTime=now+8minutes Duration=60 Users=erin"),
    "maintenance-made-later": Limit(reservation=MAINTENANCE, later=True),
    "within-reservation": Limit(
        reservation="StartTime=now Duration=10 Users=alice",
        options=("--reservation={name}",),
        stops=False,
    ),
}
# Slurm 22.05 takes these and doesn't keep them; still both clusters must do the same.
NOT_KEPT_BY_OLD = {"qos-cpu-run-minutes-per-user", "qos-cpu-run-minutes-per-account"}
# What a pass of Slurm 22.05 writes over the limit's own reason, now on one cluster and now on the
# other, hooked or not: a reason tells what the last pass came upon, and promises nothing.
LAST_PASS = "Nodes_required_for_job_are_DOWN"
# EnforcePartLimits=ALL counts for the whole cluster, so it comes after all others.
REFUSED = "max-time-enforced"
KINDS: Mapping[str, tuple[str, ...]] = {
    "batch": (),
    "array": ("--array=1-2",),
    "exclusive": ("--exclusive",),
    "two-tasks": ("-n", "2"),
    "begins-soon": ("--begin=now+3",),
    "not-requeued": ("--no-requeue",),
    "heterogeneous": ("{rest}", ":", "{rest}"),
    "tested-only": ("--test-only",),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    Attributes
    ----------
    accepted
        Whether sbatch took it.
    states
        State, limit and, if it waits, the reason, of each of its parts.
    planned
        Whether the hook noted that it plans it.
    """

    accepted: bool
    states: tuple[str, ...] = ()
    planned: bool = False


class Site:
    """One cluster with all the limits."""

    def __init__(self, cluster: SlurmCluster) -> None:
        self.cluster = cluster
        self.numbers = {name: number for number, name in enumerate(LIMITS)}
        self.jobs: dict[tuple[str, str], str | bool] = {}
        cluster.add_accounting()
        self._add_accounts()
        cluster.set_conf(
            {"AccountingStorageEnforce": ENFORCED},
            slurm_partitions=slurm_partitions(),
            restart=True,
        )

    def _add_accounts(self) -> None:
        lines = []
        for name, limit in LIMITS.items():
            number = self.numbers[name]
            parent = f"parent{number}"
            lines += [f"add qos q{number} {limit.qos}"]
            lines += [f"add account {parent} {limit.parent}"]
            lines += [f"add account a{number} parent={parent} {limit.account}"]
            lines += [f"add user {limit.user} account=a{number} qos=normal,q{number}"]
        lines.append("add user erin account=a0")
        # Slurm 22.05 takes half a second for each of these lines.
        words = "\n".join([*lines, "quit", ""])
        self.cluster.checked(["sacctmgr", "-i"], stdin=words, timeout_s=300)

    def block(self) -> None:
        """Have one node full for 15 minutes, and a job before all others that needs eight."""
        shared = [
            f"p{number}" for name, number in self.numbers.items() if not LIMITS[name].reservation
        ]
        words = ["--account=a0", "--exclusive", "-t15"]
        self.cluster.wait_for_state(
            self.cluster.sbatch("-N1", *words, user="erin"), "RUNNING", timeout_s=60
        )
        head = (f"-N{SHARED_NODES}", f"--partition={','.join(shared)}", *words[:2], "-t5")
        self.cluster.sbatch(*head, user="erin")

    def reserve(self, names: Sequence[str]) -> None:
        """Make the reservations of these limits."""
        for name in names:
            words = [f"ReservationName=r-{name}", f"Nodes={node_of(name)}"]
            words += LIMITS[name].reservation.split()
            self.cluster.checked(["scontrol", "create", "reservation", *words])

    def submit(self, name: str, kind: str, key: str = "") -> None:
        """Submit one job."""
        limit, number = LIMITS[name], self.numbers[name]
        rest = ["-t", "20", f"--partition=p{number}", f"--account=a{number}"]
        rest += [option.format(name=f"r-{name}") for option in limit.options]
        if limit.qos and "QOS" not in limit.slurm_partition:
            rest.append(f"--qos=q{number}")
        if limit.later:
            rest.append("--hold")
        options: list[str] = []
        for option in KINDS[kind]:
            options += rest if option == "{rest}" else [option]
        if "{rest}" not in KINDS[kind]:
            options += rest
        reply = self.cluster.try_sbatch(*options, user=limit.user)
        accepted = reply.returncode == 0
        job_id = reply.stdout.strip()
        self.jobs[key or name, kind] = job_id if accepted and job_id else accepted

    def submit_all(self, names: Sequence[str]) -> None:
        """Submit every kind of job to these limits."""
        for name in names:
            for kind in KINDS:
                if not (LIMITS[name].later and kind == "tested-only"):
                    self.submit(name, kind)

    def outcomes(self) -> dict[tuple[str, str], Outcome]:
        """Look at every job."""
        found: dict[str, list[dict[str, str]]] = {}
        for job in self.cluster.jobs():
            for key in {job["JobId"], job.get("ArrayJobId"), job.get("HetJobId")} - {None}:
                found.setdefault(str(key), []).append(job)
        return {
            key: outcome_of(found.get(job, [])) if isinstance(job, str) else Outcome(job)
            for key, job in self.jobs.items()
        }


def outcome_of(parts: list[dict[str, str]]) -> Outcome:
    states = []
    for part in parts:
        state = part["JobState"]
        if state == "PENDING":
            state += f" {part['Reason']}"
        elif state != "RUNNING":
            state += f" after {part['RunTime']}"
        states.append(f"{state} limit {part['TimeLimit']}")
    planned = any("foretime:treq" in part.get("AdminComment", "") for part in parts)
    return Outcome(True, tuple(sorted(states)), planned)


def without_reasons(outcome: Outcome) -> Outcome:
    """Leave of the reasons only that somebody holds the job."""
    states = (re.sub(r"^PENDING (?!JobHeld)\S+", "PENDING", state) for state in outcome.states)
    return replace(outcome, states=tuple(sorted(states)))


def node_of(name: str) -> str:
    """The node that only this limit's slurm_partition has."""
    reserving = [limit for limit, what in LIMITS.items() if what.reservation]
    return f"n{SHARED_NODES + 1 + reserving.index(name)}"


def slurm_partitions() -> list[str]:
    lines = ["main Nodes=n[1-8] Default=YES MaxTime=INFINITE DefaultTime=60"]
    for number, (name, limit) in enumerate(LIMITS.items()):
        nodes = node_of(name) if limit.reservation else f"n[1-{SHARED_NODES}]"
        more = limit.slurm_partition.format(qos=f"q{number}")
        lines.append(f"p{number} Nodes={nodes} {more or 'MaxTime=INFINITE'}")
    return lines


def run(site: Site, look_awaited: Callable[[], None]) -> dict[tuple[str, str], Outcome]:
    cluster = site.cluster
    # A reservation ahead counts for every job, so all others come before the first is made.
    site.submit_all([name for name, limit in LIMITS.items() if not limit.reservation])
    later = [name for name, limit in LIMITS.items() if limit.later]
    site.submit_all(later)
    time.sleep(SETTLED_S)
    look_awaited()
    site.reserve(later)
    look_awaited()
    for (name, _), job in site.jobs.items():
        if LIMITS[name].later and isinstance(job, str):
            cluster.checked(["scontrol", "release", job])
    before = [name for name, limit in LIMITS.items() if limit.reservation and not limit.later]
    site.reserve(before)
    look_awaited()
    site.submit_all(before)
    time.sleep(SETTLED_S)
    outcomes = site.outcomes()
    cluster.set_conf({"EnforcePartLimits": "ALL"})
    for kind in KINDS:
        site.submit("max-time", kind, REFUSED)
    outcomes |= {key: seen for key, seen in site.outcomes().items() if key[0] == REFUSED}
    return outcomes


Outcomes = dict[tuple[str, str], Outcome]
NODES = SHARED_NODES + sum(bool(limit.reservation) for limit in LIMITS.values())


def plain(release: SlurmRelease) -> Outcomes:
    with SlurmCluster(release, nodes=NODES, cpus=64) as cluster:
        return run(Site(cluster), lambda: None)


def hooked(release: SlurmRelease) -> Outcomes:
    with SlurmCluster(release, nodes=NODES, cpus=64) as cluster:
        site = Site(cluster)
        cluster.install_hook()
        cluster.table.unlink()
        with LiveSidecar(cluster, ("alice", "bob")) as daemon:
            return run(site, daemon.wait_for_look)


def raised(release: SlurmRelease) -> Outcomes:
    """Have jobs started at once, and see that all is given back as the daemon ends."""
    conf = {"PriorityType": "priority/multifactor"}
    with SlurmCluster(release, nodes=NODES, cpus=64, conf=conf) as cluster:
        site = Site(cluster)
        site.block()
        start_now: dict[str, dict[str, object]] = {"queue_order": {"order": "start-now"}}
        with LiveSidecar(cluster, ("alice", "bob"), start_now) as daemon:
            outcomes = run(site, daemon.wait_for_look)
            daemon.end()
            text = cluster.checked(["sprio", "--noheader", "--format=%S"])
            assert set(text.split()) == {"0"}, "given back"
            return outcomes


WAYS = {"plain": plain, "hooked": hooked, "raised": raised}


def EXPERIMENT(release: SlurmRelease) -> dict[str, Outcomes]:  # noqa: N802
    with ThreadPoolExecutor() as side_by_side:
        runs = {way: side_by_side.submit(run, release) for way, run in WAYS.items()}
        return {way: run.result() for way, run in runs.items()}


CASES = [
    (name, kind)
    for name in (*LIMITS, REFUSED)
    for kind in KINDS
    if not (kind == "tested-only" and name in LIMITS and LIMITS[name].later)
]


@pytest.mark.parametrize(("limit", "kind"), CASES, ids=lambda text: str(text))
def test_same_as_without_foretime(
    experiment: dict[str, Outcomes],
    release: SlurmRelease,
    limit: str,
    kind: str,
) -> None:
    plain, hooked = experiment["plain"][limit, kind], experiment["hooked"][limit, kind]
    assert not plain.planned
    same = replace(hooked, planned=False)
    if any(LAST_PASS in state for state in (*plain.states, *hooked.states)):
        same, plain = without_reasons(same), without_reasons(plain)
    assert same == plain
    stops = LIMITS[limit].stops if limit in LIMITS else True
    if limit in NOT_KEPT_BY_OLD and not release.soft_limit:
        stops = False
    if stops and plain.accepted and kind != "tested-only":
        assert all(re.match("PENDING|DEADLINE", state) for state in plain.states), (
            "the limit stops nothing"
        )


@pytest.mark.parametrize(("limit", "kind"), CASES, ids=lambda text: str(text))
def test_raised_jobs_start_only_where_they_would_without_foretime(
    experiment: dict[str, Outcomes], limit: str, kind: str
) -> None:
    plain, raised = experiment["plain"][limit, kind], experiment["raised"][limit, kind]
    assert raised.accepted == plain.accepted
    assert not raised.planned
    assert limits_of(raised) == limits_of(plain)
    for state in ("RUNNING", "PENDING JobHeld", "DEADLINE"):
        had, has = (sum(one.startswith(state) for one in each.states) for each in (plain, raised))
        assert has <= had if state == "RUNNING" else has == had, state


def limits_of(outcome: Outcome) -> set[str]:
    """Give each limit once: a task that is raised becomes a record of its own."""
    return {state.partition(" limit ")[2] for state in outcome.states}


def test_unlimited_jobs_are_started_at_once(experiment: dict[str, Outcomes]) -> None:
    """So the others were worth to be raised, too."""
    for kind in KINDS.keys() - {"tested-only", "heterogeneous"}:
        states = experiment["raised"]["none", kind].states
        assert states, kind
        assert all(state == "RUNNING limit 00:20:00" for state in states), (kind, states)


def test_unlimited_jobs_run_and_are_planned(
    experiment: dict[str, Outcomes],
) -> None:
    for kind in KINDS:
        outcome = experiment["hooked"]["none", kind]
        assert outcome.accepted
        if kind not in ("tested-only", "heterogeneous"):
            assert outcome.planned, kind
            assert all(state == "RUNNING limit 00:20:00" for state in outcome.states), outcome


def test_only_the_words_of_a_reason_are_left_out() -> None:
    reason = f"{LAST_PASS},_DRAINED"
    written = ("RUNNING limit 1", f"PENDING {reason} limit 2", "PENDING JobHeldUser limit 2")
    kept = ("PENDING JobHeldUser limit 2", "PENDING limit 2", "RUNNING limit 1")
    assert without_reasons(Outcome(True, written)) == Outcome(True, kept)
