"""People read of partitions on Slurm and of queues on PBS: slurm_partition is a name in code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import client_answers

ROOT = Path(__file__).parents[1]
CODE = [
    *ROOT.glob("sidecar/foretime_sidecar/**/*.py"),
    *ROOT.glob("simulator/foretime_sim/**/*.py"),
    *ROOT.glob("plugin/pbs/*.py"),
]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *ROOT.glob("plugin/*.md"),
    *ROOT.glob("docs/*.md"),
]
WORD = re.compile(r"\b(?:slurm|bgp)_partitions?\b")
# Settings, keys of files and fields of classes, which have to be called by their names.
NAMES = re.compile(
    r"`[^`]*`|\[(?:slurm|bgp)_partitions\.\w+\]|\b(?:slurm|bgp)_partitions?(?= =|\.\w)"
    r"|\w\.slurm_partition"
)


def said(text: str) -> bool:
    """Whether a text for people says the name; one without a blank is a name itself."""
    return " " in text.strip() and WORD.search(NAMES.sub("", text)) is not None


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Texts in a module but for docstrings, which are for who reads the code."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.lineno, node.value


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_message_says_it(path: Path) -> None:
    assert [text for text in messages(path) if said(text[1])] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_says_it(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert [line for line in text.splitlines() if said(line)] == []


def test_the_api_does_not_say_it() -> None:
    def texts(part: object) -> Iterator[str]:
        if isinstance(part, dict):
            for name, value in part.items():
                if name in ("description", "summary") and isinstance(value, str):
                    yield value
                else:
                    yield from texts(value)
        elif isinstance(part, list):
            for value in part:
                yield from texts(value)

    found = list(texts(client_answers.described()))
    assert len(found) > 300
    assert [text for text in found if said(text)] == []
