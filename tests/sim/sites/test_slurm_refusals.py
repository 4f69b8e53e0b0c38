"""What of a Slurm site is refused: the engine and the specification refuse the same preemption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim import Policy, simulate
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.policies.slurm import Slurm
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.sites.slurm.limits import Qos
from foretime_sim.sites.slurm.refusals import unmodelled_refusal
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite

from tests.support.slurm.slurm_jobs import Asked, workload_of

MACHINE = Machine((NodeGroup("cpu", 8, 4),), (SlurmPartition("low", ("cpu",), default=True),))
ONE_JOB = replace(workload_of([Asked(0, 60, 60)])[0], machine=MACHINE, machine_processors=32)


def site(**more: Any) -> SlurmSite:
    values: dict[str, Any] = {
        "qos": {"low": Qos("low"), "high": Qos("high", preempt=("low",))},
        "preempt_type": "preempt/qos",
        "preempt_mode": "REQUEUE",
    }
    return SlurmSite(MACHINE, **{**values, **more})


def refused(run: Callable[[], object]) -> str:
    """Give what a run is refused with; empty where it is not."""
    try:
        run()
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "PreemptType=preempt/qos with PreemptMode=REQUEUE is not simulated"),
        ({"preempt_mode": "SUSPEND,GANG"}, "PreemptMode=SUSPEND,GANG is not simulated"),
        ({"rules": {"low": PartitionRules(preempt_mode="SUSPEND")}}, "partition low: PreemptMode"),
        ({"preempt_mode": "OFF"}, None),
        ({"qos": {"low": Qos("low")}}, None),
        ({"qos": {"low": Qos("low")}, "preempt_mode": "REQUEUE,WITHIN"}, "PreemptType=preempt/qos"),
    ],
)
def test_a_site_whose_preemption_is_not_simulated_is_refused(
    more: dict[str, Any], told: str | None
) -> None:
    slurm = site(**more)
    refusal = refused(lambda: simulate(ONE_JOB, Policy(backfill=Slurm(slurm))))
    assert refused(lambda: simulate_slurm(ONE_JOB, slurm)) == refusal
    assert refusal.startswith("" if told is None else f"site: {told}")
    assert bool(refusal) == bool(told)


def test_the_remedy_is_one_that_is_taken() -> None:
    for mode in ("REQUEUE", "CANCEL", "SUSPEND", "GANG"):
        refusal = unmodelled_refusal(site(preempt_mode=mode)) or ""
        assert refusal.endswith("Set PreemptMode to OFF to see the site without it")
    assert unmodelled_refusal(site(preempt_mode="OFF")) is None
