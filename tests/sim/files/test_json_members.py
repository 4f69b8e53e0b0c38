"""Members picked out of a JSON text, against those of the text decoded whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foretime_sim.files.json_members import pick_members
from hypothesis import given
from hypothesis import strategies as st

GROUPS = (("id",), ("user", "nodes"), ("none",))
NAMES = st.sampled_from(["id", "user", "nodes", "more", 'odd"\\', "\t", "é", ""])
PLAIN = NAMES.filter(lambda name: json.dumps(name)[1:-1] == name)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(PLAIN, VALUES, max_size=5)


def _write(value: Any, indent: int | None, *, as_ascii: bool) -> bytes:
    return json.dumps(value, indent=indent, ensure_ascii=as_ascii).encode(errors="replace")


@given(st.lists(OBJECTS, max_size=4), OBJECTS, st.sampled_from([None, 0, 2]), st.booleans())
def test_what_is_picked_is_what_the_text_says(
    jobs: list[dict[str, Any]], more: dict[str, Any], indent: int | None, as_ascii: bool
) -> None:
    text = _write({**more, "jobs": jobs, "last": []}, indent, as_ascii=as_ascii)
    whole = json.loads(text)
    picked = pick_members(text, "jobs", GROUPS)
    assert picked is not None
    assert json.loads(picked.rest) == {**whole, "jobs": []}
    parts = [tuple(map(json.loads, each)) for each in picked.of_each()]
    assert parts == [
        tuple({name: job[name] for name in group if name in job} for group in GROUPS)
        for job in whole["jobs"]
    ]


TEXT = rb'{"a": "\\\"]}", "jobs": [{"id": 1, "x": [{"y": "}"}]}, {"user": "ann"}], "b": {}} '


def test_a_text_that_is_cut_off_is_not_understood() -> None:
    picked = pick_members(TEXT, "jobs", GROUPS)
    assert picked is not None
    assert list(picked.of_each()) == [
        (b'{"id": 1}', b"{}", b"{}"),
        (b"{}", b'{"user": "ann"}', b"{}"),
    ]
    for end in range(len(TEXT) - 1):
        assert pick_members(TEXT[:end], "jobs", GROUPS) is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"jobs": {}}',
        b'{"jobs": [1]}',
        b'{"jobs": [{}], "jobs": []}',
        b'{"jobs": []} {}',
        b'{"jobs": [{"\\u0069d": 1}]}',
        b'{"jobs": [{"id" 1}]}',
        b'{"jobs": [{"id": }]}',
        b'{"jobs": [{},]}',
    ],
)
def test_what_is_not_understood_is_left(text: bytes) -> None:
    assert pick_members(text, "jobs", GROUPS) is None
