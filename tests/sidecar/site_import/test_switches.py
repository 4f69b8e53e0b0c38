"""Switches of topology/tree in what a site's commands print."""

from __future__ import annotations

import re
import shutil
from datetime import UTC
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.site_import.saved_output import read_folder
from foretime_sidecar.site_import.slurm_site import import_site
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.sites.slurm.switches import Switch


@pytest.fixture
def saved(repository: Path, tmp_path: Path) -> Path:
    """Outputs of Buffalo's micro cluster, to be changed."""
    return Path(
        shutil.copytree(repository / "tests/assets/slurm/26.05/ubccr-micro", tmp_path / "saved")
    )


def with_param(saved: Path, value: str) -> None:
    path = saved / "config.txt"
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("TopologyParam ")]
    assert len(kept) == len(lines) - 1
    at = next(i for i, line in enumerate(kept) if line.startswith("TopologyPlugin "))
    kept.insert(at, f"TopologyParam           = {value}\n")
    path.write_text("".join(kept))


def imported(saved: Path) -> SlurmSite:
    return import_site(read_folder(saved), UTC).site


def told(site: SlurmSite) -> list[str]:
    """What of the switches is not modelled."""
    return [sentence for sentence in site.not_modelled if re.search("switch|opology", sentence)]


def test_alike_nodes_on_two_switches_are_two_groups(saved: Path) -> None:
    (saved / "topology.txt").write_text(
        "SwitchName=odd Level=0 LinkSpeed=1 Nodes=m[1,3]\n"
        "SwitchName=even Level=0 LinkSpeed=1 Nodes=m[2,4]\n"
        "SwitchName=rest Level=0 LinkSpeed=1 Nodes=b1,g1,n[1-4]\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=b1,g1,m[1-4],n[1-4] Switches=odd,even,rest\n"
    )
    site = imported(saved)
    assert [group.nodes for group in site.machine.node_groups if group.name[0] == "m"] == [2, 2]
    assert site.switches[:3] == (
        Switch("odd", ("m",)),
        Switch("even", ("m-2",)),
        Switch("rest", ("b", "g", "n", "n-2")),
    )


def test_nodes_that_are_not_there_are_not_on_a_switch(saved: Path) -> None:
    text = (saved / "topology.txt").read_text().replace("Nodes=m[1-4]", "Nodes=m[1-100]")
    (saved / "topology.txt").write_text(text.replace(",m[1-4],", ",m[1-100],"))
    assert imported(saved).switches[1] == Switch("IBM", ("m",))


def test_nodes_on_no_switch_are_told(saved: Path) -> None:
    text = (
        (saved / "topology.txt")
        .read_text()
        .replace("IBN Level=0 LinkSpeed=1 Nodes=n[1-4]", "IBN Level=0 LinkSpeed=1 Nodes=n[1-2]")
    )
    (saved / "topology.txt").write_text(text)
    assert told(imported(saved)) == ["Nodes on no switch are given to no job: n[3-4]."]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Dragonfly", "TopologyParam Dragonfly: nodes are chosen by their order, not by switches."),
        ("RouteTree,TopoOptional", "TopologyParam TopoOptional: no job asks for switches, so"),
    ],
)
def test_other_choices_of_nodes_are_told(saved: Path, value: str, said: str) -> None:
    with_param(saved, value)
    site = imported(saved)
    assert site.switches == ()
    assert [sentence.startswith(said) for sentence in told(site)] == [True]


def test_words_that_change_no_choice_are_not_told(saved: Path) -> None:
    whole = imported(saved)
    with_param(saved, "RouteTree,NoInAddrAny")
    assert imported(saved) == whole


def test_an_order_by_switches_is_told(saved: Path) -> None:
    with_param(saved, "SwitchAsNodeRank")
    site = imported(saved)
    assert len(site.switches) == 4
    assert told(site) == ["TopologyParam SwitchAsNodeRank: nodes are in the order of their names."]


def test_missing_switches_are_told(saved: Path) -> None:
    (saved / "topology.txt").unlink()
    site = imported(saved)
    assert site.switches == ()
    assert [sentence.split(":")[0] for sentence in told(site)] == ["topology/tree"]


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (
            " Switches=IBN,IBM,IBG",
            "switch TOP has no Switches: the output is cut off; save it again",
        ),
        ("M,IBG", "[switches.TOP]: Switches: there is no switch 'IB'; did you mean"),
    ],
)
def test_an_output_that_is_cut_off_is_refused(saved: Path, cut: str, said: str) -> None:
    text = (saved / "topology.txt").read_text().rstrip()
    assert text.endswith(cut)
    (saved / "topology.txt").write_text(text.removesuffix(cut) + "\n")
    with pytest.raises(InputError) as error:
        imported(saved)
    assert said in str(error.value)


def test_a_line_of_topology_conf_that_names_no_switch_is_refused(saved: Path) -> None:
    (saved / "topology.txt").unlink()
    (saved / "topology.conf").write_text("SwitchName=a Nodes=n[1-4]\nBlockName=b Nodes=m1\n")
    with pytest.raises(InputError, match=r"topology\.conf:2: 'BlockName=b Nodes=m1' names no"):
        read_folder(saved)


def test_slurm_without_switches_prints_none(saved: Path) -> None:
    (saved / "topology.txt").write_text("")
    site = imported(saved)  # of topology/tree: their lack is told
    assert site.switches == ()
    assert "no output of scontrol show topology" in " ".join(told(site))
    config = saved / "config.txt"
    config.write_text(config.read_text().replace("topology/tree", "topology/flat"))
    assert told(imported(saved)) == []
