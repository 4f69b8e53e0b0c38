"""Campaigns over sites: whose scheduler runs, on which jobs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.campaigns.campaign import Campaign
from foretime_sim.campaigns.cells import plan
from foretime_sim.campaigns.file import parse_campaign, read_campaign
from foretime_sim.campaigns.results import policy_label
from foretime_sim.campaigns.runs import UsedLog, attempt, log_facts
from foretime_sim.engine.engine import simulate
from foretime_sim.models.workload_models import generate
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.site_machine import on_machine_of, that_fit_on_all
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.site_file import read_site
from foretime_sim.sites.slurm.site import SlurmSite

GRID = '[grid]\nsite = ["none", "small.toml", "large.toml", "pro.toml"]\n'
LOG = '[[logs]]\ngenerate = "lublin2003"\nname = "made"\njobs = 150\n[scoring]\nwarm_up_s = 0\n'


def campaign_in(folder: Path, text: str) -> Campaign:
    (folder / "sites.toml").write_text(LOG + text)
    return read_campaign(folder / "sites.toml")


def test_each_cell_is_the_run_of_its_site_on_the_same_jobs(sites: Path) -> None:
    campaign = campaign_in(sites, GRID)
    workload = generate("lublin2003", jobs=150, processors=48)
    named = [read_site(sites / f"{name}.toml") for name in ("small", "large", "pro")]
    fitting = that_fit_on_all(named, workload)
    assert 0 < len(fitting) < len(workload)  # some ask for more than the small one has
    policies = [
        Policy(),
        *(Policy(backfill=Slurm(s) if isinstance(s, SlurmSite) else Pbs(s)) for s in named),
    ]
    waits = []
    for cell, policy in zip(plan(campaign).cells, policies, strict=True):
        record = attempt(cell)
        assert record["status"] == "done", record.get("error")
        placed = on_machine_of(policy, fitting)
        wait = simulate(placed, policy).start_time - placed.submit_time
        assert record["metrics"]["wait_mean_s"] == pytest.approx(float(np.mean(wait)))
        assert record["run"]["simulated_jobs"] == len(fitting)
        waits.append(record["metrics"]["wait_mean_s"])
    assert len(set(waits)) == len(waits)
    facts = log_facts(
        UsedLog(campaign.logs["made"], campaign.scoring, tuple(campaign.sites.values()))
    )
    assert facts.simulated_jobs == len(fitting)
    assert any("left out" in note for note in facts.workload_notes)


def test_jobs_that_one_site_never_runs_are_scored_under_none(sites: Path) -> None:
    (sites / "narrow.toml").write_text(
        '[slurm]\nAccountingStorageEnforce = ["limits"]\n'
        "[node_groups.cpu]\nnodes = 12\ncpus = 4\n"
        '[partitions.main]\nnode_groups = ["cpu"]\nDefault = true\nQOS = "part"\n'
        '[qos.part]\nMaxTRESPerJob = "cpu=2"\n[accounts.root]\n[accounts.group1]\n'
        + "".join(
            f'[[associations]]\nUser = "user{number}"\nAccount = "group1"\n'
            for number in range(1, 400)
        )
    )
    grid = '[grid]\nsite = ["none", "large.toml", "narrow.toml"]\n'
    (sites / "sites.toml").write_text('unknown_users = "refuse"\n' + LOG + grid)
    campaign = read_campaign(sites / "sites.toml")
    records = [attempt(cell) for cell in plan(campaign).cells]
    assert [record["status"] for record in records] == ["done"] * 3
    never = [record["run"]["never_ran_jobs"] for record in records]
    assert never[:2] == [0, 0]
    assert 0 < never[2] < 150
    scored = {record["metrics"]["jobs"] for record in records}
    assert scored == {records[0]["run"]["simulated_jobs"] - never[2]}
    assert sum(records[2]["run"]["never_ran"].values()) == never[2]


def test_a_site_collapses_what_it_takes_the_place_of(sites: Path) -> None:
    text = GRID + 'order = ["fcfs", "sjf"]\nbackfill = ["easy", "conservative"]\n'
    planned = plan(campaign_in(sites, text))
    assert len(planned.cells) == 4 + 3
    of_sites = [cell for cell in planned.cells if cell.site is not None]
    assert {cell.axes["order"] for cell in of_sites} == {None}
    labels = [policy_label(planned, cell.policy) for cell in planned.cells]
    assert labels[:4] == ["fcfs / easy / no site", "small", "large", "pro"]
    told = " ".join(planned.notes)
    assert "order and backfill have no effect where a site's scheduler goes by the site" in told
    assert "small.toml: Scheduled as by Slurm 26.05" in told
    assert "pro.toml: Scheduled as by OpenPBS" in told


def test_sites_come_by_policy_files_and_includes(sites: Path) -> None:
    (sites / "policy.toml").write_text('site = "small.toml"\n')
    by_policy = plan(campaign_in(sites, '[grid]\npolicy = "policy.toml"\n'))
    by_key = plan(campaign_in(sites, '[grid]\nsite = "small.toml"\n'))
    assert [cell.id for cell in by_policy.cells] == [cell.id for cell in by_key.cells]
    assert policy_label(by_key, by_key.cells[0].policy) == "small"
    included = plan(campaign_in(sites, '[[include]]\nsite = "large.toml"\n'))
    assert [cell.site is None for cell in included.cells] == [True, False]


def test_a_cell_is_known_by_what_the_site_holds(sites: Path) -> None:
    grid = '[grid]\nsite = ["small.toml", "large.toml"]\n'
    before = [cell.id for cell in plan(campaign_in(sites, grid)).cells]
    small = sites / "small.toml"
    small.write_text("# a word\n" + small.read_text())
    assert [cell.id for cell in plan(campaign_in(sites, grid)).cells] == before
    small.rename(sites / "other.toml")
    renamed = plan(campaign_in(sites, grid.replace("small", "other")))
    assert [cell.id for cell in renamed.cells] == before
    (sites / "other.toml").write_text(small_with_a_window(sites))
    changed = [cell.id for cell in plan(campaign_in(sites, grid.replace("small", "other"))).cells]
    # The jobs of all are those that fit on every site.
    assert not set(before) & set(changed)


def small_with_a_window(sites: Path) -> str:
    return "[slurm.SchedulerParameters]\nbf_window = 10080\n" + (sites / "other.toml").read_text()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[grid]\nsite = "gone.toml"\n', "sites.toml:8: [grid] site: "),
        ('[grid]\nsite = "gone.toml"\n', "gone.toml: there is no such file"),
        ('[grid]\nsite = "preempting.toml"\n', "PreemptMode=REQUEUE is not simulated"),
        ('[grid]\nsite = ["small.toml", "more/small.toml"]\n', "would call it as they call small"),
        ('[grid]\nsite = "small.toml"\nreservations = "claims.csv"\n', "go with no site: put"),
        ('[grid]\npolicy = "both.toml"\n', "order is sjf: a site's scheduler goes by the site"),
    ],
)
def test_what_can_not_be_run_is_refused(sites: Path, text: str, says: str) -> None:
    small = (sites / "small.toml").read_text()
    (sites / "more").mkdir()
    (sites / "more/small.toml").write_text(small)
    (sites / "preempting.toml").write_text(
        '[slurm]\nPreemptType = "preempt/partition_prio"\nPreemptMode = "REQUEUE"\n' + small
    )
    (sites / "claims.csv").write_text("start,duration,processors\n100,100,4\n")
    (sites / "both.toml").write_text('site = "small.toml"\norder = "sjf"\n')
    with pytest.raises(InputError) as refused:
        plan(campaign_in(sites, text))
    assert says in str(refused.value)


def test_a_site_says_how_large_the_machine_is(sites: Path) -> None:
    text = LOG.replace("jobs = 150", "jobs = 150\nprocessors = 32")
    assert parse_campaign(text, sites / "c.toml").sites == {}
    with pytest.raises(InputError, match="processors: a site has a machine: leave it out"):
        parse_campaign(text + GRID, sites / "c.toml")


ENFORCED = """\
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
MaxTRESPerJob = "cpu=16"
"""


def enforced_campaign(folder: Path, given: str) -> Campaign:
    """Give a campaign over a site that names none of its log's users."""
    (folder / "enforced.toml").write_text(ENFORCED)
    (folder / "sites.toml").write_text(given + LOG + '[grid]\nsite = "enforced.toml"\n')
    return read_campaign(folder / "sites.toml")


