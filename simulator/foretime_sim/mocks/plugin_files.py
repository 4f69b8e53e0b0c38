"""Where the plugin's files lie."""

from __future__ import annotations

from pathlib import Path

from foretime_sim.files.shipped_files import shipped_file


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
    return shipped_file("plugin", name)
