"""Loads a job_submit.lua in the Lua that Slurm's own plugin is linked with, to see that it loads.

A script that does not load keeps slurmctld from starting. The Lua library itself is used, in a
process of its own, so that no Lua program and no Python package of one is needed, and a script that
hangs or ends its process harms nobody.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.clients.child_process import spawn

PLUGIN = "job_submit_lua.so"
_PACKAGES = (
    "install Slurm's job_submit/lua plugin (Debian: slurm-wlm-basic-plugins; elsewhere it is part "
    "of a slurm built with lua-devel)"
)
_LIBRARY = re.compile(rb"\0(liblua[A-Za-z0-9.+-]*?\.so(?:\.[0-9.]+)?)\0")
_PATIENCE_S = 20


def plugin_of(plugin_dirs: str) -> Path | None:
    """Find Slurm's plugin in ``PluginDir`` (several parted by colons); ``None`` if not there."""
    for folder in filter(None, plugin_dirs.split(":")):
        if (Path(folder) / PLUGIN).is_file():
            return Path(folder) / PLUGIN
    return None


def lua_library(plugin: Path) -> str:
    """Give the name of the Lua library that the plugin needs, such as ``liblua5.1.so.0``.

    Raises
    ------
    InputError
        If it names none.
    """
    names = [name.decode() for name in _LIBRARY.findall(plugin.read_bytes())]
    exact = [name for name in names if re.search(r"\d\.\d.*\.so\.\d|\.so\.\d\.\d", name)]
    if not (exact or names):
        raise InputError(f"{plugin}: it names no Lua library; {_PACKAGES}")
    library: str = (exact or names)[0]
    return library


def lua_version(library: str) -> str:
    """Give the version in a library's name, "?" if it has none."""
    found = re.search(r"\d\.\d", library)
    return found[0] if found else "?"


def missing_package(plugin_dirs: str) -> str:
    """Say what is missing for job_submit/lua; "" if nothing is."""
    plugin = plugin_of(plugin_dirs)
    if plugin is None:
        return f"no {PLUGIN} in {plugin_dirs or 'PluginDir'}: {_PACKAGES}"
    library = lua_library(plugin)
    try:
        ctypes.CDLL(library)
    except OSError:
        return f"no {library}, which {plugin} needs: install Lua {lua_version(library)}"
    return ""


def try_script(library: str, script: Path) -> None:
    """Load a script as slurmctld does at its start.

    Raises
    ------
    InputError
        If it does not load, or lacks a function that Slurm calls.
    """
    program = Path(__file__).with_name("lua_state.py")
    command = [sys.executable, "-I", "-S", str(program), library, str(script)]
    try:
        done = spawn(command, _PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{script}: it did not load within {_PATIENCE_S} s; slurmctld would hang in it"
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise InputError(
            f"{script}: it does not load in Lua {lua_version(library)}, and slurmctld would not "
            f"start with it: {said[-1] if said else f'exit code {done.returncode}'}"
        )
