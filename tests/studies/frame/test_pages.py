"""The pages of studies have what their commands wrote, so that no number is typed in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from foretime_studies.frame.page import page_tables
from foretime_studies.frame.tables import fill_page

from tests.conftest import REPOSITORY

PAGES = sorted(file.parent.name for file in REPOSITORY.glob("docs/studies/*/results.json"))
WITH_EVERY_TABLE = (
    *("downey1997", "graham2021", "runtime-accuracy", "streit2002-beyond", "talby1999", "tang2010"),
)
OTHER_COMMAND = ("waits/", "gaussier2015/clipped.json")
"""Results of several commands, of which the page says how they go."""


def shown(page: Path) -> set[str]:
    return set(re.findall(r"<!-- ([\w./-]+) -->", page.read_text(encoding="utf-8")))


def keys(file: Path) -> set[str]:
    return {table["key"] for table in json.loads(file.read_text(encoding="utf-8"))["tables"]}


def test_the_pages_are_found() -> None:
    assert {*WITH_EVERY_TABLE, "gaussier2015", "gaussier2015-beyond", "waits"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_commands_wrote(name: str, repository: Path) -> None:
    folder = repository / "docs" / "studies" / name
    page = folder.with_suffix(".md")
    text = page.read_text(encoding="utf-8")
    assert fill_page(text, page_tables(folder)) == text
    assert shown(page) & keys(folder / "results.json")
    for file in folder.glob("*.json"):
        if not f"{name}/{file.name}".startswith(OTHER_COMMAND):
            assert json.loads(file.read_text(encoding="utf-8"))["command"] in text
    for linked in re.findall(rf"\]\(({name}/[^)]*)\)", text):
        assert (page.parent / linked).is_file()


@pytest.mark.parametrize("name", WITH_EVERY_TABLE)
def test_a_page_shows_every_table(name: str, repository: Path) -> None:
    folder = repository / "docs" / "studies" / name
    of_others = {key for key in shown(folder.with_suffix(".md")) if "/" in key}
    assert shown(folder.with_suffix(".md")) - of_others == keys(folder / "results.json")


def test_the_page_of_tang2010_says_what_its_report_says_first(repository: Path) -> None:
    folder = repository / "docs" / "studies" / "tang2010"
    page = folder.with_suffix(".md").read_text(encoding="utf-8")
    notes = json.loads((folder / "results.json").read_text(encoding="utf-8"))["notes"]
    assert notes
    assert all(note in page for note in notes)


def test_the_page_of_waits_shows_what_was_found_elsewhere(repository: Path) -> None:
    wanted = {"curie-simulated/targets", "curie-logged/targets", "graham2021/published"}
    assert wanted <= shown(repository / "docs" / "studies" / "waits.md")
