"""``foretime simulate`` on a Blue Gene: which logs, which units, and what is written of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.logs.swf import read_swf, write_swf
from foretime_sim.machines.bluegene.machine_file import intrepid
from foretime_sim.models import lublin2003
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.bgp_jobs import with_bgp_machine
from foretime_sim.workloads.job_log import log_of_workload

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cores_log(tmp_path: Path) -> Path:
    """A log that counts cores, four to a node, and says so in its header."""
    made = lublin2003.generate(200, processors=163_840, load=0.8)
    path = tmp_path / "cores.swf"
    write_swf(log_of_workload(made, comments=["MaxNodes: 40960"]), path)
    return path


def test_a_log_in_cores_runs_on_intrepid(run: Run, cores_log: Path, tmp_path: Path) -> None:
    out = tmp_path / "schedule.swf"
    code, shown, err = run(
        "simulate", cores_log, "--machine", "intrepid", "--order", "wfp", "--check", "--json",
        "--swf-out", out,
    )  # fmt: skip
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(shown)
    assert document["workload"]["machine_processors"] == 40_960
    assert "4 of the log's processors are a node of intrepid." in document["workload"]["notes"]
    made = lublin2003.generate(200, processors=163_840, load=0.8)
    jobs = with_bgp_machine(made, intrepid(), processors_per_node=4)
    expected = simulate(jobs, Policy(order=Order.WFP))
    written = read_swf(out)
    assert (written.submit_time + written.wait).tolist() == expected.start_time.tolist()
    assert written.slurm_partitions is not None
    assert expected.bgp_partition is not None
    used = document["policies"][0]["bgp_partitions"]
    assert sum(part["jobs"] for part in used) == 200
    lasted = expected.end_time - expected.start_time
    for index, part in enumerate(used):
        there = expected.bgp_partition == index
        assert (part["jobs"], part["busy_s"]) == (there.sum(), lasted[there].sum()), part["name"]
    names = [intrepid().bgp_partitions[index].name for index in expected.bgp_partition]
    assert written.slurm_partitions.by_job() == names


def test_estimates_are_drawn_on_a_blue_gene_too(run: Run, cores_log: Path) -> None:
    words = ("--machine", "intrepid", "--estimates", "tsafrir", "--longest-estimate", "4-00:00:00")
    code, shown, err = run("simulate", cores_log, *words, "--json")
    assert (code, err) == (0, "")
    notes = json.loads(shown)["workload"]["notes"]
    drawn = "Tsafrir, Etsion and Feitelson (2005), at most 345,600 s (50% of jobs)"
    assert len([note for note in notes if drawn in note]) == 1


def test_passes_come_every_ten_seconds(run: Run, cores_log: Path) -> None:
    options = ("simulate", cores_log, "--machine", "intrepid", "--scheduling-interval", "0:10")
    code, shown, err = run(*options, "--json")
    assert (code, err) == (0, "")
    found = json.loads(shown)
    assert found["options"]["scheduling interval"] == "0:10"
    jobs = with_bgp_machine(
        lublin2003.generate(200, processors=163_840, load=0.8), intrepid(), processors_per_node=4
    )
    expected = simulate(jobs, Policy(scheduling_interval_s=10))
    assert (expected.start_time % 10 == 0).all()
    wait = (expected.start_time - jobs.submit_time).mean()
    assert found["policies"][0]["metrics"]["wait_mean_s"]["value"] == pytest.approx(wait)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--machine", "intrepd"], "there is no such file, nor a Blue Gene of that name"),
        (["--machine", "intrepid", "--processors", "4"], "leave --processors out"),
        (["--processors-per-node", "4"], "--processors-per-node is for a Blue Gene"),
        (["--machine", "intrepid", "--processors-per-node", "0"], "per-node 0: give at least 1"),
        (["--machine", "intrepid", "--backfill", "easy-sjbf"], "use easy .draining"),
        (["--machine", "intrepid", "--depth", "3"], "easy with a depth of 3: on a Blue Gene"),
        (["--scheduling-interval", "0"], "is no time at all"),
        (
            ["--scheduling-interval", "1", "--backfill", "planning"],
            "under planning jobs start at the very second",
        ),
    ],
)
def test_what_does_not_go_together(run: Run, cores_log: Path, options: list[str], why: str) -> None:
    code, out, err = run("simulate", cores_log, *options)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert re.search(why, err), err


def test_a_log_that_does_not_say_what_it_counts(run: Run, log: Path) -> None:
    code, _, err = run("simulate", log, "--machine", "intrepid")
    assert code == 2
    assert "give --processors-per-node, 1 if it counts nodes, 4 if it counts cores" in err
    code, _, err = run("simulate", log, "--machine", "intrepid", "--processors-per-node", "1")
    assert (code, err) == (0, "")


def test_blue_genes_are_not_for_a_replay(run: Run, cores_log: Path) -> None:
    code, _, err = run("replay", cores_log, "--machine", "intrepid", "--warm-up", "0")
    assert code == 2
    assert "intrepid is a Blue Gene, which neither Slurm nor PBS runs" in err


def test_a_described_blue_gene_is_simulated(run: Run, cores_log: Path, tmp_path: Path) -> None:
    described = tmp_path / "small.toml"
    described.write_text('name = "small"\nrows = 1\nracks_per_row = 2\nsizes = [512, 1024, 2048]\n')
    code, out, err = run("simulate", cores_log, "--machine", described)
    assert (code, err) == (0, "")
    assert "2,048 nodes of small" in out
