"""Telling requests apart: rows of columns as single numbers, also where those would overflow."""

from __future__ import annotations

import numpy as np
from foretime_sim.workloads.resource_requests import distinct_rows
from hypothesis import example, given
from hypothesis import strategies as st

_FAR = 2**62
_NUMBER = st.integers(-3, 3) | st.sampled_from([-_FAR, _FAR, 2**40, 4_000_000_000])
_ROWS = st.lists(st.tuples(_NUMBER, _NUMBER, _NUMBER), max_size=30)


@given(_ROWS)
@example([(_FAR, 0, _FAR), (-_FAR, 0, -_FAR), (_FAR, 0, -_FAR), (_FAR, 0, _FAR)])
@example([])
def test_distinct_rows_are_those_that_numpy_finds_in_its_order(
    rows: list[tuple[int, int, int]],
) -> None:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    first, which = distinct_rows(list(table.T))
    _, expected_first, expected = np.unique(table, axis=0, return_index=True, return_inverse=True)
    assert first.tolist() == expected_first.tolist()
    assert which.tolist() == expected.reshape(-1).tolist()
