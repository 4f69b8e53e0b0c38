"""The daemon reads the site of a live Slurm, keeps it fresh, and forecasts by it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.answers.daemon_client import RefusedError, SiteDaemon
from foretime_sidecar.cli.application import app
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sidecar.site_import import kept_site
from foretime_sidecar.web.server import Daemon
from typer.testing import CliRunner

from tests.slurm.harness import slurm_conf
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.support.slurm.mock_site import running

PARTITIONS = ("main Nodes=n[1-4] Default=YES", "short Nodes=n[3-4] PriorityTier=10 MaxTime=30")
WAITS_S = 60


@pytest.fixture
def slurm(release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]) -> SlurmCluster:
    """Backfill looks at one job only: what stands behind a job that waits can't go before it."""
    cluster = new_cluster(
        release, slurm_partitions=PARTITIONS, scheduler_parameters={"bf_max_job_test": "1"}
    )
    cluster.add_accounting()
    return cluster


@pytest.fixture
def daemon(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Daemon]:
    """Three of four nodes are taken for an hour, and a job waits for all four."""
    slurm.wait_for_state(slurm.sbatch("-t", "60", "-N", "3", "--exclusive"), "RUNNING")
    slurm.sbatch("-t", "60", "-N", "4", "--exclusive", user="bob")
    monkeypatch.setattr(kept_site, "_AGAIN_S", 1.0)
    scheduler = {
        "commands_dir": str(slurm.commands),
        "attempts": 1,
        "poll_interval_s": 1,
        "longest_poll_interval_s": 1,
    }
    settings = Settings.model_validate(
        {
            "scheduler": {**scheduler, "history_days": 1},
            "store": {"path": str(tmp_path / "store")},
            "table": {"path": str(tmp_path / "table")},
            "api": {"listen": f"unix:{tmp_path}/s", "requests_per_minute": 10_000},
            "forecast": {"cpu_percent": 100},
        }
    )
    (tmp_path / "foretime.toml").write_text(to_toml(settings))
    daemon = Daemon(settings)
    with running(daemon):
        yield daemon


def answered(daemon: Daemon, path: str, until: Callable[[Any], object], **values: str) -> Any:
    """Ask until the answer is the one that is waited for; gives the last.

    While Slurm is reconfigured, its nodes may be unknown for a moment, and no question is answered.
    """
    deadline = time.monotonic() + WAITS_S
    while True:
        try:
            answer = SiteDaemon(daemon.address).ask(path, values)
        except RefusedError as refused:
            if "no node of a partition" not in str(refused) or time.monotonic() > deadline:
                raise
        else:
            if until(answer) or time.monotonic() > deadline:
                return answer
        time.sleep(0.5)


def of_two_tasks(daemon: Daemon, until: Callable[[Any], object]) -> Any:
    """Ask when a job would start that has room beside the one that waits."""
    return answered(daemon, "/v1/forecast", until, processors="2", time="10", user="root")


def is_by_site(answer: Any) -> bool:
    return any("this site's Slurm" in text for text in answer["assumptions"])


def test_it_is_read_kept_fresh_and_forecast_by(
    slurm: SlurmCluster, daemon: Daemon, tmp_path: Path
) -> None:
    site = answered(daemon, "/healthz", lambda told: told["site"]["read_at"])["site"]
    assert (site["version"], site["slurm_partitions"]) == (slurm.release.name, 2)
    assert (site["problem"], site["source"]) == ("", "Slurm")

    answer = of_two_tasks(daemon, is_by_site)
    release = f"the queue is simulated as this site's Slurm {slurm.release.name} schedules, by its"
    assert answer["assumptions"][0].startswith(release)
    # A generic backfilling would start it at once; this Slurm does not.
    assert answer["likely_wait_s"] > 60
    small = slurm.sbatch("-t", "10", "-n", "2")
    time.sleep(15)
    assert slurm.job(small)["JobState"] == "PENDING"

    shown = CliRunner().invoke(app, ["status", "--settings", str(tmp_path / "foretime.toml")])
    assert f"\nsite     Slurm: release {slurm.release.name}, 2 partitions, read " in shown.output

    slurm.conf.scheduler_parameters["bf_max_job_test"] = "100"
    slurm_conf.write_configuration(slurm.folder, slurm.conf, slurm.release)
    slurm.scontrol("reconfigure")
    slurm.wait_for_state(small, "RUNNING")
    answer = of_two_tasks(daemon, lambda told: is_by_site(told) and told["likely_wait_s"] == 0)
    assert answer["likely_wait_s"] == 0, json.dumps(answer["assumptions"])
    assert answer["assumptions"][0].startswith(release)
    # The partition of the higher tier is the site's, too.
    short = answered(
        daemon, "/v1/forecast", is_by_site, processors="2", time="10", partition="short"
    )
    assert short["partition"] == "short"


def test_the_last_good_one_stays_while_slurm_is_away(slurm: SlurmCluster, daemon: Daemon) -> None:
    answered(daemon, "/healthz", lambda told: told["site"]["read_at"])
    of_two_tasks(daemon, is_by_site)
    site = daemon.sidecar.site
    assert site is not None
    slurm.stop_slurmctld()
    try:
        site.looked("something has changed")
        deadline = time.monotonic() + WAITS_S
        while not site.last_failure and time.monotonic() < deadline:
            site.refresh()
            time.sleep(0.5)
        assert "scontrol show config failed" in site.last_failure
        assert site.site is not None
        assert site.standing.problem == site.last_failure
    finally:
        slurm.start_slurmctld()
    told = answered(daemon, "/healthz", lambda told: not told["site"]["problem"])
    assert told["site"]["problem"] == ""
