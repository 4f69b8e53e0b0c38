"""``foretime simulate`` and ``replay`` of a site's scheduler: by --site and by a policy file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.site_file import format_site
from foretime_sim.sites.slurm.site import SlurmSite

Run = Callable[..., tuple[int, str, str]]
SITE = """\
version = "26.05"
{more}
[node_groups.cpu]
nodes = {nodes}
cpus = 4
[partitions.main]
node_groups = ["cpu"]
Default = true
"""
NODES = """\
[node_groups.cpu]
nodes = 64
cpus = 4
[slurm_partitions.main]
node_groups = ["cpu"]
"""
PBS = """\
scheduler = "pbs"
[queues.workq]
[[hosts]]
name = "n01"
last = "n64"
resources_available = { ncpus = 4 }
"""
PREEMPTING = '[slurm]\nPreemptType = "preempt/partition_prio"\nPreemptMode = "REQUEUE"'
MADE = ("--generate", "lublin2003", "--jobs", "60")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sites, one that is refused, and policies that name them, in the current folder."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "site.toml": SITE.format(more="", nodes=64),
        "more.toml": SITE.format(more="", nodes=96),
        "preempting.toml": SITE.format(more=PREEMPTING, nodes=64),
        "pbs.toml": PBS,
        "prime.toml": PBS + "[sched_config]\nbackfill_prime = true\n",
        "policy.toml": 'site = "site.toml"\n',
        "refused.toml": 'site = "preempting.toml"\n',
        "empty.toml": 'site = ""\n',
        "nodes.toml": NODES,
        "old.toml": SITE.format(more="", nodes=64).replace("26.05", "19.05"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)


@pytest.fixture
def answer(run: Run) -> Callable[..., dict[str, Any]]:
    def call(*options: str) -> dict[str, Any]:
        code, out, err = run(*options, "--json")
        assert (code, err) == (0, "")
        document: dict[str, Any] = json.loads(out)
        return document

    return call


def test_sites_are_compared_on_the_same_jobs(answer: Callable[..., dict[str, Any]]) -> None:
    found = answer("simulate", *MADE, "--site", "site.toml,more.toml")
    assert [policy["name"] for policy in found["policies"]] == ["site", "more"]
    notes = [note for note in found["workload"]["notes"] if "Scheduled as by Slurm" in note]
    assert len(notes) == 1


def test_a_replay_takes_a_site_from_a_policy_file(answer: Callable[..., dict[str, Any]]) -> None:
    common = ("replay", *MADE, "--warm-up", "0")
    by_option = answer(*common, "--site", "site.toml")
    for options in ((), ("--scheduler", "slurm"), ("--scheduler", "policy")):
        by_file = answer(*common, "--policy", "policy.toml", *options)
        assert by_file["options"]["scheduler"] == "slurm (policy.toml)"
        assert by_file["metrics"] == by_option["metrics"]


def test_a_replay_models_slurm_with_its_defaults_unless_told(
    answer: Callable[..., dict[str, Any]],
) -> None:
    common = ("replay", *MADE, "--warm-up", "0")
    found = answer(*common)
    assert found["options"]["scheduler"] == "slurm"
    notes = " ".join(found["workload"]["notes"])
    assert "Scheduled as by Slurm 26.05: first submitted first, backfill every 30 s." in notes
    assert "bf_interval=30, bf_resolution=60, bf_window=1440, bf_max_job_test=500" in notes
    assert "A site's own partitions, nodes, priorities, fair share and limits are left out" in notes
    assert found["metrics"] == answer(*common, "--scheduler", "slurm")["metrics"]
    Path("pool.toml").write_text(format_site(SlurmSite(Machine.flat(256))))
    assert found["metrics"] == answer(*common, "--site", "pool.toml")["metrics"]


@pytest.mark.parametrize(
    ("options", "scheduler"),
    [
        ("--mechanism pbs-soft-walltime", "pbs"),
        ("--mechanism rewrite-limit", "slurm"),
        ("--machine nodes.toml", "slurm"),
        ("--guard off", None),
        ("--depth 2", None),
        ("--policy pbs-strict", None),
        ("--scheduler policy --mechanism pbs-soft-walltime", None),
    ],
)
def test_other_options_choose_the_scheduler(
    answer: Callable[..., dict[str, Any]], options: str, scheduler: str | None
) -> None:
    found = answer("replay", *MADE, "--warm-up", "0", *options.split())
    assert found["options"].get("scheduler") == scheduler
    assert ("guard" in found["options"]) == (scheduler is None)
    notes = " ".join(found["workload"]["notes"])
    assert ("Scheduled by a policy for research" in notes) == (scheduler is None)


def test_another_release_is_said_to_go_by_the_nearest(
    run: Run, answer: Callable[..., dict[str, Any]]
) -> None:
    said = "Slurm 19.05 is not modelled, but 22.05 to 26.05: the site goes by the rules of 22.05."
    for command in ("check", "show"):
        code, out, _ = run("site", command, "old.toml")
        assert code == 0
        assert said in " ".join(out.split())
    assert said in answer("simulate", *MADE, "--site", "old.toml")["workload"]["notes"]


def test_a_site_has_no_settings_of_backfilling(answer: Callable[..., dict[str, Any]]) -> None:
    found = answer("simulate", *MADE, "--site", "site.toml", "--swf-out", "schedule.swf")
    (policy,) = found["policies"]
    assert (policy["order"], policy["depth"], policy["compression"]) == (None, None, None)
    assert not found["options"].keys() & {"guard", "correction", "roles", "event order"}
    assert "backfill slurm, estimator requested" in Path("schedule.swf").read_text()


def test_figures_of_a_site_are_written_as_csv(run: Run, tmp_path: Path) -> None:
    both = ("--site", "site.toml,more.toml", "--csv", "figures.csv")
    assert run("simulate", *MADE, *both)[0] == 0
    with (tmp_path / "figures.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["policy"], row["backfill"], row["slurm"]) for row in rows} == {
        ("site", "slurm", "26.05"),
        ("more", "slurm", "26.05"),
    }


def test_a_site_under_pbs_stands_beside_one_under_slurm(run: Run, tmp_path: Path) -> None:
    both = ("--site", "pbs.toml,site.toml", "--csv", "figures.csv")
    assert run("simulate", *MADE, *both)[0] == 0
    with (tmp_path / "figures.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    told = {(row["policy"], row["backfill"], row["pbs"], row["slurm"]) for row in rows}
    assert told == {("pbs", "pbs", "23.06.06", ""), ("site", "slurm", "", "26.05")}
    assert run("simulate", *MADE, "--site", "pbs.toml")[0] == 0


def test_a_replay_under_pbs_plans_by_soft_walltime(run: Run) -> None:
    long_enough = ("--generate", "lublin2003", "--jobs", "600")
    for options in (("--site", "pbs.toml"), ("--scheduler", "pbs")):
        code, out, _ = run("replay", *long_enough, *options)
        assert code == 0
        assert "Scheduled as by OpenPBS 23.06.06: first submitted first; no top jobs." in out
        assert "mechanism pbs-soft-walltime" in out


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        ("simulate", "--site preempting.toml", "preempting.toml: PreemptType=preempt/partition_p"),
        ("replay", "--site preempting.toml", "preempting.toml: PreemptType=preempt/partition_prio"),
        ("replay", "--policy refused.toml", "preempting.toml: PreemptType=preempt/partition_prio"),
        ("simulate", "--site prime.toml", "prime.toml: sched_config: backfill_prime is not model"),
        ("replay", "--scheduler slurm --site pbs.toml", "--scheduler slurm: the site is under pbs"),
        ("replay", "--scheduler pbs --order sjf", "--scheduler pbs: it goes by a site alone; leav"),
        ("simulate", "--policy empty.toml", "empty.toml: site is empty: name a site's file, or le"),
        ("replay", "--scheduler policy --site site.toml", "--scheduler policy: --site has a sched"),
        ("replay", "--policy easy --site site.toml", "order is fcfs: a site's scheduler goes by"),
        ("simulate", "--site site.toml --order sjf", "order is sjf: a site's scheduler goes by th"),
        (
            "simulate",
            "--site site.toml --processors 9",
            "--site has a machine: leave --machine and",
        ),
        ("simulate", "--site site.toml,", "there is an empty name; leave it out"),
        ("simulate", "--site gone.toml", "gone.toml: there is no such file"),
        ("simulate", "--site site.toml --csv site.toml", "--csv site.toml: this is --site"),
        ("simulate", "--policy policy.toml --csv site.toml", "this is the site of --policy policy"),
        ("replay", "--policy policy.toml --csv site.toml", "this is the site of --policy policy"),
        ("replay", "--site site.toml,more.toml", "a replay takes one site; foretime simulate com"),
        (
            "replay",
            "--scheduler pbs --machine nodes.toml",
            "--machine: its nodes are no hosts of P",
        ),
        (
            "replay",
            "--scheduler slurm --mechanism pbs-soft-walltime",
            "take one of Slurm's mechanisms, or another scheduler",
        ),
        ("replay", "--policy policy.toml --csv policy.toml", "--csv policy.toml: this is --policy"),
        ("replay", "--site .", "is a folder; name a site.toml"),
    ],
)
def test_what_can_not_be_run_is_said_in_a_line(
    run: Run, command: str, options: str, said: str
) -> None:
    code, out, err = run(command, *MADE, *options.split())
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
