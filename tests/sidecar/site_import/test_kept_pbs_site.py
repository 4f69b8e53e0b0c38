"""The site of a live PBS kept fresh: commands and files, each of which may go wrong."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.schedulers.choice import kept_site_of
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.site_import.kept_site import KeptSite, schedules_as
from foretime_sidecar.site_import.site_sources import SiteFile, live_pbs
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsSite, ShareGroup
from foretime_sim.sites.site_file import format_site
from foretime_sim.sites.slurm.site import SlurmSite

from tests.support.pbs.usage_files import DECAYED_AT, usage_file

SERVER = """\
create queue workq
set queue workq queue_type = Execution
set queue workq enabled = True
set queue workq started = True
create queue high
set queue high queue_type = Execution
set queue high Priority = 100
set server default_queue = workq
set server scheduler_iteration = 600
"""
SCHED_CONFIG = (Path(__file__).parents[2] / "assets/pbs/runs/sched_config").read_text()


class LivePbs:
    """Answers the commands of an import; what is in ``broken`` fails.

    Attributes
    ----------
    asked
        Commands so far.
    now
        Seconds.
    """

    def __init__(self, sched_priv: Path) -> None:
        self.folder = sched_priv
        self.broken: set[str] = set()
        self.asked: list[str] = []
        self.now = 1_000.0
        (sched_priv / "sched_config").write_text(SCHED_CONFIG)
        self.source = live_pbs(self.run)
        self.kept = KeptSite(self.source, 900, lambda: 5_000 + self.now, lambda: self.now)

    def run(self, argv: Sequence[str]) -> str:
        words = " ".join(argv)
        self.asked.append(words)
        if any(word in words for word in self.broken):
            raise SchedulerError(f"{words} failed")
        if "print sched" in words:
            return f"set sched sched_priv = {self.folder}\n"
        if "print server" in words:
            return SERVER
        if "pbsnodes" in words:
            node = {"state": "free", "resources_available": {"ncpus": 8}}
            return json.dumps({"timestamp": 1, "pbs_version": "23.06.06", "nodes": {"n1": node}})
        return ""

    def after(self, seconds: float) -> int:
        """Let time pass and the keeper work; give how many commands it ran."""
        self.now += seconds
        before = len(self.asked)
        assert not self.kept.refresh()
        return len(self.asked) - before


@pytest.fixture
def pbs(tmp_path: Path) -> LivePbs:
    return LivePbs(tmp_path)


def test_it_is_read_at_the_start_at_intervals_and_after_a_change(pbs: LivePbs) -> None:
    assert pbs.after(0) == 5
    standing = pbs.kept.standing
    assert (standing.source, standing.version, standing.queues) == ("PBS", "23.06.06", 2)
    assert (standing.slurm_partitions, standing.read_at, standing.why_not) == (0, 6_000, "")
    assert pbs.kept.read_at == 6_000
    site = pbs.kept.site
    assert isinstance(site, PbsSite)
    assert schedules_as(site) == "this site's PBS 23.06.06 schedules, by its order and limits"
    pbs.kept.looked("as it was")
    assert pbs.after(61) == 5
    assert [pbs.after(60) for _ in range(14)] == [0] * 14
    assert pbs.after(60) == 5


def test_usage_is_read_and_that_of_who_has_no_line_is_kept(pbs: LivePbs) -> None:
    (pbs.folder / "resource_group").write_text("staff 60 root 40\nann 61 staff 5\nbob 62 staff 5\n")
    file = pbs.folder / "usage"
    file.write_bytes(usage_file(ann=120.0, carl=30.4, dora=7.0))
    os.utime(file, (5_500.0, 5_700.9))
    pbs.after(0)
    site = pbs.kept.site
    assert isinstance(site, PbsSite)
    assert site.share_groups == (
        ShareGroup("staff", "root", 40, 121.0),
        ShareGroup("ann", "staff", 5, 120.0),
        ShareGroup("bob", "staff", 5, 1.0),
        ShareGroup("carl", "unknown", 1, 30.0),
        ShareGroup("dora", "unknown", 1, 7.0),
    )
    assert site.unknown_usage == 38.0
    assert (site.usage_at, site.decayed_at) == (5_700, DECAYED_AT)
    # pbs_sched writes none before it has charged anybody.
    file.unlink()
    pbs.after(901)
    assert isinstance(pbs.kept.site, PbsSite)
    assert (pbs.kept.site.usage_at, pbs.kept.site.decayed_at) == (None, None)


def test_a_usage_file_that_is_being_written_is_waited_for(
    pbs: LivePbs, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole = pbs.folder / "usage", usage_file(carl=30.0)
    path.write_bytes(whole[:-3])
    monkeypatch.setattr(time, "sleep", lambda _: path.write_bytes(whole))
    pbs.after(0)
    assert isinstance(pbs.kept.site, PbsSite)
    assert pbs.kept.site.share_groups == (ShareGroup("carl", "unknown", 1, 30.0),)


@pytest.mark.parametrize("content", [b"x" * 40, usage_file(a=1.5)[:-1], usage_file()[::-1]])
def test_what_is_no_usage_file_is_refused(
    pbs: LivePbs, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    (pbs.folder / "usage").write_bytes(content)
    pbs.after(0)
    assert pbs.kept.site is None
    assert f"{pbs.folder}/usage: is " in pbs.kept.last_failure


@pytest.mark.parametrize("broken", ["print server", "pbsnodes", "pbs_rstat", "sched_config"])
def test_the_last_good_one_stays_whatever_fails(pbs: LivePbs, broken: str) -> None:
    pbs.after(0)
    good = pbs.kept.site
    assert good is not None
    pbs.broken.add(broken)
    if broken == "sched_config":
        (pbs.folder / broken).unlink()
    pbs.after(900)
    assert pbs.kept.site is good
    assert broken in pbs.kept.last_failure
    assert pbs.kept.standing.problem == pbs.kept.last_failure


def test_what_can_not_be_simulated_is_refused_with_the_reason(pbs: LivePbs) -> None:
    lines = SCHED_CONFIG.replace("smp_cluster_dist: pack", "smp_cluster_dist: round_robin")
    assert lines != SCHED_CONFIG
    (pbs.folder / "sched_config").write_text(lines)
    pbs.after(0)
    assert pbs.kept.site is None
    assert "smp_cluster_dist round_robin is not modelled" in pbs.kept.standing.why_not


def test_a_file_of_the_other_scheduler_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    site = PbsSite((PbsHost("n1", {"ncpus": 8}),), (PbsQueue("workq"),))
    path.write_text(format_site(site))
    kept = KeptSite(SiteFile(str(path), "pbs"), 900)
    kept.refresh()
    assert kept.site == site
    assert kept.read_at is None, "a file is as it is at any time"
    path.write_text(format_site(SlurmSite(Machine.flat(8))))
    kept = KeptSite(SiteFile(str(path), "pbs"), 900)
    kept.refresh()
    assert kept.standing.problem.endswith(
        "is a site under Slurm, and the daemon's scheduler is PBS: give one under PBS"
    )


def test_a_daemon_of_pbs_keeps_its_site_unless_it_is_told_not_to() -> None:
    settings = {"scheduler": {"kind": "pbs"}, "hook": {"mechanism": "pbs-soft-walltime"}}
    kept = kept_site_of(Settings.model_validate(settings))
    assert kept is not None
    assert kept.standing.source == "PBS"
    policy = {**settings, "forecast": {"run_as": "policy"}}
    assert kept_site_of(Settings.model_validate(policy)) is None
    assert kept_site_of(Settings.model_validate(settings), asks=False) is None
