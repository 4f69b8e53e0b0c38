"""Help and one command's start import nothing of the other commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import base_install_daemon

HEAVY = {"pandas", "matplotlib", "lupa", "fastapi", "uvicorn", "sqlite_utils", "requests"}
MODULES = """
import sys
from foretime_sidecar.cli import main
sys.argv = ["foretime", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(*sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", MODULES, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stderr.splitlines()[-1].split())


def test_help_imports_no_command() -> None:
    imported = imported_by("--help")
    assert not imported & (HEAVY | {"numpy", "pydantic", "foretime_sim"})


@pytest.mark.parametrize("more", [[], ["--json"], ["--backfill", "easy,none"]])
def test_simulating_needs_no_table_library_and_no_server(more: list[str]) -> None:
    imported = imported_by("simulate", "--generate", "lublin2003", "--jobs", "50", *more)
    assert "foretime_sim" in imported
    assert not imported & HEAVY


WITHOUT_EXTRA = f"""
import sys
EXTRAS = {base_install_daemon.EXTRAS!r}
sys.modules |= dict.fromkeys(EXTRAS)
sys.argv = ["foretime", *sys.argv[1:]]
from foretime_sidecar.cli import main
main()
"""


def without_extra(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Call ``foretime`` as on a service node, where foretime[sim] is not installed."""
    command = [sys.executable, "-c", WITHOUT_EXTRA, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_command_that_needs_the_extra_says_so() -> None:
    done = without_extra("replay", "--generate", "lublin2003")
    assert done.returncode == 1
    assert "pip install 'foretime[sim]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_commands_do_without_the_extra() -> None:
    for arguments in (
        ("--help",),
        ("serve", "--help"),
        ("wait", "--help"),
        ("config", "show"),
        ("simulate", "--generate", "lublin2003"),
    ):
        done = without_extra(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def test_the_daemon_serves_page_and_forecasts_without_any_extra(tmp_path: Path) -> None:
    command = [sys.executable, base_install_daemon.__file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    paths = [path.partition("?")[0] for path in base_install_daemon.PATHS]
    assert done.stdout.splitlines() == [f"{path} 200" for path in paths]
