"""``foretime machine``, and ``--machine`` for simulate and replay, with the documented cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from foretime_sidecar.cli.application import app
from typer.testing import CliRunner

runner = CliRunner()


def test_the_documented_cluster_is_shown(cluster: Path) -> None:
    shown = runner.invoke(app, ["machine", str(cluster)])
    assert shown.exit_code == 0
    assert "30 nodes, 992 CPUs; counted: CR_CPU_Memory" in shown.output
    printed = json.loads(runner.invoke(app, ["machine", str(cluster), "--json"]).output)
    assert [group["nodes"] for group in printed["node_groups"]] == [24, 4, 2]
    long = printed["slurm_partitions"][1]
    assert (long["name"], long["max_time_s"], long["max_nodes_in_use"]) == ("long", 604_800, 16)


def test_simulate_on_the_documented_cluster(cluster: Path) -> None:
    command = ["simulate", "--generate", "lublin2003", "--jobs", "300", "--machine", str(cluster)]
    ran = runner.invoke(
        app, [*command, "--backfill", "none,easy,conservative", "--check", "--json"]
    )
    assert ran.exit_code == 0, ran.output
    text = ran.output
    # Requests of over 4 h are too long for "short", the default.
    assert "jobs left out that could never run on the machine: " in text
    assert '"machine_processors": 992' in text
    clash = runner.invoke(app, [*command, "--processors", "99"])
    assert "leave --processors out" in str(clash.exception)


def test_replay_on_the_documented_cluster(cluster: Path) -> None:
    command = ["replay", "--generate", "lublin2003", "--jobs", "300", "--machine", str(cluster)]
    ran = runner.invoke(app, [*command, "--warm-up", "0", "--check", "--json"])
    assert ran.exit_code == 0, ran.output
    assert '"machine": "' in ran.output


def test_documented_lines_of_python_run(repository: Path, cluster: Path) -> None:
    text = (repository / "docs" / "machines.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert block is not None
    from foretime_sim.models import lublin2003
    from foretime_sim.policies.policy import Policy

    names: dict[str, Any] = {
        "workload": lublin2003.generate(200, processors=992),
        "policy": Policy(),
    }
    exec(block[1].replace("cluster.toml", str(cluster)), names)  # the document's own lines
    schedule = names["schedule"]
    assert schedule.allocation is not None
    assert set(schedule.slurm_partition.tolist()) == {0}
