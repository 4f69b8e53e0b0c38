"""Sites of what `tests.slurm.harness.record_site` had live Slurms answer."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from foretime_sidecar.site_import.saved_output import read_folder
from foretime_sidecar.site_import.slurm_site import import_site
from foretime_sim.files.toml_keys import format_time
from foretime_sim.sites.site_file import format_site, parse_site
from foretime_sim.sites.slurm.limits import Limits
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.sites.slurm.switches import Switch

RELEASES = ("22.05", "24.11", "25.11", "26.05")
COLUMNS_OF_NEW_ONES = "QOS: the output tells no "


@pytest.fixture(params=RELEASES)
def folder(request: pytest.FixtureRequest, repository: Path) -> Path:
    """Each release's answers."""
    name: str = request.param
    return repository / "tests/assets/slurm" / name / "site"


def imported(folder: Path) -> SlurmSite:
    return import_site(read_folder(folder), UTC).site


@pytest.fixture
def site(folder: Path) -> SlurmSite:
    return imported(folder)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """Answers to change."""
    return shutil.copytree(folder, tmp_path / "saved")


def test_nodes_that_are_alike_make_a_group(site: SlurmSite) -> None:
    groups = {group.name: group for group in site.machine.node_groups}
    assert {name: group.nodes for name, group in groups.items()} == {
        "b": 1, "g": 2, "n": 2, "n-2": 1, "n-3": 1,
    }  # fmt: skip
    gpu = groups["g"]
    assert (gpu.cpus, gpu.memory_mib, gpu.gpus, gpu.weight) == (16, 64_000, 4, 100)
    assert gpu.features == ("avx512", "ib", "gpu:a100")
    assert groups["b"].features == ("avx2", "bigmem")


def test_groups_are_told_with_the_names_of_their_nodes(folder: Path) -> None:
    found = import_site(read_folder(folder), UTC)
    # n3 is in no reservation, n10 in other partitions.
    assert found.remarks == {"b": "b1", "g": "g[1-2]", "n": "n[1-2]", "n-2": "n3", "n-3": "n10"}
    assert "# g[1-2]\n[node_groups.g]\n" in format_site(found.site, found.remarks)


