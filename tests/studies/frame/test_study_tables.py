"""Tables of studies, and the page that is kept at them."""

from __future__ import annotations

import json

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_studies.frame.report import to_lines
from foretime_studies.frame.tables import Column, StudyTable, fill_page
from hypothesis import given
from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda held: st.lists(held) | st.dictionaries(st.text(), held),
)  # fmt: skip

TABLE = StudyTable(
    "one",
    "One",
    (Column("name"), Column("share", ".1%"), Column("jobs", ",d")),
    (("a", 0.12345, 1_234), ("b", None, 5), ("c", float("nan"), 6)),
    "A note.",
)


def test_markdown_is_for_people_and_csv_for_machines() -> None:
    assert TABLE.to_markdown().splitlines() == [
        "| name   |   share |   jobs |",
        "|:-------|--------:|-------:|",
        "| a      |   12.3% |  1,234 |",
        "| b      |       – |      5 |",
        "| c      |       – |      6 |",
        "",
        "A note.",
    ]
    assert TABLE.to_csv().splitlines()[:3] == ["name,share,jobs", "a,0.12345,1234", "b,,5"]


def test_json_gives_the_same_table_again() -> None:
    text = json.dumps(TABLE.to_json(), allow_nan=False)
    assert StudyTable.from_json(json.loads(text)).to_markdown() == TABLE.to_markdown()


def test_what_is_infinite_is_no_number() -> None:
    table = StudyTable.of("x", "X", [[("a", float("inf"), ".1%"), ("b", float("-inf"))]])
    assert json.loads(json.dumps(table.to_json(), allow_nan=False))["rows"] == [[None, None]]
    assert table.written == [["–", "–"]]
    assert table.to_csv() == "a,b\n,\n"


def test_a_row_of_a_table_is_a_line_of_json() -> None:
    rows = [line.strip(" ,") for line in to_lines(TABLE.to_json()).splitlines()]
    assert [row for row in rows if row.startswith("[")] == [
        '["a", 0.12345, 1234]',
        '["b", null, 5]',
        '["c", null, 6]',
    ]


@given(document=JSON)
def test_json_in_lines_is_the_same_json(document: object) -> None:
    assert json.dumps(json.loads(to_lines(document))) == json.dumps(document)


def test_a_row_has_a_cell_a_column() -> None:
    with pytest.raises(ValueError, match="1 cells in 2 columns"):
        StudyTable("x", "X", (Column("a"), Column("b")), ((1,),))


def test_a_page_is_filled_and_filled_again() -> None:
    page = "# Page\n\n<!-- one -->\nold\n<!-- /one -->\n\nprose\n"
    filled = fill_page(page, [TABLE])
    assert "old" not in filled
    assert TABLE.to_markdown() in filled
    assert filled.endswith("<!-- /one -->\n\nprose\n")
    assert fill_page(filled, [TABLE]) == filled
    with pytest.raises(InputError, match="a table 'two'; there are: one"):
        fill_page("<!-- two -->\n<!-- /two -->\n", [TABLE])
    with pytest.raises(InputError, match="does not end its table 'one'"):
        fill_page("<!-- one -->\n", [TABLE])
