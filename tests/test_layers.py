"""Imports go one way: sidecar -> sim -> estimators; the plugin is alone."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

LAYERS = {
    "foretime_estimators": "simulator",
    "foretime_sim": "simulator",
    "foretime_sidecar": "sidecar",
}
# Needed for simulation only; a service node's daemon must run without them.
SIMULATION_ONLY = {
    "pandas", "matplotlib", "lupa", "pyarrow", "distributed", "dask_jobqueue", "sklearn",
    "playwright",
}  # fmt: skip
SIMULATION_COMMANDS = {"replay.py", "report.py", "workload.py"}


def imported(path: Path) -> set[str]:
    """Top-level packages that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("foretime_estimators", {"foretime_sim", "foretime_sidecar", "pandas", "lupa"}),
        ("foretime_sim", {"foretime_sidecar"}),
    ],
)
def test_imports_go_one_way(repository: Path, package: str, forbidden: set[str]) -> None:
    files = list((repository / LAYERS[package] / package).rglob("*.py"))
    assert files
    wrong = {str(path): imported(path) & forbidden for path in files if imported(path) & forbidden}
    assert not wrong


def test_the_daemon_does_not_need_the_simulation_extra(repository: Path) -> None:
    files = [
        path
        for path in (repository / "sidecar" / "foretime_sidecar").rglob("*.py")
        if path.name not in SIMULATION_COMMANDS
    ]
    wrong = {p: imported(p) & SIMULATION_ONLY for p in files if imported(p) & SIMULATION_ONLY}
    assert not wrong


def test_the_plugin_imports_nothing_of_ours(repository: Path) -> None:
    for path in (repository / "plugin").rglob("*.py"):
        assert not imported(path) & set(LAYERS), path


def test_the_architecture_page_lists_every_module(repository: Path) -> None:
    page = (repository / "docs" / "architecture.md").read_text()
    listed = set(re.findall(r"[\w*]+\.(?:py|cpp)", page))
    files = [
        path.name
        for folder in (*(f"{root}/{package}" for package, root in LAYERS.items()), "simulator/cpp")
        for path in (repository / folder).iterdir()
        if path.suffix in (".py", ".cpp") and path.name != "__init__.py"
    ]
    assert files
    missing = [name for name in files if not any(fnmatch(name, pattern) for pattern in listed)]
    assert not missing
