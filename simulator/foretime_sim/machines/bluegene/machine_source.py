"""A Blue Gene by what a person calls it: a name, a description, or Cobalt's configuration."""

from __future__ import annotations

from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.file_kinds import exists
from foretime_sim.machines.bluegene.cobalt_partitions import read_cobalt_partitions
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.bluegene.machine_file import intrepid, read_bgp_machine

BUILT_IN = ("intrepid",)
"""Machines that come with the package."""


def find_bgp_machine(name: str, schedulable: Path | None = None) -> BgpMachine:
    """Give a machine that comes with the package, or read a description or Cobalt configuration.

    Parameters
    ----------
    name
        One of `BUILT_IN`, or a file: TOML or Cobalt's XML, told by its content.
    schedulable
        With Cobalt's XML, a file with the names of the bgp_partitions that jobs may have.

    Raises
    ------
    InputError
        If there is none of that name, a file is faulty, or schedulable has no use.

    Examples
    --------
    >>> from foretime_sim.machines.bluegene.machine_source import find_bgp_machine
    >>> find_bgp_machine("intrepid").sizes
    (512, 1024, 2048, 4096, 8192, 16384, 24576, 32768, 40960)
    """
    path = Path(name)
    is_there = exists(path)
    if not is_there and name not in BUILT_IN:
        raise InputError(
            f"{name}: there is no such file, nor a Blue Gene of that name; "
            f"there are: {', '.join(BUILT_IN)}"
        )
    what = "TOML file or Cobalt configuration"
    if is_there and read_text(path, what=what).lstrip().startswith("<"):
        return read_cobalt_partitions(path, schedulable)
    if schedulable is not None:
        raise InputError(f"{schedulable}: only a Cobalt configuration takes a list; leave it out")
    return read_bgp_machine(path) if is_there else intrepid()
