"""``foretime study logged-policies``: a log whose policy is known here, and nowhere in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.application import app
from foretime_sim.engine.engine import simulate
from foretime_sim.logs.swf import write_swf
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_file import read_policy
from foretime_sim.policies.policy_table import policy_of
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.site_file import parse_site, read_site
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.block_sums import Figure
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload
from foretime_studies.logged_policies.plausible_runs import QueueOrders, SitePools
from foretime_studies.logged_policies.study import (
    CHOSEN,
    GENERIC,
    PAST,
    PLAUSIBLE,
    LoggedStudy,
    order_agreement,
    study,
)
from foretime_studies.logged_policies.tables import tables
from typer.testing import CliRunner

SITE = """
[priority]
PriorityType = "priority/basic"
[node_groups.thin]
nodes = 1
cpus = 192
[node_groups.fat]
nodes = 1
cpus = 64
[partitions.standard]
node_groups = ["thin"]
Default = true
[partitions.large]
node_groups = ["fat"]
"""
PBS = """
scheduler = "pbs"
[queues.workq]
[[hosts]]
name = "n001"
resources_available = { ncpus = 64 }
"""
runner = CliRunner()


@pytest.fixture(scope="module")
def site() -> SlurmSite:
    found = parse_site(SITE, source="site.toml")
    assert isinstance(found, SlurmSite)
    return found


@pytest.fixture(scope="module")
def log(site: SlurmSite) -> Workload:
    """A log of the site: the narrow half of the jobs has the fat nodes, and waits for them."""
    made = lublin2003.generate(jobs=500, load=0.9, seed=5)
    made = made.take(made.processors <= 128)
    narrow = made.processors <= 16
    queues = Labels(narrow.astype(np.int32), ("standard", "large"))
    made = replace(made, queues=queues, requests=ResourceRequests(slurm_partitions=queues))
    schedule = simulate(with_machine(made, site.machine), Policy(backfill=Slurm(site)))
    return replace(made, logged_wait=np.ma.array(schedule.start_time - made.submit_time))


@pytest.fixture(scope="module")
def found(log: Workload, site: SlurmSite) -> LoggedStudy:
    policy = Policy(backfill=Slurm(site))
    return study(log, policy, submissions=120, samples=8, seed=1, warm_up=0.1)


def test_the_sites_own_policy_is_trusted_and_another_is_not(found: LoggedStudy) -> None:
    assert found.trust[PLAUSIBLE].value > 0.95
    assert found.trust[GENERIC].value < 0.9
    for one, other in ((PLAUSIBLE, CHOSEN[PAST]), (CHOSEN[PLAUSIBLE], CHOSEN[GENERIC])):
        for later in (False, True):
            assert found.scored.ratio("pinball_log", one, other, later=later).value < 0.6


def test_nobody_is_held_where_the_policy_is_the_sites_own(found: LoggedStudy) -> None:
    assert found.held == 0
    assert found.agreement[PLAUSIBLE].value == found.with_held[PLAUSIBLE].value


def test_jobs_start_in_the_sites_order_but_for_backfilling(found: LoggedStudy) -> None:
    assert 0.8 < found.agreement[PLAUSIBLE].value < 1
    assert found.agreement[PLAUSIBLE].value > found.agreement["sjf"].value


def test_every_table_has_every_log(found: LoggedStudy) -> None:
    made = tables([found, found])
    assert [table.key for table in made] == ["logs", "trust", "beside", "methods", "order"]
    for table in made:
        half = len(table.rows) // 2
        assert table.rows[:half] == table.rows[half:]
        assert all(row[0] == found.name for row in table.rows)


def test_order_agreement_by_hand() -> None:
    def queue(now: int, jobs: str, partition: list[int], held: list[bool]) -> QueueOrders:
        places = {"plausible": np.arange(len(jobs))}
        return QueueOrders(now, tuple(jobs), np.array(partition), np.array(held), places)

    start_of = dict(zip("abcdef", (40, 20, 30, 50, 10, 50), strict=True))
    queues = [
        queue(0, "abc", [0, 0, 0], [True, False, False]),
        # Pairs of another partition, and starts in the same second, do not count.
        queue(5, "adef", [0, 0, 1, 0], [False, False, False, False]),
    ]
    (share,), compared = _values(order_agreement(queues, start_of, None))
    assert (share, compared) == (1.0, 2)
    # b and c go before a: a third; a before d and f: all. Each queue counts once.
    (share,), _ = _values(order_agreement(queues, start_of, None, held_too=True))
    assert share == pytest.approx((1 / 3 + 1) / 2)
    assert order_agreement([], start_of, None) == ({}, 0)


def _values(found: tuple[dict[str, Figure], int]) -> tuple[list[float], int]:
    return [share.value for share in found[0].values()], found[1]


def test_the_command_reports_a_log(log: Workload, tmp_path: Path) -> None:
    path, site_file = tmp_path / "site.swf", tmp_path / "site.toml"
    write_swf(log_of_workload(log.head(80)), path)
    site_file.write_text(SITE)
    words = ["study", "logged-policies", str(path), "--site", str(site_file)]
    words += ["--submissions", "20", "--samples", "2", "-o", str(tmp_path / "out")]
    ran = runner.invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert "Moments at which forward runs are trusted" in ran.output.replace("\n", " ")
    told = json.loads((tmp_path / "out" / "results.json").read_text())
    assert told["command"].startswith("foretime study logged-policies site.swf --site site.toml")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "give --policy or --site, one of them"),
        (["--policy", "easy", "--site", "site.toml"], "give --policy or --site, one of them"),
        (["--site", "pbs.toml"], "it is under PBS; give a site under Slurm"),
        (["--policy", "pbs-policy.toml"], "forward runs ask neither Python nor a log's PBS"),
    ],
)
def test_what_is_not_plausible_is_refused(
    given: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pbs.toml").write_text(PBS)
    Path("pbs-policy.toml").write_text('site = "pbs.toml"\n')
    ran = runner.invoke(app, ["study", "logged-policies", "log.swf", *given])
    assert isinstance(ran.exception, InputError)
    assert message in str(ran.exception)


def test_the_pages_policies_are_good(repository: Path) -> None:
    folder = repository / "docs" / "studies" / "logged-policies"
    for name in ("curie", "coare", "coare-pools"):
        read = read_site(folder / f"{name}.toml")
        assert isinstance(read, SlurmSite)
        assert SitePools(read).names == [part.name for part in read.machine.slurm_partitions]
    for name in ("theta", "mira"):
        policy = policy_of(read_policy(folder / f"{name}.toml"))
        assert (policy.order, policy.backfill) == (Order.WFP, Backfill.EASY)
