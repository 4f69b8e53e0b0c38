"""The numbers that a paper prints, as CSV in its study's folder."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pandas as pd


def published(study: str, name: str, keys: int = 1) -> dict[Any, dict[str, Any]]:
    """Read the rows of a study's NAME.csv, each by its first cell, its columns by their headings.

    Parameters
    ----------
    study
        The package, such as ``foretime_studies.talby1999`` (``__package__`` there).
    name
        Of the file, without its ending. Lines from ``#`` on are remarks; an empty cell is ``None``.
    keys
        How many of the first cells tell a row from the others; of several a tuple.

    Examples
    --------
    >>> from foretime_studies.frame.published import published
    >>> orders = published("foretime_studies.talby1999", "orders")
    >>> orders["ast"]["gain"]
    0.165
    """
    with (files(study) / f"{name}.csv").open(encoding="utf-8") as file:
        read = pd.read_csv(file, comment="#", dtype_backend="numpy_nullable")
    rows = read.astype(object).where(read.notna(), None).to_numpy().tolist()
    names = list(read.columns[keys:])
    return {
        row[0] if keys == 1 else tuple(row[:keys]): dict(zip(names, row[keys:], strict=True))
        for row in rows
    }
