"""What the daemon has changed of the queue's order is given back, whatever fails.

Each fault comes while a job is raised that did not start, as the nodes were drained just then.
Another job has a site factor that somebody else has set: that stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from foretime_estimators.jobs.errors import ForetimeError, SchedulerError, StateError
from foretime_sidecar.daemon.daemon_lock import DaemonLock
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.store.breaker_events import BreakerEvent, BreakerEvents

from tests.slurm.harness.raising_site import (
    RaisingSite,
    WithoutAccounting,
    leave_two_cpus_idle,
    look,
)
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_conf import FIRST_USER_UID
from tests.slurm.harness.slurm_releases import SlurmRelease

Seen = dict[str, bool]
_THEIRS = -7


class Trial:
    """One fault: a job that is raised, and what is there besides.

    Attributes
    ----------
    job
        The job that is raised.
    before
        The site factors without the daemon.
    """

    def __init__(self, site: RaisingSite) -> None:
        self.site, self.cluster = site, site.cluster
        site.kill()
        site.off.unlink(missing_ok=True)
        for file in site.store.parent.glob("store*"):
            file.unlink()
        site.write_settings("enforce")
        site.let_jobs_start(may=True)
        self.job, theirs = site.submit(), site.submit()
        self.update(theirs, f"SiteFactor={_THEIRS}")
        self.cluster.wait_for(lambda: site.factors()[theirs] == _THEIRS, "their factor")
        self.before = site.factors()
        self.raised()

    def update(self, job: str, change: str, user: str = "root") -> None:
        self.cluster.checked(["scontrol", "update", f"JobId={job}", change], user)

    def raised(self) -> None:
        """Start a daemon that raises the job, which does not start."""
        self.daemon = self.site.start()
        client = self.daemon.client
        assert isinstance(client, WithoutAccounting)
        client.before_update = [lambda: self.site.let_jobs_start(may=False)]
        look(self.daemon)
        assert self.is_raised, f"not raised: {self.daemon.order_refused}"

    def start_anew(self) -> Sidecar:
        """Lose the daemon, and start another."""
        self.site.kill()
        self.daemon = self.site.start()
        return self.daemon

    @property
    def is_raised(self) -> bool:
        return self.site.factors().get(self.job, 0) > 0

    @property
    def is_given_back(self) -> bool:
        return self.site.factors() == self.before

    def own_priority(self) -> bool:
        """Whether the job, which may run or be held, has nothing of ours in its priority."""
        return int(self.cluster.job(self.job)["Priority"]) < 1000


def ends(trial: Trial) -> Seen:
    trial.daemon.end()
    return {"given back": trial.is_given_back}


def next_start(trial: Trial) -> Seen:
    look(trial.start_anew())
    return {"given back": trial.is_given_back}


def next_start_that_changes_no_order(trial: Trial) -> Seen:
    trial.site.write_settings("observe")
    look(trial.start_anew())
    return {"given back": trial.is_given_back}


def watchdog(trial: Trial) -> Seen:
    trial.site.kill()
    alive = trial.site.table.with_name("table.alive")
    alive.touch()
    seen = {"left to a daemon that lives": trial.site.watch().alive}
    seen["raised so long"] = trial.is_raised
    alive.unlink()
    seen["said"] = trial.site.watch().site_factors >= 1
    return seen | {"given back": trial.is_given_back}


def disabled_beside_the_daemon(trial: Trial) -> Seen:
    """By the daemon's own look; the command comes on top of it, and both at once do no harm."""
    trial.site.off.touch()
    look(trial.daemon)
    seen = {"given back": trial.is_given_back, "said": "off exists" in trial.daemon.order_refused}
    trial.site.let_jobs_start(may=True)
    trial.site.disable()
    look(trial.daemon)
    seen["not raised again"] = trial.is_given_back
    trial.site.off.unlink()
    trial.raised()
    trial.site.disable()
    seen["by the command"] = trial.is_given_back
    look(trial.daemon)
    return seen | {"and stays so": trial.is_given_back}


def disabled_where_the_daemon_is_dead(trial: Trial) -> Seen:
    trial.site.kill()
    if trial.site.order == "start-now":
        said = f'"{trial.job}"' in trial.site.run("disable", "--json")
    else:
        said = trial.job in trial.site.disable()
    return {"said": said, "given back": trial.is_given_back}


def circuit_breaker(trial: Trial) -> Seen:
    tripped = BreakerEvent(int(time.time()), "tripped", "of a test")
    BreakerEvents(trial.daemon.store).add(tripped)
    look(trial.daemon)
    said = "of a test" in trial.daemon.order_refused
    return {"given back": trial.is_given_back, "said": said}


