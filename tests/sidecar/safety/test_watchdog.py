"""The watchdog: jobs are given back what their users asked for when the daemon is silent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError, StateError
from foretime_sidecar.cli.application import app
from foretime_sidecar.clients.client import JobChange, QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.safety.heartbeat import beat, heartbeat_path, silent_for_s
from foretime_sidecar.safety.limit_repairs import changes_of
from foretime_sidecar.safety.watchdog import WatchdogResult, watch
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import parse_settings
from foretime_sidecar.store.store import Store
from foretime_sim.mocks.slurm.hook import Fields, HookReply
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Correction, Policy
from typer.testing import CliRunner

START = 1_700_000_000
AFTER_S = 900


class Halving:
    """A hook that plans half of what was asked for; on `lowering`, as rewrite-limit does."""

    lowering = False

    def submit(
        self, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        asked = int(job["time_limit"])
        if job["user_name"] == "dave":
            return HookReply(0, {}, [])
        if self.lowering:
            note = f"foretime:treq={asked},tsched={asked // 2},generation=1"
            return HookReply(0, {"time_limit": asked // 2, "admin_comment": note}, [])
        note = f"foretime:treq={asked},tmin={asked // 2},generation=1,own=5 site's"
        return HookReply(0, {"time_min": asked // 2, "admin_comment": note}, [])

    def modify(
        self, request: Fields, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        return HookReply(0, {}, [])


class Cluster:
    """A job that runs and two that wait, one with a time_min of its user's own."""

    def __init__(self, folder: Path, *, lowering: bool = False) -> None:
        hook = Halving()
        hook.lowering = lowering
        self.slurm = MockSlurm(SlurmSetup(8), Policy(correction=Correction.SLURM), hook, START)
        for user in ("ann", "ann", "dave"):
            own = 600 if user == "dave" else None
            self.slurm.submit(Submission(user, "p", None, 8, 3600, 3000, time_min=own))
        self.slurm.advance(START + 60)
        self.settings = Settings.model_validate({"table": {"path": str(folder / "table")}})
        self.table = Path(self.settings.table.path)
        self.table.write_text("a table")
        self.alive = heartbeat_path(self.settings.table)
        self.asked = 0

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        self.asked += 1
        return self.slurm.run(argv, stdin)

    def watch(self, silent_s: float) -> WatchdogResult:
        return watch(self.settings, SlurmCommands(self), self.alive.stat().st_mtime + silent_s)

    def waiting(self) -> list[tuple[int, int | None]]:
        jobs = SlurmCommands(self.slurm.run).queue().jobs
        return [
            (job.request.requested_time, job.time_min)
            for job in jobs
            if job.state is QueueState.PENDING
        ]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    cluster = Cluster(tmp_path)
    beat(cluster.alive)
    return cluster


def test_while_the_daemon_lives_nothing_is_touched(cluster: Cluster) -> None:
    for silent_s in (60, AFTER_S):
        result = cluster.watch(silent_s)
        assert (result.alive, result.silent_s, result.repairs) == (True, silent_s, ())
        assert (cluster.asked > 0) is (silent_s > 60), "a look that has just been is enough"
    assert cluster.table.exists()
    assert cluster.waiting() == [(3600, 1800), (3600, 600)]


def test_a_failed_prolog_does_not_wait_for_the_daemon_to_count_as_dead(tmp_path: Path) -> None:
    """The watchdog's minute is less than any t_sched; the time until it takes over is not."""
    cluster = Cluster(tmp_path, lowering=True)
    cluster.slurm.run(["scontrol"], "update JobId=1 TimeLimit=30\n")
    beat(cluster.alive)
    assert cluster.watch(60).repairs == ()
    result = cluster.watch(61)
    assert changes_of(result.repairs) == [JobChange("1", time_limit=3600)]
    assert (result.alive, cluster.table.exists()) == (True, True)


def test_a_pause_that_was_announced_is_no_missed_look(tmp_path: Path) -> None:
    """Else it would ask a busy slurmctld each minute, just as the daemon asks it less."""
    cluster = Cluster(tmp_path, lowering=True)
    cluster.slurm.run(["scontrol"], "update JobId=1 TimeLimit=30\n")
    beat(cluster.alive, 100)
    assert cluster.watch(100).repairs == ()
    assert cluster.asked == 0
    assert len(cluster.watch(101).repairs) == 1
    longest_s = cluster.settings.scheduler.longest_poll_interval_s
    for nonsense_s in (longest_s + 1, 10**9):
        beat(cluster.alive, nonsense_s)
        cluster.slurm.run(["scontrol"], "update JobId=1 TimeLimit=30\n")
        assert len(cluster.watch(longest_s + 1).repairs) == 1, "never longer than the settings say"


def test_a_lost_soft_limit_does_not_wait_either(cluster: Cluster) -> None:
    setup = SlurmSetup(8, soft_limit_parameter=False)
    lost = MockSlurm(setup, Policy(correction=Correction.SLURM), Halving(), START)
    for _ in range(2):
        lost.submit(Submission("ann", "p", None, 8, 3600, 3000))
    lost.advance(START + 60)
    cluster.slurm = lost
    result = cluster.watch(61)
    assert JobChange("2", time_min=300) in changes_of(result.repairs)
    assert (result.alive, cluster.table.exists()) == (True, True)


