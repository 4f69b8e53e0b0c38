"""Help and one command's start import nothing of the other commands."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
