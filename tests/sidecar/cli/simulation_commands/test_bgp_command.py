"""``foretime bgp show``: machines built in, described and read from Cobalt, printed and drawn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.application import app
from foretime_sim.machines.bluegene.floor import passed_midplanes, places, side_by_side
from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition
from foretime_sim.machines.bluegene.machine_file import intrepid
from typer.testing import CliRunner

from tests.support.workloads.bgp_descriptions import TWO_ROWS

runner = CliRunner()


def shown(*words: str) -> str:
    ran = runner.invoke(app, ["bgp", "show", *words])
    assert ran.exit_code == 0, ran.output
    return ran.output


def test_intrepid_is_shown_with_its_sizes_and_conflicts() -> None:
    output = shown()
    rows = [line.split() for line in output.splitlines()]
    assert ["1,024", "81", "41", "40", "40", "81", "of", "1x1x2"] in rows
    assert ["4,096", "27", "17", "10", "10", "22", "of", "1x2x4,", "5", "of", "2x1x4"] in rows
    assert "84 more conflict by wires alone" in output
    printed = json.loads(shown("intrepid", "--json"))
    assert (printed["nodes"], len(printed["midplanes"])) == (40_960, 80)
    assert len(printed["bgp_partitions"]) == 227
    assert len(printed["wiring_conflicts"]) == 84
    assert {"nodes": 512, "bgp_partitions": 82, "together": 80} in printed["sizes"]


def test_one_bgp_partition_is_shown_on_the_floor_with_its_cables() -> None:
    output = shown("--bgp-partition", "ANL-R20-1024")
    floor = [line.split() for line in output.splitlines()]
    assert ["M0", "##", "==", *[".."] * 6] in floor
    assert ["row", "2", "M1", "##", "==", *[".."] * 6] in floor
    assert "conflicts by wires alone with 2\n  ANL-R21-1024\n  MESH-R21-1024\n" in output
    assert "cables in Z: 4\n  R20-M0 to R21-M0\n" in output
    printed = json.loads(shown("--bgp-partition", "ANL-R20-1024", "--json"))
    assert printed["wiring_conflicts"] == ["ANL-R21-1024", "MESH-R21-1024"]
    assert printed["passed_midplanes"] == ["R21-M0", "R21-M1"]
    assert printed["shape"] == [1, 1, 2]


def test_a_described_machine_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "two-rows.toml"
    path.write_text(TWO_ROWS)
    assert "two-rows: 8,192 nodes of 4 cores, 16 midplanes of 512" in shown(str(path))


def test_a_cobalt_configuration_shows_the_same_as_the_description(
    bluegene: Callable[[str], Path],
) -> None:
    words = [str(bluegene("intrepid-partitions.xml.gz")), "--schedulable"]
    printed = json.loads(shown(*words, str(bluegene("intrepid-schedulable.txt")), "--json"))
    ours = json.loads(shown("--json"))
    by_name = {part["name"]: part["midplanes"] for part in ours["bgp_partitions"]}
    assert {part["name"]: part["midplanes"] for part in printed["bgp_partitions"]} == by_name
    assert "294 partitions" in shown(str(bluegene("mira-partitions.xml.gz")))


@pytest.mark.parametrize("words", [[], ["--bgp-partition", "ANL-R30-R47-16384"]])
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures_are_drawn_in_either_format(words: list[str], ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"floor.{ending}"
    shown("intrepid", "--plot", str(path), *words)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    assert len(content) > 5_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["intrepit"], "intrepit: there is no such file, nor a Blue Gene of that name"),
        (["--bgp-partition", "ANL-R99"], "intrepid has no partition 'ANL-R99'"),
        (["--bgp-partition", "ANL-R99"], "There are 227, such as: ANL-R00-M0-512, "),
        (["--schedulable", "x.txt"], "only a Cobalt configuration takes a list"),
        (["--plot", "/nowhere/x.png"], "--plot /nowhere/x.png: can't be written"),
        (["--plot", "x.pdf"], "end it in .png or .svg"),
    ],
)
def test_unknown_names_are_refused(words: list[str], message: str) -> None:
    ran = runner.invoke(app, ["bgp", "show", *words])
    assert isinstance(ran.exception, InputError)
    assert message in str(ran.exception)


def test_wires_past_a_row_are_told_from_cables_of_its_own() -> None:
    """Rows 3 and 4 are joined past row 2; rows 0 and 1 by cables of their own."""
    machine = intrepid()
    rows = passed_midplanes(machine, machine.bgp_partition_index("ANL-R30-R47-16384"))
    assert {machine.midplane_names[midplane][:2] for midplane in rows} == {"R2"}
    assert not passed_midplanes(machine, machine.bgp_partition_index("ANL-R00-R17-16384"))


def test_side_by_side_run_together() -> None:
    machine = intrepid()
    for nodes in machine.sizes:
        chosen = side_by_side(machine, nodes)
        assert machine.conflicts[chosen][:, chosen].sum() == len(chosen)


def test_midplanes_without_a_place_are_refused() -> None:
    machine = BgpMachine("m", 512, ("left",), (BgpPartition("a", 512, (0,)),))
    with pytest.raises(InputError, match="midplane 'left': expected a name like R00-M1"):
        places(machine)