@pytest.mark.parametrize("how", ["silent", "never", "future"])
def test_a_silent_daemons_jobs_get_back_what_was_asked_for(how: str, cluster: Cluster) -> None:
    if how == "never":
        cluster.alive.unlink()
        result = watch(cluster.settings, SlurmCommands(cluster), START)
    else:
        result = cluster.watch(AFTER_S + 1 if how == "silent" else -2)
    assert not result.alive
    assert result.withdrew_table
    assert not cluster.table.exists()
    assert changes_of(result.repairs) == [JobChange("2", time_min=300)]
    assert cluster.waiting() == [(3600, 300), (3600, 600)], "a user's own --time-min is as it was"
    again = watch(cluster.settings, SlurmCommands(cluster), START)
    assert (again.withdrew_table, again.repairs) == (False, ())


def test_lowered_limits_are_given_back(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, lowering=True)
    cluster.slurm.run(["scontrol"], "update JobId=1 TimeLimit=30\n")  # the prolog had failed
    result = watch(cluster.settings, SlurmCommands(cluster), START)
    changes = [JobChange(job_id, time_limit=3600) for job_id in ("1", "2")]
    assert changes_of(result.repairs) == changes


def test_the_jobs_come_first(cluster: Cluster) -> None:
    cluster.table.unlink()
    cluster.table.mkdir()
    with pytest.raises(StateError, match="remove it by hand"):
        cluster.watch(AFTER_S + 1)
    assert cluster.waiting() == [(3600, 300), (3600, 600)]


def test_the_table_goes_even_if_slurm_does_not_answer(cluster: Cluster) -> None:
    class Silent:
        def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
            raise SchedulerError("squeue failed; check slurmctld")

    with pytest.raises(SchedulerError):
        watch(cluster.settings, SlurmCommands(Silent()), START)
    assert not cluster.table.exists()


def test_a_sign_of_life_tells_how_long_the_daemon_is_silent(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    assert silent_for_s(path, 5) is None
    beat(path)
    os.utime(path, (100, 100))
    assert silent_for_s(path, 107.5) == 7.5
    assert silent_for_s(path, 50) is None
    beat(path)
    assert path.stat().st_mtime > 100
    with pytest.raises(StateError, match="foretime watchdog will take the daemon for dead"):
        beat(tmp_path / "none" / "alive")


def test_the_command_tells_whether_the_daemon_is_silent(tmp_path: Path, repository: Path) -> None:
    recorded = repository / "tests/assets/slurm/22.05"
    for name, body in {
        "squeue": f"cat {recorded}/squeue.json",
        "sinfo": f"cat {recorded}/sinfo.txt",
        "scontrol": f"cat {recorded}/scontrol-config.txt",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    settings = tmp_path / "foretime.toml"
    settings.write_text(
        f'[scheduler]\ncommands_dir = "{tmp_path}"\n[table]\npath = "{tmp_path}/table"\n'
    )
    argv = ["watchdog", "--settings", str(settings)]
    shown = CliRunner().invoke(app, argv)
    assert shown.exit_code == 0
    assert "The daemon is silent: it never gave a sign of life." in shown.stdout
    beat(tmp_path / "table.alive")
    answer = json.loads(CliRunner().invoke(app, [*argv, "--json"]).stdout)
    assert (answer["alive"], answer["repairs"]) == (True, [])
    settings.write_text('[scheduler]\nkind = "pbs"\n[hook]\nmechanism = "pbs-soft-walltime"\n')
    failed = CliRunner().invoke(app, argv)
    assert isinstance(failed.exception, InputError)
    assert "nothing to watch" in str(failed.exception)


def test_it_waits_longer_than_a_poll_takes() -> None:
    with pytest.raises(InputError, match=r"watchdog_after_s = 100: .* at least"):
        parse_settings("[table]\nwatchdog_after_s = 100\n")


def test_no_lowered_job_ends_before_it_comes() -> None:
    text = "[hook]\nmechanism = 'rewrite-limit'\n[accuracy]\nminimum_scheduled_time_s = {}\n"
    with pytest.raises(InputError, match=r"settings:4: .* must be at least 180, two minutes more"):
        parse_settings(text.format(179))
    for enough in (text.format(180), "[hook]\nmechanism = 'rewrite-limit'\n"):
        assert parse_settings(enough).hook.mechanism == "rewrite-limit"
    with pytest.raises(InputError, match="must be at least 1020"):
        parse_settings(
            "[scheduler]\npoll_interval_s = 900\nlongest_poll_interval_s = 900\n"
            "[table]\nwatchdog_after_s = 1800\n" + text.format(1019)
        )


def test_site_factors_of_a_silent_daemon_are_taken_away(tmp_path: Path) -> None:
    """What somebody has set since stays, and a store that can't be read stops nothing."""
    cluster = Cluster(tmp_path)
    cluster.settings = Settings.model_validate(
        {"table": {"path": str(cluster.table)}, "store": {"path": str(tmp_path / "store")}}
    )
    beat(cluster.alive)
    store = Store(tmp_path / "store")
    store.note_site_factors({"2": 1001, "3": 1002, "4": 1003, "9": 5}, {"4": -20})
    store.close()
    cluster.slurm.run(["scontrol"], "update JobId=2 SiteFactor=1001\nupdate JobId=3 SiteFactor=7\n")
    assert cluster.watch(60).site_factors == 0, "the daemon may still live"
    assert cluster.watch(AFTER_S + 1).site_factors == 1
    assert dict(SlurmCommands(cluster.slurm.run).site_factors()) == {"2": 0, "3": 7}
    assert cluster.watch(AFTER_S + 1).site_factors == 0
    (tmp_path / "store").write_bytes(b"noise")
    assert cluster.watch(AFTER_S + 1).site_factors == 0