def test_users_whom_a_site_does_not_name_stop_a_campaign_unless_told(sites: Path) -> None:
    (cell,) = plan(enforced_campaign(sites, "")).cells
    failed = attempt(cell)
    assert failed["status"] == "failed"
    assert "are of users whom the associations of the site do not name" in failed["error"]
    assert 'unknown_users = "account:NAME"' in failed["error"]
    (cell,) = plan(enforced_campaign(sites, 'unknown_users = "refuse"\n')).cells
    assert "ever ran" in attempt(cell)["error"]


def test_users_taken_in_run_under_the_limits_of_their_account(sites: Path) -> None:
    campaign = enforced_campaign(sites, 'unknown_users = "account:physics"\n')
    (cell,) = plan(campaign).cells
    done = attempt(cell)
    assert done["status"] == "done"
    workload = generate("lublin2003", jobs=150, processors=256)
    wide = int((workload.processors > 16).sum())
    assert wide > 0
    assert done["run"]["never_ran"] == {"AssocMaxCpuPerJobLimit": wide}
    assert any("run as those of account physics" in note for note in done["run"]["workload_notes"])


def test_an_account_taken_in_makes_other_cells_and_a_wrong_one_is_refused(sites: Path) -> None:
    def ids(given: str) -> list[str]:
        return [cell.id for cell in plan(enforced_campaign(sites, given)).cells]

    given = ("", *(f'unknown_users = "{what}"\n' for what in ("refuse", "account:physics")))
    assert len({tuple(ids(each)) for each in given}) == 3  # a failed one is not what it becomes
    with pytest.raises(InputError, match=r'sites.toml:1: unknown_users = "drop": take error'):
        enforced_campaign(sites, 'unknown_users = "drop"\n')
    (cell,) = plan(enforced_campaign(sites, 'unknown_users = "account:physic"\n')).cells
    assert "the site has no account 'physic'" in attempt(cell)["error"]
