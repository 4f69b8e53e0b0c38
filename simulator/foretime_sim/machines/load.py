"""A machine as a person names it: a description of nodes or a Blue Gene, or a known one's name."""

from __future__ import annotations

from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.file_kinds import exists
from foretime_sim.files.toml_text import parse_toml
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.bluegene.machine_source import find_bgp_machine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.machine_file import parse_machine

BLUE_GENE_KEYS = {"rows", "racks_per_row"}
"""One of these makes a TOML file the description of a Blue Gene."""


def read_any_machine(path: Path) -> Machine | BgpMachine:
    """Read a machine's description, told by its content, or give a Blue Gene by its name.

    Parameters
    ----------
    path
        TOML with node_groups and slurm_partitions (`foretime_sim.machines.machine_file`); a Blue
        Gene's TOML or Cobalt configuration, or its name
        (`foretime_sim.machines.bluegene.machine_source`).

    Raises
    ------
    InputError
        If there is no such file and no Blue Gene of that name, or the file is faulty.

    Examples
    --------
    >>> from pathlib import Path
    >>> from foretime_sim import read_any_machine
    >>> machine = read_any_machine(Path("intrepid"))
    >>> machine.nodes
    40960
    """
    if not exists(path):
        return find_bgp_machine(str(path))
    text = read_text(path, what="TOML file or Cobalt configuration")
    if text.lstrip().startswith("<") or _top_level_keys(text) & BLUE_GENE_KEYS:
        return find_bgp_machine(str(path))
    return parse_machine(text, source=str(path))


def _top_level_keys(text: str) -> set[str]:
    try:
        return set(parse_toml(text, "machine"))
    except InputError:
        return set()  # its reader says what is wrong
