"""A site's job_submit.lua, with the hook in it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_sim.mocks.plugin_files import plugin_file

from foretime_sidecar.install.lua_trial import try_script

_MARK = "-- Foretime"
_RETURN = re.compile(r"^return\b[^\n]*\n?(?:\s*(?:--[^\n]*)?\n?)*\Z", re.MULTILINE)
_SHIPPED = {
    "folder": '"/etc/slurm/?.lua;"',
    "table": '"/var/lib/foretime/table/foretime.table"',
    "disable_file": '"/etc/foretime/foretime.off"',
}


def attach_line(module: Path, table: str, disable_file: str) -> str:
    """Give the one line that puts the hook behind a site's own functions."""
    settings = f"table = {_lua(table)}, disable_file = {_lua(disable_file)}"
    return (
        f"xpcall(function() dofile({_lua(str(module))}).attach {{ {settings} }} end, "
        f"slurm.log_error) {_MARK}"
    )


def _lua(text: str) -> str:
    if re.search(r'["\\\n\r]', text):
        raise InputError(f"{text!r}: a path with quotes, backslashes or line ends can't be used")
    return f'"{text}"'


def ready_made(folder: Path, table: str, disable_file: str) -> str:
    """Give the script for a site that has none."""
    text = plugin_file("slurm/job_submit.lua").read_text(encoding="utf-8")
    new = {"folder": _lua(f"{folder}/?.lua;"), "table": _lua(table)}
    new["disable_file"] = _lua(disable_file)
    for name, shipped in _SHIPPED.items():
        if shipped not in text:
            raise InputError(f"job_submit.lua has no {shipped}: install foretime again")
        text = text.replace(shipped, new[name])
    return text


def calls_the_hook(text: str) -> bool:
    """Whether a script calls the hook, by the line or by hand; in comments it does not count."""
    code = re.sub(r"--[^\n]*", "", re.sub(r"--\[\[.*?\]\]", "", text, flags=re.DOTALL))
    return "foretime.submit" in code or ").attach {" in code


def with_line(text: str, line: str) -> str:
    """Put the line into a script: at its end, before a return that ends it; a former one goes."""
    text = re.sub(rf"^[^\n]*{re.escape(_MARK)}\r?\n", "", text, flags=re.MULTILINE)
    newline = "\r\n" if "\r\n" in text else "\n"
    last = _RETURN.search(text)
    at = last.start() if last else len(text)
    head, tail = text[:at], text[at:]
    if head and not head.endswith("\n"):
        head += newline
    return f"{head}{line}{newline}{tail}"


def without_line(text: str) -> str:
    """Take the line out of a script."""
    return re.sub(rf"^[^\n]*{re.escape(_MARK)}\r?\n", "", text, flags=re.MULTILINE)


def check_script(library: str, script: str, module: str, folder: Path) -> None:
    """Load a script and the hook's module as slurmctld would, before they are put in place.

    Parameters
    ----------
    library
        Slurm's Lua library.
    script, module
        The texts of job_submit.lua and foretime.lua.
    folder
        Where they are to be put.

    Raises
    ------
    InputError
        If they do not load.
    """
    with tempfile.TemporaryDirectory(prefix="foretime-") as name:
        place = Path(name)
        (place / "foretime.lua").write_text(module, encoding="utf-8", errors="surrogateescape")
        trial = place / "job_submit.lua"
        here = script.replace(f"{folder}/foretime.lua", f"{place}/foretime.lua")
        here = here.replace(f"{folder}/?.lua", f"{place}/?.lua")
        # What the hook's own file does wrong must show, too, not be caught by the line.
        trial.write_text(
            f'dofile("{place}/foretime.lua")\n{here}', encoding="utf-8", errors="surrogateescape"
        )
        try:
            try_script(library, trial)
        except InputError as error:
            raise InputError(str(error).replace(str(trial), f"{folder}/job_submit.lua")) from error