def slurmctld_away(trial: Trial) -> Seen:
    """It ends, and so does the daemon before it is there again."""
    trial.cluster.stop_slurmctld()
    seen = {"said at a look": fails(trial.daemon, SchedulerError)}
    try:
        trial.daemon.end()
    except SchedulerError:
        seen["said at the end"] = True
    trial.cluster.start_slurmctld()
    trial.cluster.wait_for(lambda: trial.job in trial.site.factors(), "priorities")
    seen["raised so long"] = trial.is_raised
    trial.site.watch()
    return seen | {"given back": trial.is_given_back}


def slurmctld_restarted(trial: Trial) -> Seen:
    trial.cluster.restart_slurmctld()
    trial.cluster.wait_for(lambda: trial.job in trial.site.factors(), "priorities")
    seen = {"raised after it": trial.is_raised}
    trial.daemon.end()
    return seen | {"given back": trial.is_given_back}


def reconfigured(trial: Trial) -> Seen:
    trial.cluster.set_conf()
    seen = {"raised after it": trial.is_raised}
    trial.daemon.end()
    return seen | {"given back": trial.is_given_back}


def rights_lost(trial: Trial) -> Seen:
    """Changes come from alice, who is no operator."""
    as_alice = f"setpriv --reuid={FIRST_USER_UID} --regid={FIRST_USER_UID} --clear-groups"
    trial.site.off.touch()
    with trial.site.spoilt("scontrol", f"[ $# = 0 ] && exec {as_alice} $REAL"):
        seen = {"said at a look": fails(trial.daemon, SchedulerError)}
        try:
            trial.daemon.end()
        except SchedulerError as error:
            seen["said at the end"] = "denied" in str(error)
        seen["raised so long"] = trial.is_raised
    look(trial.daemon)
    return seen | {"given back": trial.is_given_back}


def store_not_writable(trial: Trial) -> Seen:
    """As on a full disk: what can't be written down is not done, and what was done is undone."""
    trial.daemon.store.rows("PRAGMA query_only = ON")
    trial.before[trial.site.submit()] = 0
    seen = {"said at a look": fails(trial.daemon, StateError)}
    seen["given back"] = trial.is_given_back
    trial.site.let_jobs_start(may=True)
    seen["said again"] = fails(trial.daemon, StateError)
    seen["none raised"] = trial.is_given_back
    trial.daemon.store.rows("PRAGMA query_only = OFF")
    look(trial.daemon)
    trial.daemon.end()
    return seen


def answers_are_torn(trial: Trial) -> Seen:
    """A look that is not told all does nothing, and the next one goes on."""
    answers = {
        "squeue": '$REAL "$@" | head -c 900; exit 0',
        "sprio": '$REAL "$@" | head -c 3; exit 0',
        "scontrol": '[ "$1" = show ] && { $REAL "$@" | head -c 300; exit 0; }',
        "sinfo": "exit 1",
    }
    seen = {}
    trial.site.off.touch()  # so that a look has something to give back
    for command, script in answers.items():
        with trial.site.spoilt(command, script):
            fails(trial.daemon, ForetimeError)
            factors = trial.site.factors()
            seen[command] = all(
                factors[job] in (was, max(factors.values())) for job, was in trial.before.items()
            )
    with trial.site.spoilt("scontrol", "[ $# = 0 ] && { head -n 1 | $REAL; exit 1; }"):
        fails(trial.daemon, ForetimeError)
    look(trial.daemon)
    return seen | {"given back": trial.is_given_back}


def nice_changed(trial: Trial) -> Seen:
    """By its user, while it is raised."""
    trial.update(trial.job, "Nice=100", "alice")
    trial.daemon.end()
    shown = trial.cluster.job(trial.job)
    return {"given back": trial.is_given_back, "kept": shown["Nice"] == "100"}


def priority_fixed(trial: Trial) -> Seen:
    """By an administrator; Slurm shows no site factor then, though the job has it."""
    trial.update(trial.job, "Priority=777")
    trial.daemon.end()
    seen = {"kept": trial.cluster.job(trial.job)["Priority"] == "777"}
    trial.cluster.checked(["scontrol", "release", trial.job])
    trial.cluster.wait_for(trial.own_priority, "its own priority")
    time.sleep(2)  # worked out anew each second or so
    return seen | {"given back": trial.is_given_back}


def held(trial: Trial) -> Seen:
    """By its user, who releases it once the daemon has ended."""
    trial.cluster.checked(["scontrol", "hold", trial.job], "alice")
    trial.daemon.end()
    shown = trial.cluster.job(trial.job)
    seen = {"held still": (shown["Priority"], shown["Reason"]) == ("0", "JobHeldUser")}
    trial.cluster.checked(["scontrol", "release", trial.job], "alice")
    trial.cluster.wait_for(lambda: trial.job in trial.site.factors(), "its priority")
    return seen | {"given back": trial.is_given_back}


