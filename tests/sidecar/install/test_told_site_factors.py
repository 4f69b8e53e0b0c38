"""What doctor and install say of a Slurm whose jobs are raised through their site factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from foretime_sidecar.clients.slurm.commands import SlurmCommands
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


def controller_of(told: Mapping[str, str], federation: str = "") -> SlurmController:
    controller = SlurmController()

    def run(argv: Sequence[str], stdin: str | None = None) -> object:
        del stdin
        assert list(argv) == ["scontrol", "show", "federation"]
        return f"Federation: {federation}\n" if federation else ""

    controller.client = SlurmCommands(run)
    controller.configuration = lambda: MULTIFACTOR | dict(told)  # type: ignore[method-assign]
    return controller


def settings_of(mode: str, order: str) -> Settings:
    return Settings.model_validate({"hook": {"mode": mode}, "queue_order": {"order": order}})


def facts(
    told: Mapping[str, str], mode: str = "enforce", order: str = "auto", federation: str = ""
) -> SlurmFacts:
    controller = controller_of(told, federation)
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
def test_what_keeps_jobs_from_being_raised_is_found(told: dict[str, str], words: str) -> None:
    for mode, order, health in (
        ("enforce", "auto", PROBLEM),
        ("observe", "auto", WARNING),
        ("observe", "sjf", PROBLEM),
        ("enforce", "none", OK),
    ):
        finding = may_raise(facts(told, mode, order))
        assert finding.health is health
        assert (words in finding.message) is (health is not OK)
        assert bool(finding.remedy) is (health is not OK)
    assert may_raise(facts({})).health is OK


def test_a_federation_is_found_and_preemption_where_jobs_are_raised() -> None:
    assert "federation west" in may_raise(facts({}, federation="west")).message
    preempts = {"PreemptType": "preempt/qos"}
    assert may_raise(facts(preempts)).health is PROBLEM
    assert may_raise(facts(preempts, order="sjf")).health is OK


def test_a_backfill_that_changes_end_is_warned_of() -> None:
    for told, health in (("", WARNING), ("bf_interval=10", WARNING), ("a,BF_Continue", OK)):
        finding = backfill_goes_on(facts({"SchedulerParameters": told}))
        assert (finding.health, "bf_continue" in finding.message) == (health, True)
    assert backfill_goes_on(facts({}, order="none")).health is OK


def test_a_limit_of_requests_is_warned_of() -> None:
    limited = {"SlurmctldParameters": "enable_configless,rl_enable,rl_bucket_size=50"}
    finding = request_limit(facts(limited))
    assert finding.health is WARNING
    assert "rl_bucket_size" in finding.remedy
    assert request_limit(facts({})).health is OK
    assert request_limit(facts(limited, order="none")).health is OK


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
    site = SlurmSite(controller_of(told), settings_of("observe", order), conf)
    notes = [note for note in make_plan(site).notes if "start no job at once" in note]
    assert [said in note for note in notes] == [True] * bool(said)
