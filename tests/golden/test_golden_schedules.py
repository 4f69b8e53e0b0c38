"""Schedules worked out by hand, each drawn in its file: the engine and the reference find them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_sim.engine import engine
from foretime_sim.engine.schedule import Schedule, StartedBy
from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition
from foretime_sim.policies.families import Compression, family_named, with_settings
from foretime_sim.policies.guard import GuardBy, parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.reference import bgp as reference_bgp
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload

FILES = sorted(Path(__file__).parent.glob("*.toml"))


def policy_of(chosen: dict[str, Any]) -> Policy:
    return Policy(
        order=Order.parse(chosen.get("order", "fcfs")),
        backfill=with_settings(
            family_named(chosen.get("backfill", "easy")),
            depth=chosen.get("depth", 1),
            ageing_s=chosen.get("ageing_s"),
            compression=Compression.parse(chosen.get("compression", "reservation-order")),
            guard=parse_guard(
                chosen.get("guard_s"),
                GuardBy.parse(chosen.get("guard_by", "requested-plan")),
                chosen.get("guard_share", 0.0),
            ),
        ),
        correction=Correction.parse(chosen.get("correction", "requested")),
        correction_steps=chosen.get("correction_steps"),
        roles=Roles.parse(chosen.get("roles", "111")),
        event_order=EventOrder.parse(chosen.get("event_order", "per-timestep")),
    )


def runs() -> list[Any]:
    found = []
    for file in FILES:
        golden = tomllib.loads(file.read_text(encoding="utf-8"))
        found += [
            pytest.param(
                golden, run, id=f"{file.stem}-{'-'.join(map(str, run['policy'].values()))}"
            )
            for run in golden["run"]
        ]
    return found


def blue_gene_of(golden: dict[str, Any]) -> BgpMachine | None:
    if "bgp_partitions" not in golden:
        return None
    midplanes, nodes = golden["midplanes"], golden["nodes_per_midplane"]
    parts = [
        BgpPartition(name, nodes * len(of), tuple(midplanes.index(midplane) for midplane in of))
        for name, of in golden["bgp_partitions"].items()
    ]
    return BgpMachine("golden", nodes, tuple(midplanes), tuple(parts))


def plain(workload: Workload, *how: Any) -> Schedule:
    if workload.machine is None:
        return reference.simulate(workload, *how)
    return reference_bgp.simulate(workload, *how)


def column(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("simulate", [engine.simulate, plain], ids=["core", "plain"])
@pytest.mark.parametrize(("golden", "run"), runs())
def test_schedule_is_as_worked_out_by_hand(
    simulate: Any, golden: dict[str, Any], run: dict[str, Any]
) -> None:
    submit, processors, actual, requested, scheduled = column(golden["jobs"]).T
    names = column(list(range(len(submit))))
    jobs = Workload(
        "golden", golden["machine_processors"], None, names, submit, processors, actual, requested,
        machine=blue_gene_of(golden),
    )  # fmt: skip
    priority = column(run["priority"]) if "priority" in run else None
    schedule = simulate(jobs, policy_of(run["policy"]), scheduled, None, priority)
    assert schedule.start_time.tolist() == run["start"]
    assert schedule.end_time.tolist() == (column(run["start"]) + actual).tolist()
    if "first_planned_start" in run:
        assert schedule.first_planned_start.tolist() == run["first_planned_start"]
    if "started_by" in run:
        assert [StartedBy(how).name.lower() for how in schedule.started_by] == run["started_by"]
    if "bgp_partition" in run:
        offered = list(golden["bgp_partitions"])
        assert [offered[index] for index in schedule.bgp_partition] == run["bgp_partition"]
    if "corrections" in run:
        assert schedule.corrections.tolist() == run["corrections"]
    if "guard_activations" in run:
        assert schedule.guard_activations == run["guard_activations"]
