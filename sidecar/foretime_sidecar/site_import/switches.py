"""Switches of topology/tree, as ``scontrol show topology`` tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foretime_sim.sites.slurm.switches import Switch

from foretime_sidecar.clients.cluster import Cluster
from foretime_sidecar.clients.slurm.site import expand_nodes
from foretime_sidecar.queue.alike_nodes import by_number
from foretime_sidecar.site_import.columns import nothing, one_record_a_line, records_of
from foretime_sidecar.site_import.node_names import compressed
from foretime_sidecar.site_import.scheduler_settings import Settings
from foretime_sidecar.site_import.site_output import COMMANDS, SiteOutput

_NO_TOPOLOGY = ("", "topology/none", "topology/default", "topology/flat")
_OTHER_CHOICES = {
    "dragonfly": "Dragonfly: nodes are chosen by their order, not by switches.",
    "topooptional": "TopoOptional: no job asks for switches, so nodes are chosen by their order.",
}
"""Words of TopologyParam with which `_eval_nodes_topo` does not choose."""


@dataclass(frozen=True, slots=True)
class NamedSwitch:
    """A switch: its name, names of the nodes of a leaf, names of the switches below another."""

    name: str
    nodes: frozenset[str]
    switches: tuple[str, ...]

    def of_groups(self, groups_of: Mapping[frozenset[str], tuple[str, ...]]) -> Switch:
        """Give it with the machine's groups, given by lists of nodes."""
        return Switch(self.name, groups_of.get(self.nodes, ()), self.switches)


def switches_of(
    output: SiteOutput, cluster: Cluster, settings: Settings
) -> tuple[NamedSwitch, ...]:
    """Read the switches, with those nodes that are the cluster's; note what is not modelled.

    Raises
    ------
    InputError
        If a switch above others does not say which.
    """
    plugin = settings.text("TopologyPlugin")
    if plugin.lower() in _NO_TOPOLOGY:
        return ()
    if plugin.lower() != "topology/tree":
        settings.note(f"{plugin}: nodes are chosen whatever switches or blocks they are on.")
        return ()
    said = settings.text("TopologyParam").lower().split(",")
    for word, why in _OTHER_CHOICES.items():
        if word in said:
            settings.note(f"TopologyParam {why}")
            return ()
    if "switchasnoderank" in said:
        settings.note("TopologyParam SwitchAsNodeRank: nodes are in the order of their names.")
    records = records_of(one_record_a_line(output.text("topology"), "SwitchName"))
    if not records:
        settings.note(
            f"topology/tree: no output of {COMMANDS['topology']} was given, so nodes are chosen"
            " whatever switches they are on."
        )
        return ()
    used = frozenset[str]().union(*(part.nodes for part in cluster.partitions))
    known = used & {node.name for node in cluster.nodes}
    found = []
    for values in records:
        name, below = values["SwitchName"], values.get("Switches", "")
        if nothing(below) and values.get("Level", "0") != "0":
            raise output.fault("topology", f"switch {name} has no Switches: the output is cut off")
        nodes = frozenset() if below else expand_nodes(values.get("Nodes", "")) & known
        found.append(NamedSwitch(name, nodes, tuple(sorted(expand_nodes(below), key=by_number))))
    bare = known.difference(*(each.nodes for each in found))
    if bare:
        settings.note(f"Nodes on no switch are given to no job: {compressed(bare)}.")
    return tuple(found)