def test_partitions_are_those_of_the_site(site: SlurmSite) -> None:
    parts = {part.name: part for part in site.machine.slurm_partitions}
    assert list(parts) == ["main", "short", "gpu", "whole"]
    assert parts["main"].default
    assert parts["main"].node_groups == ("b", "n", "n-2", "n-3")
    assert (parts["short"].priority_tier, parts["short"].max_nodes) == (10, 2)
    assert parts["short"].max_time_s == 4 * 3600
    assert [part.exclusive for part in parts.values()] == [False, False, False, True]
    assert site.rules["main"] == PartitionRules(
        max_memory_per_cpu_mib=4000,
        default_time_s=3600,
        billing_weights={"cpu": 1.0, "mem": 0.25 / 1024},
    )
    assert site.rules["short"] == PartitionRules(
        priority_job_factor=100, qos="shortpart", allow_qos=frozenset({"high", "normal"})
    )
    assert site.rules["gpu"] == PartitionRules(
        allow_accounts=frozenset({"chemistry", "physics"}),
        max_cpus_per_node=14,
        default_memory_per_node_mib=8000,
        over_time_limit_s=600,
        billing_weights={"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 8.0},
        grace_time_s=120,
    )
    assert site.rules["whole"] == PartitionRules(
        deny_accounts=frozenset({"biology"}), deny_qos=frozenset({"low"})
    )


def test_settings_are_those_of_the_site(site: SlurmSite) -> None:
    parameters = site.parameters
    assert (parameters.bf_window, parameters.bf_interval, parameters.bf_max_time) == (172_800, 5, 5)
    assert (parameters.bf_resolution, parameters.bf_max_job_part) == (300, 100)
    assert (parameters.over_time_limit_s, parameters.kill_wait_s) == (300, 20)
    assert parameters.complete_wait_s == 4
    words = (parameters.bf_continue, parameters.bf_licenses, parameters.assoc_limit_stop)
    assert words == (True, True, True)
    assert site.priority == SlurmPriority(
        weight_age=1000,
        weight_assoc=50,
        weight_fair_share=100_000,
        weight_job_size=500,
        weight_partition=2000,
        weight_qos=10_000,
        weight_tres={"cpu": 10.0, "mem": 0.5, "gres/gpu": 3000.0},
        max_age_s=3 * 86_400,
        decay_half_life_s=2 * 86_400,
        usage_reset_period="MONTHLY",
        calc_period_s=60,
        dampening_factor=3,
        favor_small=True,
        flags=frozenset({"ACCRUE_ALWAYS", "SMALL_RELATIVE_TO_TIME"}),
    )
    assert site.enforced == {"associations", "limits", "qos", "safe"}
    assert (site.preempt_type, site.preempt_mode) == ("preempt/qos", "REQUEUE")
    assert site.preempt_parameters == ("youngest_first",), "of SchedulerParameters"
    assert (site.preempt_exempt_time_s, site.parameters.epilog) == (0, False)
    assert site.enforce_part_limits == "ANY"
    assert site.licenses == {"ansys": 2, "matlab": 5}


def test_qos_are_those_of_the_site(site: SlurmSite) -> None:
    assert list(site.qos) == ["normal", "high", "low", "shortpart"]
    high = site.qos["high"]
    assert (high.priority, high.preempt, high.preempt_mode) == (1000, ("low",), "REQUEUE")
    assert high.flags == {"DenyOnLimit", "OverPartQOS"}
    assert high.limits == Limits(max_tres_per_user={"cpu": 24, "gres/gpu": 2}, max_wall_s=86_400)
    low = site.qos["low"]
    assert (low.usage_factor, low.preempt_mode) == (0.5, None)
    assert low.limits == Limits(max_jobs=4, max_submit_jobs=100, min_tres_per_job={"cpu": 2})
    assert site.qos["shortpart"].limits == Limits(
        grp_tres={"cpu": 20, "node": 3},
        grp_tres_run_mins={"cpu": 60_000},
        max_jobs_per_account=8,
    )


def test_accounts_are_those_of_the_site(site: SlurmSite) -> None:
    accounts = {each.account: each for each in site.associations if each.user is None}
    assert {name: each.parent for name, each in accounts.items()} == {
        "root": None,
        "biology": "root",
        "science": "root",
        "chemistry": "science",
        "physics": "science",
    }
    assert (accounts["chemistry"].shares, accounts["physics"].shares) == (None, 10)
    assert accounts["science"].limits == Limits(grp_tres={"cpu": 40}, max_jobs=20)
    assert format_time(accounts["chemistry"].limits.grp_wall_s or 0) == "41-16:00:00"
    users = {(each.user, each.account): each for each in site.associations if each.user is not None}
    assert users["erin", "biology"].slurm_partition == "main"
    assert users["dave", "biology"].limits == Limits(grp_tres_mins={"cpu": 100_000})
    # What an account limits is told of its users as well.
    assert users["bob", "physics"].limits == Limits(
        max_jobs=5, max_submit_jobs=200, max_wall_s=43_200
    )
    assert users["alice", "physics"].qos == ("high", "low", "normal")
    assert users["alice", "physics"].default_qos == "normal"
    assert [each.default for key, each in users.items() if key[0] == "bob"] == [False, True]


def test_usage_adds_up(site: SlurmSite) -> None:
    usage = {(each.account, each.user): each.raw_usage for each in site.associations}
    assert usage["physics", "alice"] > 0
    below = usage["physics", "alice"] + usage["physics", "bob"]
    assert usage["physics", None] == pytest.approx(below, abs=1)
    assert site.usage_at is not None
    assert datetime.fromtimestamp(site.usage_at, UTC).year == 2026


def test_reservations_are_those_of_the_site(site: SlurmSite) -> None:
    upkeep, course = site.reservations
    assert (upkeep.name, upkeep.duration, course.name) == ("upkeep", 7200, "course")
    assert set(upkeep.node_groups) == {group.name for group in site.machine.node_groups}
    assert course.node_groups == ("n",)
    assert site.usage_at is not None
    assert 86_400 < course.start - site.usage_at < 2 * 86_400


def test_it_says_what_is_not_modelled(site: SlurmSite) -> None:
    said = "\n".join(site.not_modelled)
    assert "job_submit plug-ins (all_partitions)" in said
    assert "SchedulerParameters that are not modelled: bf_hetjob_prio." in said
    assert "Heterogeneous jobs" in said
    assert "Nodes that take no jobs now are counted as if they did: n3." in said
    assert "Reservation course: any job that names it may use it (Accounts=physics)" in said


@pytest.mark.parametrize("release", RELEASES[1:])
def test_every_release_tells_the_same_site(repository: Path, release: str) -> None:
    assets = repository / "tests/assets/slurm"
    old, new = (imported(assets / name / "site") for name in (RELEASES[0], release))

    def timeless(site: SlurmSite) -> SlurmSite:
        return replace(
            site,
            version=(0, 0),
            usage_at=None,
            reservations=tuple(replace(each, start=0) for each in site.reservations),
            associations=tuple(replace(each, raw_usage=0.0) for each in site.associations),
            not_modelled=tuple(
                each for each in site.not_modelled if not each.startswith(COLUMNS_OF_NEW_ONES)
            ),
        )

    assert (old.version, new.version) == ((22, 5), tuple(map(int, release.split("."))))
    assert timeless(old) == timeless(new)


def test_written_and_read_again(site: SlurmSite) -> None:
    assert parse_site(format_site(site), source="made") == site


def test_records_over_several_lines_say_the_same(copy: Path, site: SlurmSite) -> None:
    for name in ("nodes", "partitions", "reservations"):
        (copy / f"{name}.txt").unlink()
    assert imported(copy) == site


def test_columns_may_stand_in_any_order(copy: Path, site: SlurmSite) -> None:
    for name in ("assoc", "qos", "sshare", "users"):
        path = copy / f"{name}.txt"
        rows = [line.split("|") for line in path.read_text().splitlines()]
        order = list(range(len(rows[0])))
        random.Random(name).shuffle(order)
        path.write_text("".join("|".join(row[at] for at in order) + "\n" for row in rows))
    assert imported(copy) == site


def test_files_may_have_any_name(copy: Path, site: SlurmSite) -> None:
    for number, path in enumerate(sorted(copy.iterdir(), reverse=True)):
        if "-lines" in path.name:
            path.unlink()
        else:
            path.rename(copy / f"output-{number}")
    assert imported(copy) == site


def test_a_dump_tells_the_accounts_above_and_the_default_accounts(copy: Path) -> None:
    for name in ("sshare", "users"):
        (copy / f"{name}.txt").unlink()
    site = imported(copy)
    parents = {each.account: each.parent for each in site.associations if each.user is None}
    assert parents["physics"] == "science"
    assert sum(each.default for each in site.associations) == 6
    assert any("no output of sshare" in sentence for sentence in site.not_modelled)
    assert site.usage_at is None


def test_without_accounting_there_are_no_accounts_and_that_is_said(copy: Path) -> None:
    for name in ("assoc", "qos", "sshare", "users", "dump"):
        (copy / f"{name}.txt").unlink()
    site = imported(copy)
    assert (site.qos, site.associations) == ({}, ())
    said = "\n".join(site.not_modelled)
    assert "Accounts, QOS and their limits: no output of sacctmgr" in said
    assert "Partition short: its QOS shortpart is not known" in said


@pytest.mark.parametrize("release", ["22.05", "26.05"])
def test_the_micro_cluster_of_buffalo(repository: Path, release: str) -> None:
    site = imported(repository / "tests/assets/slurm" / release / "ubccr-micro")
    groups = {group.name: group for group in site.machine.node_groups}
    assert {name: group.nodes for name, group in groups.items()} == {
        "b": 1, "g": 1, "m": 4, "n": 2, "n-2": 2,
    }  # fmt: skip
    assert all(group.cpus == 12 for group in groups.values())
    assert (groups["b"].memory_mib, groups["g"].gpus) == (512_000, 2)
    assert site.parameters.bf_max_job_test == 1200
    assert site.parameters.bf_max_job_user == 200
    assert site.priority.weight_partition == 1_000_000
    assert (site.priority.dampening_factor, site.priority.max_age_s) == (5, 5 * 3600)
    assert site.enforce_part_limits == "ANY"  # of YES
    assert site.qos["supporters"].priority == 100
    users = [each for each in site.associations if each.user is not None]
    assert {each.limits.max_submit_jobs for each in users if each.user != "root"} == {1000}
    assert site.switches == (
        Switch("IBN", ("n", "n-2")),
        Switch("IBM", ("m",)),
        Switch("IBG", ("b", "g")),
        Switch("TOP", switches=("IBG", "IBM", "IBN")),
    )
    assert not any("switch" in sentence for sentence in site.not_modelled)


def test_the_medium_cluster_of_buffalo(repository: Path) -> None:
    site = imported(repository / "tests/assets/slurm/26.05/ubccr-medium")
    assert (site.machine.nodes, len(site.machine.slurm_partitions)) == (217, 2)
    assert site.machine.cpus == 89 * 32 + (8 + 96 + 24) * 40
    general, debug = site.machine.slurm_partitions
    assert (general.priority_tier, debug.priority_tier) == (100, 700)
    assert site.rules["general-compute"].qos == "general-compute"
    assert site.parameters.bf_window == 3 * 86_400
    assert site.priority.weight_tres == {"cpu": 0.0, "mem": 0.03, "gres/gpu": 30_000.0}
    assert site.priority.flags == {"NO_NORMAL_TRES"}
    assert site.qos["debug"].limits.max_submit_jobs == 20
    assert len({each.user for each in site.associations if each.user}) > 80
    assert (site.preempt_type, site.preempt_mode) == ("preempt/partition_prio", "REQUEUE")