def requeued(trial: Trial) -> Seen:
    """After it has started, and the daemon has looked: it waits with nothing of ours."""
    started(trial)
    look(trial.daemon)
    seen = {"while it runs": trial.own_priority()}
    trial.cluster.checked(["scontrol", "requeue", trial.job])
    trial.cluster.wait_for_state(trial.job, "PENDING")
    return seen | {"requeued": trial.own_priority()}


def requeued_before_the_look(trial: Trial) -> Seen:
    """And the daemon ends before it has looked."""
    started(trial)
    trial.cluster.checked(["scontrol", "requeue", trial.job])
    trial.cluster.wait_for_state(trial.job, "PENDING")
    seen = {"raised so long": not trial.own_priority()}
    trial.daemon.end()
    return seen | {"given back": trial.own_priority()}


def crashed_as_it_started(trial: Trial) -> Seen:
    started(trial)
    seen = {"raised so long": not trial.own_priority()}
    trial.site.kill()
    trial.site.watch()
    return seen | {"given back": trial.own_priority()}


def uninstalled_beside_the_daemon(trial: Trial) -> Seen:
    """It would raise jobs again, so Foretime stays disabled until it has been stopped."""
    conf = ("--hook-only", "--conf", str(trial.cluster.folder / "etc/slurm.conf"))
    trial.site.run("install", "slurm", "--yes", *conf)
    seen = {"raised so long": trial.is_raised}
    lock = DaemonLock(trial.site.settings)  # as of foretime serve
    try:
        said = trial.site.run("uninstall", "slurm", "--yes", *conf)
    finally:
        lock.release()
    seen |= {"given back": trial.is_given_back, "said": "the daemon runs" in said}
    trial.site.let_jobs_start(may=True)
    look(trial.daemon)
    return seen | {"not raised again": trial.is_given_back}


def started(trial: Trial) -> None:
    trial.site.let_jobs_start(may=True)
    trial.cluster.wait_for_state(trial.job, "RUNNING")


def fails(daemon: Sidecar, error: type[ForetimeError]) -> bool:
    """Have it look; whether it says that this failed."""
    try:
        daemon.look(int(time.time()))
    except error:
        return True
    return False


FAULTS: Mapping[str, Callable[[Trial], Seen]] = {
    fault.__name__: fault
    for fault in (
        ends,
        next_start,
        next_start_that_changes_no_order,
        watchdog,
        disabled_beside_the_daemon,
        disabled_where_the_daemon_is_dead,
        circuit_breaker,
        slurmctld_away,
        slurmctld_restarted,
        reconfigured,
        rights_lost,
        store_not_writable,
        answers_are_torn,
        nice_changed,
        priority_fixed,
        held,
        requeued,
        requeued_before_the_look,
        crashed_as_it_started,
        uninstalled_beside_the_daemon,
    )
}
# The rest is the same code, or is of jobs that start: here one of two hours waits for the head.
IN_ORDER = {
    "next_start_that_changes_no_order",
    "watchdog",
    "disabled_beside_the_daemon",
    "disabled_where_the_daemon_is_dead",
    "circuit_breaker",
    "slurmctld_away",
    "rights_lost",
    "store_not_writable",
    "priority_fixed",
    "held",
}
CASES = [("start-now", fault) for fault in FAULTS] + [("sjf", fault) for fault in sorted(IN_ORDER)]


def have_each(release: SlurmRelease, order: str) -> dict[tuple[str, str], Seen | str]:
    """Have each fault in turn; where one can't be tried, its error is told."""
    found: dict[tuple[str, str], Seen | str] = {}
    conf = {"PriorityType": "priority/multifactor"}
    with SlurmCluster(release, nodes=2, conf=conf) as cluster:
        leave_two_cpus_idle(cluster)
        site = RaisingSite(cluster, order)
        for case in CASES:
            if case[0] == order:
                try:
                    found[case] = FAULTS[case[1]](Trial(site))
                except Exception as error:  # noqa: BLE001  # the other faults go on
                    found[case] = f"{type(error).__name__}: {error}"
                cluster.run(["scancel", "-u", "alice"])
        site.kill()
    return found


def EXPERIMENT(release: SlurmRelease) -> dict[tuple[str, str], Seen | str]:  # noqa: N802
    with ThreadPoolExecutor() as side_by_side:
        runs = [side_by_side.submit(have_each, release, order) for order in ("start-now", "sjf")]
        return {case: seen for run in runs for case, seen in run.result().items()}


@pytest.mark.parametrize(("order", "fault"), CASES)
def test_all_is_given_back(
    experiment: dict[tuple[str, str], Seen | str], order: str, fault: str
) -> None:
    seen = experiment[order, fault]
    assert isinstance(seen, dict), seen
    assert seen, "nothing was seen"
    assert all(seen.values()), seen
