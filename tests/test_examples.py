"""Every public name has an example in its docstring, and every example gives what it says."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = {
    "foretime_estimators": "simulator",
    "foretime_sim": "simulator",
    "foretime_sidecar": "sidecar",
    "foretime_studies": "simulator/studies",
}
FOR_NOTEBOOKS = ("foretime_estimators", "foretime_sim")
"""Packages that people call from notebooks and scripts: the names of their rooms, too."""


def modules_with_examples() -> Iterator[str]:
    for package, root in PACKAGES.items():
        for path in sorted((REPOSITORY / root / package).rglob("*.py")):
            if ">>> " in path.read_text():
                parts = path.relative_to(REPOSITORY / root).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__")


def is_called(offered: object) -> bool:
    """Whether people call it: not a table of values, an error, or a protocol to be followed."""
    if inspect.isclass(offered):
        protocol = getattr(offered, "_is_protocol", False)
        return not protocol and not issubclass(offered, BaseException)
    return inspect.isfunction(offered)


def offered_at_the_doors() -> Iterator[tuple[str, object]]:
    for package in PACKAGES:
        door = importlib.import_module(package)
        for name in getattr(door, "__all__", ()):
            yield f"{package}.{name}", getattr(door, name)


def named_by_the_rooms() -> Iterator[tuple[str, object]]:
    """What the docstring of a room lists, in whichever of its modules it is."""
    for package in FOR_NOTEBOOKS:
        root = REPOSITORY / PACKAGES[package]
        for room in sorted((root / package).rglob("*/__init__.py")):
            doc = ast.get_docstring(ast.parse(room.read_text())) or ""
            listed = re.search(r"^Public names: (.*?)\.$", doc, re.MULTILINE | re.DOTALL)
            for name in re.findall(r"`([\w.]+)`", listed[1] if listed else ""):
                module, _, base = name.rpartition(".")
                for path in sorted(room.parent.glob(f"{module or '*'}.py")):
                    if re.search(rf"^(?:def|class) {base}\b", path.read_text(), re.MULTILINE):
                        where = ".".join(path.relative_to(root).with_suffix("").parts)
                        yield f"{where}.{base}", getattr(importlib.import_module(where), base)


CALLED = {
    name: offered
    for name, offered in (*offered_at_the_doors(), *named_by_the_rooms())
    if is_called(offered)
}


@pytest.mark.parametrize("name", CALLED)
def test_what_people_call_has_an_example_with_a_result(name: str) -> None:
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(CALLED[name]) or "")
    assert any(example.want for example in examples), f"{name}: no >>> that shows a result"


@pytest.mark.parametrize("name", [*modules_with_examples()])
def test_examples_give_what_they_say(name: str) -> None:
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    # Each begins with nothing imported, as in a new notebook.
    for found in finder.find(importlib.import_module(name), globs={"__name__": name}):
        runner.run(found)
    assert runner.tries
    assert not runner.failures
