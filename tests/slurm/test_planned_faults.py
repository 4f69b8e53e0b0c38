"""Jobs that are planned short get back what their users asked for, whatever fails.

By the mechanism of each release: TimeMin of a native soft limit, else TimeLimit, lowered until the
job starts. What is raised to start at once has `tests.slurm.ordering.test_raised_faults`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.safety.heartbeat import beat, heartbeat_path
from foretime_sidecar.safety.planning_switch import give_back_on_slurm, switch_off
from foretime_sidecar.safety.watchdog import WatchdogResult, watch
from foretime_sidecar.store.breaker_events import BreakerEvent, BreakerEvents
from foretime_sidecar.table.table import Mode

from tests.slurm.harness.foretime_site import ASKED_MIN, PLANNED, USED_MIN, ForetimeSite
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

Seen = dict[str, bool]
ASKED, SHORT = f"00:{ASKED_MIN}:00", f"00:{USED_MIN:02}:00"


class Trial:
    """One fault: a job that waits, planned short, behind one that has the whole machine."""

    def __init__(self, cluster: SlurmCluster) -> None:
        self.cluster = cluster
        self.start("enforce")
        self.off = Path(self.site.settings.hook.disable_file)
        self.off.unlink(missing_ok=True)
        self.site.publish()
        assert self.site.table().settings.mode is Mode.ENFORCE
        self.job = cluster.sbatch("-n1", f"-t{ASKED_MIN}")
        self.site.look()
        assert self.is_short, cluster.job(self.job)

    def start(self, mode: str) -> None:
        """Start a daemon on the store of the last one."""
        mechanism = "slurm-soft-limit" if self.cluster.release.soft_limit else "rewrite-limit"
        self.site = ForetimeSite(self.cluster, mechanism=mechanism, mode=mode)

    def times(self) -> tuple[str, str]:
        job = self.cluster.job(self.job)
        return job["TimeLimit"], job["TimeMin"]

    @property
    def is_short(self) -> bool:
        native = self.cluster.release.soft_limit
        return self.times() == ((ASKED, SHORT) if native else (SHORT, "N/A"))

    @property
    def is_as_asked(self) -> bool:
        return self.times() == (ASKED, "N/A")

    def watch(self) -> WatchdogResult:
        return watch(self.site.settings, self.site.client, time.time())

    def disable(self) -> list[str]:
        switch_off(self.off)
        controller = SlurmController(str(self.cluster.commands))
        return give_back_on_slurm(controller, Path(self.site.settings.store.path))


def next_start_that_plans_none(trial: Trial) -> Seen:
    trial.site.store.close()
    trial.start("observe")
    trial.site.look()
    return {"as asked": trial.is_as_asked}


def watchdog(trial: Trial) -> Seen:
    """It withdraws the table, too, so that the next job goes as it is."""
    alive = heartbeat_path(trial.site.settings.table)
    beat(alive)
    seen = {"left to a daemon that lives": trial.watch().alive and trial.is_short}
    alive.unlink()
    seen["table withdrawn"] = trial.watch().withdrew_table
    seen["as asked"] = trial.is_as_asked
    trial.job = trial.cluster.sbatch("-n1", f"-t{ASKED_MIN}")
    return seen | {"and the next": trial.is_as_asked}


def disabled_beside_the_daemon(trial: Trial) -> Seen:
    trial.off.touch()
    trial.site.look()
    seen = {"as asked": trial.is_as_asked}
    trial.site.look()
    return seen | {"and stays so": trial.is_as_asked}


def disabled_where_the_daemon_is_dead(trial: Trial) -> Seen:
    return {"said": trial.job in trial.disable(), "as asked": trial.is_as_asked}


def circuit_breaker(trial: Trial) -> Seen:
    tripped = BreakerEvent(int(time.time()), "tripped", "of a test")
    BreakerEvents(trial.site.store).add(tripped)
    trial.site.look()
    seen = {"as asked": trial.is_as_asked}
    BreakerEvents(trial.site.store).add(BreakerEvent(int(time.time()), "reset", ""))
    trial.site.look()
    return seen | {"planned again": trial.is_short}


def slurmctld_away(trial: Trial) -> Seen:
    trial.cluster.stop_slurmctld()
    try:
        trial.site.look()
    except SchedulerError:
        seen = {"said at a look": True}
    trial.cluster.start_slurmctld()
    seen["short so long"] = trial.is_short
    trial.watch()
    return seen | {"as asked": trial.is_as_asked}


def slurmctld_restarted(trial: Trial) -> Seen:
    trial.cluster.restart_slurmctld()
    seen = {"short after it": trial.is_short}
    trial.disable()
    return seen | {"as asked": trial.is_as_asked}


def reconfigured(trial: Trial) -> Seen:
    trial.cluster.set_conf()
    seen = {"short after it": trial.is_short}
    trial.disable()
    return seen | {"as asked": trial.is_as_asked}


def nice_changed(trial: Trial) -> Seen:
    """By its user."""
    trial.cluster.checked(["scontrol", "update", f"JobId={trial.job}", "Nice=100"], "alice")
    trial.disable()
    kept = trial.cluster.job(trial.job)["Nice"] == "100"
    return {"as asked": trial.is_as_asked, "kept": kept}


def held(trial: Trial) -> Seen:
    """By its user."""
    trial.cluster.checked(["scontrol", "hold", trial.job], "alice")
    trial.disable()
    kept = trial.cluster.job(trial.job)["Priority"] == "0"
    return {"as asked": trial.is_as_asked, "held still": kept}


FAULTS: Mapping[str, Callable[[Trial], Seen]] = {
    fault.__name__: fault
    for fault in (
        next_start_that_plans_none,
        watchdog,
        disabled_beside_the_daemon,
        disabled_where_the_daemon_is_dead,
        circuit_breaker,
        slurmctld_away,
        slurmctld_restarted,
        reconfigured,
        nice_changed,
        held,
    )
}


def EXPERIMENT(release: SlurmRelease) -> dict[str, Seen | str]:  # noqa: N802
    found: dict[str, Seen | str] = {}
    with SlurmCluster(release, nodes=1) as cluster:
        cluster.install_hook(PLANNED)
        full = cluster.sbatch("--exclusive", "-t60", user="bob")
        cluster.wait_for_state(full, "RUNNING")
        for name, fault in FAULTS.items():
            try:
                trial = Trial(cluster)
                found[name] = fault(trial)
                trial.site.store.close()
            except Exception as error:  # noqa: BLE001  # the other faults go on
                found[name] = f"{type(error).__name__}: {error}"
            cluster.run(["scancel", "-u", "alice"])
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_gets_back_what_was_asked_for(experiment: dict[str, Seen | str], fault: str) -> None:
    seen = experiment[fault]
    assert isinstance(seen, dict), seen
    assert seen, "nothing was seen"
    assert all(seen.values()), seen
