"""Where the plugin's files lie: in a checkout, or where an installation put them."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from foretime_estimators.jobs.errors import InputError


def plugin_file(name: str) -> Path:
    """Give the path of a file under ``plugin/``, e.g. ``slurm/foretime.lua``.

    Raises
    ------
    InputError
        If it is neither in the checkout that this package runs from nor in the installation.

    Examples
    --------
    >>> from foretime_sim.mocks.plugin_files import plugin_file
    >>> plugin_file("slurm/foretime.lua").name
    'foretime.lua'
    """
    folders = (
        Path(__file__).resolve().parents[3] / "plugin",
        Path(sysconfig.get_path("data")) / "share" / "foretime" / "plugin",
    )
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    places = " or ".join(map(str, folders))
    raise InputError(f"plugin file {name!r} is not in {places}: install foretime again")
