"""A short name for the code that results come from, so that what is kept is not taken for new."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import foretime_estimators
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
    simulator = Path(__file__).parent
    files = [
        *Path(foretime_estimators.__file__).parent.glob("*.py"),
        *simulator.glob("*.py"),
        *(file for file in (simulator / "waits").glob("*.py") if file.stem not in without),
    ]
    found = hashlib.sha256()
    for file in [*sorted(files), Path(_core.__file__)]:
        found.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        found.update(file.read_bytes())
    return found.hexdigest()[:16]
