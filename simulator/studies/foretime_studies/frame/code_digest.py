"""A short name for the code that results come from, so that what is kept is not taken for new."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import foretime_estimators
import foretime_sim
from foretime_sim import _core


@functools.cache
def code_digest(without: frozenset[str] = frozenset()) -> str:
    """Hash all that decides what is simulated or forecast: estimators, simulator, native core.

    Not studies: how results are scored and written does not change them. As of the first call.

    Parameters
    ----------
    without
        Names of modules of ``foretime_sim.waits`` on which what is kept does not depend.
    """
    core = Path(_core.__file__)
    files = {core.name: core}
    for package in (foretime_estimators, foretime_sim):
        folder = Path(str(package.__file__)).parent
        for file in folder.rglob("*.py"):
            if not (file.parent == folder / "waits" and file.stem in without):
                files[str(file.relative_to(folder.parent))] = file
    found = hashlib.sha256()
    for name, file in sorted(files.items()):
        found.update(f"{name}\0{file.stat().st_size}\0".encode())
        found.update(file.read_bytes())
    return found.hexdigest()[:16]
