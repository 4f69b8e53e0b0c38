"""What sacct says of each job's QOS decides under a site that weighs and limits it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.logs.log_files import read_log

Run = Callable[..., tuple[int, str, str]]
SITE = """\
version = "26.05"
[slurm]
AccountingStorageEnforce = ["associations", "limits", "qos"]
[priority]
PriorityType = "priority/multifactor"
PriorityWeightQOS = 1000
[node_groups.cpu]
nodes = 1
cpus = 4
[partitions.main]
node_groups = ["cpu"]
Default = true
[qos.normal]
[qos.high]
Priority = 10
[accounts.root]
QOS = ["normal", "high"]
[accounts.physics]
[[associations]]
User = "ann"
Account = "physics"
QOS = ["normal", "high"]
"""
FIELDS = "JobIDRaw|User|Account|Partition|QOS|Submit|ElapsedRaw|ReqCPUS|TimelimitRaw|State"
QOS = ("normal", "normal", "high", "silver")
"""Of four jobs that each need the whole machine for ten minutes, a minute apart."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{number}|ann|physics|main|{qos}|2026-01-01T00:0{number}:00|600|4|20|COMPLETED"
        for number, qos in enumerate(QOS, start=1)
    ]
    Path("jobs.txt").write_text("\n".join([FIELDS, *rows, ""]))
    Path("site.toml").write_text(SITE)
    Path("without.toml").write_text(SITE.replace("[qos.high]\nPriority = 10\n", "[qos.high]\n"))


def starts(path: str) -> list[int]:
    log = read_log(Path(path))
    order = log.job_id.argsort()
    return [int(time) for time in (log.submit_time + log.wait)[order]]


@pytest.mark.parametrize("more", [(), ("--estimator", "user")], ids=["plain", "estimated"])
def test_simulate_weighs_it(run: Run, more: tuple[str, ...]) -> None:
    options = ("--warm-up", "0", *more)
    code, out, err = run(
        "simulate", "jobs.txt", "--site", "site.toml", *options, "--swf-out", "out.swf"
    )
    assert (code, err) == (0, "")
    first, second, high, unknown = starts("out.swf")
    assert first < high < second < unknown
    said = " ".join(out.split())
    assert "1 job of QOS that the site does not name (silver) run under their default." in said


def test_without_a_weight_the_first_submitted_is_first(run: Run) -> None:
    code, _, _ = run(
        "simulate", "jobs.txt", "--site", "without.toml", "--warm-up", "0", "--swf-out", "out.swf"
    )
    assert code == 0
    assert starts("out.swf") == sorted(starts("out.swf"))


def test_a_replays_two_runs_both_weigh_it(run: Run) -> None:
    replayed = ("--warm-up", "0", "--queue-order", "none", "--swf-out", "out.swf", "--json")
    code, out, _ = run("replay", "jobs.txt", "--site", "site.toml", *replayed)
    assert code == 0
    found = json.loads(out)["metrics"]["wait_mean_s"]
    assert found["baseline"] == found["adjusted"]
    first, second, high, unknown = starts("out.swf")
    assert first < high < second < unknown


def test_pbs_has_no_use_for_it(run: Run) -> None:
    options = ("--processors", "4", "--warm-up", "0", "--json")
    code, _, err = run("replay", "jobs.txt", "--scheduler", "pbs", *options)
    assert (code, err) == (0, "")
