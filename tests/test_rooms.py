"""Rooms: what import-linter (`make lint`) does not see of them."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

PACKAGES = {
    "foretime_estimators": "simulator",
    "foretime_sim": "simulator",
    "foretime_sidecar": "sidecar",
    "foretime_studies": "simulator/studies",
}
CPP_ROOMS = (
    "core", "slurm", "estimators", "logs", "nodes", "bluegene", "planning", "planning/slack",
    "planning/nodes", "planning/pbs", "planning/slurm", "engine", "bindings",
)  # fmt: skip
"""The native core's, the lowest first."""
SQL = re.compile(
    r"\bselect\s.*\bfrom\b|\binsert\s+into\b|\bdelete\s+from\b|\bupdate\s+\w+\s+set\b"
    r"|\bon\s+conflict\b|\bpragma\b",
    flags=re.IGNORECASE | re.DOTALL,
)


def rooms(repository: Path) -> list[Path]:
    """Every folder of modules below the packages' own."""
    return [
        door.parent
        for package, root in PACKAGES.items()
        for door in (repository / root / package).rglob("*/__init__.py")
    ]


def imported_by(tree: ast.Module) -> set[str]:
    """The packages that a module imports."""
    return {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }


def test_every_room_says_what_it_holds(repository: Path) -> None:
    found = rooms(repository)
    assert found
    for room in found:
        doc = ast.get_docstring(ast.parse((room / "__init__.py").read_text()))
        assert doc, room


def test_the_public_names_of_a_room_are_there(repository: Path) -> None:
    named = 0
    for room in rooms(repository):
        doc = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
        listed = re.search(r"^Public names: (.*?)\.$", doc, flags=re.MULTILINE | re.DOTALL)
        for name in re.findall(r"`([\w.]+)`", listed[1] if listed else ""):
            named += 1
            module, _, base = name.rpartition(".")
            files = [room / f"{module}.py"] if module else [*room.glob("*.py")]
            defined = rf"^(?:async )?(?:def|class) {base}\b|^{base}\b[^\n=]*="
            there = any(re.search(defined, file.read_text(), re.MULTILINE) for file in files)
            assert there or (room / f"{name}.py").exists(), f"{room}: {name}"
    assert named


@pytest.mark.parametrize("package", ["foretime_estimators", "foretime_sim", "foretime_sidecar"])
def test_what_a_package_offers_at_its_door_is_there(package: str) -> None:
    door = importlib.import_module(package)
    assert door.__all__
    for name in door.__all__:
        assert getattr(door, name) is not None


def test_the_plugin_imports_nothing_of_ours(repository: Path) -> None:
    files = [*(repository / "plugin").rglob("*.py")]
    assert files
    for path in files:
        imported = imported_by(ast.parse(path.read_text()))
        assert not imported & PACKAGES.keys(), path


def test_sql_is_in_the_room_of_the_store_alone(repository: Path) -> None:
    sidecar = repository / "sidecar" / "foretime_sidecar"
    inside = 0
    for path in sidecar.rglob("*.py"):
        tree = ast.parse(path.read_text())
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docs = {
            ast.get_docstring(node, clean=False)
            for node in ast.walk(tree)
            if isinstance(node, documented)
        }
        found = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value not in docs
            and SQL.search(node.value)
        ]
        found += [name for name in imported_by(tree) if name in ("sqlite3", "sqlite_utils")]
        if path.parent == sidecar / "store":
            inside += len(found)
        else:
            assert not found, path
    assert inside, "it is not found where it is"


def test_rooms_of_the_native_core_include_only_rooms_below(repository: Path) -> None:
    core = repository / "simulator" / "cpp"
    files = [path for path in core.rglob("*") if path.suffix in (".cpp", ".hpp")]
    assert files
    for path in files:
        room = str(path.parent.relative_to(core))
        for included in re.findall(r'^#include "(.*)/', path.read_text(), flags=re.MULTILINE):
            # A room and its own sub-room belong together.
            same = included.split("/")[0] == room.split("/")[0]
            assert same or CPP_ROOMS.index(included) < CPP_ROOMS.index(room), (path, included)


def test_the_native_core_names_python_that_is_there(repository: Path) -> None:
    files = [
        f"/{path.relative_to(repository)}" for path in (repository / "simulator").rglob("*.py")
    ]
    named = {
        (path, name)
        for path in (repository / "simulator" / "cpp").rglob("*.[ch]pp")
        for name in re.findall(r"[\w/]+\.py\b", path.read_text())
    }
    assert named
    gone = [each for each in named if not any(file.endswith(f"/{each[1]}") for file in files)]
    assert gone == []
