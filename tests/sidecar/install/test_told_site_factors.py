"""What doctor and install say of a Slurm whose jobs are raised through their site factors."""

from __future__ import annotations

from pathlib import Path

import pytest
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install.doctor.checkup import Health
from foretime_sidecar.install.doctor.site_factors import (
    backfill_goes_on,
    may_raise,
    request_limit,
)
from foretime_sidecar.install.doctor.slurm_facts import SlurmFacts
from foretime_sidecar.install.slurm_install import SlurmSite, make_plan
from foretime_sidecar.settings.settings import Settings

OK, WARNING, PROBLEM = Health.OK, Health.WARNING, Health.PROBLEM
MULTIFACTOR = {"SLURM_VERSION": "26.05.5", "PriorityType": "priority/multifactor"}


def controller_of(folder: Path, told: dict[str, str], federation: str = "") -> SlurmController:
    """Give one that asks a scontrol which prints files."""
    config = "".join(f"{name} = {value}\n" for name, value in (MULTIFACTOR | told).items())
    (folder / "config").write_text(config)
    (folder / "federation").write_text(f"Federation: {federation}\n" if federation else "")
    scontrol = folder / "scontrol"
    scontrol.write_text(f'#!/bin/sh\n[ "$1" = show ] && exec cat "{folder}/$2"\n')
    scontrol.chmod(0o755)
    return SlurmController(str(folder))


def settings_of(mode: str, order: str) -> Settings:
    return Settings.model_validate({"hook": {"mode": mode}, "queue_order": {"order": order}})


def facts(
    folder: Path,
    told: dict[str, str],
    mode: str = "enforce",
    order: str = "auto",
    federation: str = "",
) -> SlurmFacts:
    controller = controller_of(folder, told, federation)
    return SlurmFacts(settings_of(mode, order), controller, Path("/nowhere/slurm.conf"))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"PriorityType": "priority/basic"}, "priority/basic"),
        ({"PrioritySiteFactorPlugin": "site_factor/x"}, "site_factor/x"),
        ({"PriorityFlags": "INCR_ONLY"}, "INCR_ONLY"),
        ({"SchedulerParameters": "bf_continue,enable_user_top"}, "enable_user_top"),
    ],
)
def test_what_keeps_jobs_from_being_raised_is_found(
    told: dict[str, str], words: str, tmp_path: Path
) -> None:
    for mode, order, health in (
        ("enforce", "auto", PROBLEM),
        ("observe", "auto", WARNING),
        ("observe", "sjf", PROBLEM),
        ("enforce", "none", OK),
    ):
        finding = may_raise(facts(tmp_path, told, mode, order))
        assert finding.health is health
        assert (words in finding.message) is (health is not OK)
        assert bool(finding.remedy) is (health is not OK)
    assert may_raise(facts(tmp_path, {})).health is OK


def test_a_federation_is_found_and_preemption_where_jobs_are_raised(tmp_path: Path) -> None:
    assert "federation west" in may_raise(facts(tmp_path, {}, federation="west")).message
    preempts = {"PreemptType": "preempt/qos"}
    assert may_raise(facts(tmp_path, preempts)).health is PROBLEM
    assert may_raise(facts(tmp_path, preempts, order="sjf")).health is OK


def test_a_backfill_that_changes_end_is_warned_of(tmp_path: Path) -> None:
    for told, health in (("", WARNING), ("bf_interval=10", WARNING), ("a,BF_Continue", OK)):
        finding = backfill_goes_on(facts(tmp_path, {"SchedulerParameters": told}))
        assert (finding.health, "bf_continue" in finding.message) == (health, True)
    assert backfill_goes_on(facts(tmp_path, {}, order="none")).health is OK


def test_a_limit_of_requests_is_warned_of(tmp_path: Path) -> None:
    limited = {"SlurmctldParameters": "enable_configless,rl_enable,rl_bucket_size=50"}
    finding = request_limit(facts(tmp_path, limited))
    assert finding.health is WARNING
    assert "rl_bucket_size" in finding.remedy
    assert request_limit(facts(tmp_path, {})).health is OK
    assert request_limit(facts(tmp_path, limited, order="none")).health is OK


@pytest.mark.parametrize(
    ("order", "told", "said"),
    [
        ("auto", {"PriorityType": "priority/basic"}, "put that into slurm.conf, and restart"),
        ("auto", {}, ""),
        ("none", {"PriorityType": "priority/basic"}, ""),
    ],
)
def test_the_installation_says_where_no_job_will_be_raised(
    order: str, told: dict[str, str], said: str, tmp_path: Path
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=lab\n")
    site = SlurmSite(controller_of(tmp_path, told), settings_of("observe", order), conf)
    notes = [note for note in make_plan(site).notes if "start no job at once" in note]
    assert [said in note for note in notes] == [True] * bool(said)
