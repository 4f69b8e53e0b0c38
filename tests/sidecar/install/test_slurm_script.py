"""Scripts are tried in Slurm's own Lua before they are put in place."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.install.lua_trial import lua_library, lua_version, missing_package, try_script
from foretime_sidecar.install.slurm_script import (
    attach_line,
    calls_the_hook,
    check_script,
    ready_made,
    with_line,
    without_line,
)

LINE = attach_line(Path("/etc/slurm/foretime.lua"), "/t", "/off")
GOOD = "function slurm_job_submit() return 0 end\nfunction slurm_job_modify() return 0 end\n"


def libraries() -> list[str]:
    """The Lua libraries of this machine, of Slurm's kind."""
    found = []
    for name in ("liblua5.1.so.0", "liblua5.3.so.0", "liblua5.4.so.0"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        found.append(name)
    return found


@pytest.fixture(params=libraries() or ["none"])
def library(request: pytest.FixtureRequest) -> str:
    if request.param == "none":
        pytest.skip("no Lua library here: install liblua5.1-0 or liblua5.3-0")
    name: str = request.param
    return name


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (GOOD, GOOD + LINE + "\n"),
        (GOOD + "return slurm.SUCCESS\n", f"{GOOD}{LINE}\nreturn slurm.SUCCESS\n"),
        (GOOD + "return 0", f"{GOOD}{LINE}\nreturn 0"),
        (GOOD + "return 0\n-- the end\n\n", f"{GOOD}{LINE}\nreturn 0\n-- the end\n\n"),
        (GOOD.rstrip("\n"), GOOD + LINE + "\n"),
        (GOOD.replace("\n", "\r\n"), GOOD.replace("\n", "\r\n") + LINE + "\r\n"),
    ],
)
def test_the_line_goes_to_the_end(script: str, expected: str) -> None:
    assert with_line(script, LINE) == expected
    assert with_line(expected, LINE) == expected
    assert calls_the_hook(expected)
    assert not calls_the_hook(without_line(expected))
    if script.endswith("\n"):
        assert without_line(expected) == script


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        ("foretime.submit(a, b, c)", True),
        ("-- foretime.submit(a, b, c)", False),
        ("--[[ foretime.submit\n]] x = 1", False),
    ],
)
def test_a_script_is_judged_by_whether_it_calls_the_hook(script: str, calls: bool) -> None:
    assert calls_the_hook(script) is calls


def test_what_loads_and_what_does_not(library: str, tmp_path: Path) -> None:
    script = tmp_path / "job_submit.lua"
    version = lua_version(library)
    for text, said in (
        ("function slurm_job_submit(", "<eof>|expected"),
        ("x = 1", "no function slurm_job_submit"),
        ("function slurm_job_submit() end", "no function slurm_job_modify"),
        ('error("the site\'s own")', "the site's own"),
        ("os.exit(3)", "exit code 3"),
    ):
        script.write_text(text)
        with pytest.raises(InputError, match=rf"does not load in Lua {version}.*(?:{said})"):
            try_script(library, script)
    script.write_text(f"slurm.log_info('x %d', slurm.ESLURM_INVALID)\n{GOOD}")
    try_script(library, script)


def test_the_shipped_script_and_the_line_load(
    library: str, tmp_path: Path, repository: Path
) -> None:
    module = (repository / "plugin/slurm/foretime.lua").read_text()
    check_script(library, ready_made(tmp_path, "/t", "/off"), module, tmp_path)
    line = attach_line(tmp_path / "foretime.lua", "/t", "/off")
    check_script(library, with_line(GOOD, line), module, tmp_path)
    with pytest.raises(InputError, match=f"{tmp_path}/job_submit.lua: it does not load"):
        check_script(library, with_line(GOOD, line), module + "(", tmp_path)
    with pytest.raises(InputError, match="quotes"):
        ready_made(tmp_path, '/t"', "/off")


def test_the_library_is_the_plugins(tmp_path: Path) -> None:
    plugin = tmp_path / "job_submit_lua.so"
    assert "slurm-wlm-basic-plugins" in missing_package(str(tmp_path))
    plugin.write_bytes(b"\0liblua.so\0liblua5.9.so\0liblua5.9.so.0\0libc.so.6\0")
    assert lua_library(plugin) == "liblua5.9.so.0"
    assert "install Lua 5.9" in missing_package(f"/none:{tmp_path}")
    plugin.write_bytes(b"\0libc.so.6\0")
    with pytest.raises(InputError, match="names no Lua library"):
        lua_library(plugin)
