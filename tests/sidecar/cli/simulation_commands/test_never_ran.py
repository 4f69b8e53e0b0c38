"""What ``foretime simulate`` and ``replay`` say of jobs that a site never lets run."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_sim.logs.log_files import read_log

Run = Callable[..., tuple[int, str, str]]
SITE = """\
version = "26.05"
[slurm]
AccountingStorageEnforce = ["associations", "limits"]
[node_groups.cpu]
nodes = 64
cpus = 4
[partitions.main]
node_groups = ["cpu"]
Default = true
[accounts.root]
[accounts.physics]
MaxTRESPerJob = "cpu={most}"
[[associations]]
User = "ann"
Account = "physics"
"""
MADE = ("--generate", "lublin2003", "--jobs", "60")
TAKEN_IN = ("--unknown-users", "account:physics")
REASON = "AssocMaxCpuPerJobLimit"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sites in the current folder: no job may have more than 16 CPUs, and more than 64."""
    monkeypatch.chdir(tmp_path)
    for name, most in (("narrow", 16), ("wide", 64)):
        (tmp_path / f"{name}.toml").write_text(SITE.format(most=most))


def test_simulate_scores_the_jobs_that_all_sites_run(run: Run, tmp_path: Path) -> None:
    options = ("--site", "wide.toml,narrow.toml", *TAKEN_IN, "--check", "--csv", "rows.csv")
    code, out, err = run("simulate", *MADE, *options, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    wide, narrow = (policy["never_ran_jobs"][REASON] for policy in found["policies"])
    assert 0 < wide < narrow
    assert found["workload"]["scored_jobs"] == 60 - narrow
    with (tmp_path / "rows.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["metric"].startswith("never_ran_jobs")]
    assert [(row["policy"], row["metric"], float(row["value"])) for row in rows] == [
        ("wide", f"never_ran_jobs: {REASON}", wide),
        ("narrow", f"never_ran_jobs: {REASON}", narrow),
    ]


def test_the_report_says_how_many_and_why(run: Run) -> None:
    code, out, _ = run("simulate", *MADE, "--site", "narrow.toml", *TAKEN_IN)
    assert code == 0
    assert "jobs never ran: " in out
    assert REASON in out
    assert "All figures are of the others." in out


def test_a_schedule_has_them_as_cancelled_before_their_start(run: Run) -> None:
    options = ("--site", "narrow.toml", *TAKEN_IN, "--swf-out", "out.swf", "--json")
    code, out, _ = run("simulate", *MADE, *options)
    assert code == 0
    never = json.loads(out)["policies"][0]["never_ran_jobs"][REASON]
    log = read_log(Path("out.swf"))
    cancelled = (log.status == 5).filled(False)
    assert cancelled.sum() == never
    assert np.ma.getmaskarray(log.wait)[cancelled].all()
    assert np.ma.getmaskarray(log.runtime)[cancelled].all()


@pytest.mark.parametrize("scheme", ["combined", "actual"])
def test_a_replay_goes_on_without_them(run: Run, scheme: str) -> None:
    options = ("--site", "narrow.toml", *TAKEN_IN, "--scheme", scheme, "--warm-up", "0")
    code, out, err = run("replay", *MADE, *options, "--check", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    never = found["never_ran_jobs"]
    assert never["baseline"] == never["adjusted"]
    assert found["workload"]["scored_jobs"] == 60 - never["baseline"][REASON]
    assert found["metrics"]["killed_early_jobs"]["adjusted"] == 0


@pytest.mark.parametrize("command", ["simulate", "replay"])
def test_unknown_users_stop_a_run_unless_it_is_said_what_to_do(run: Run, command: str) -> None:
    code, _, err = run(command, *MADE, "--site", "wide.toml")
    assert code == 2
    assert "60 of 60 jobs are of users whom the associations of the site do not name" in err
    assert "(account group1)" in err
    refuse = ("--unknown-users", "refuse", "--warm-up", "0")
    code, _, err = run(command, *MADE, "--site", "wide.toml", *refuse)
    assert code == 2
    assert "none of the 60 jobs to score ever ran" in err


@pytest.mark.parametrize(
    ("given", "told"),
    [("drop", "take error, refuse, or an account"), ("account:lab", "the site has no account")],
)
def test_other_words_are_refused(run: Run, given: str, told: str) -> None:
    code, _, err = run("simulate", *MADE, "--site", "wide.toml", "--unknown-users", given)
    assert code == 2
    assert told in err
