"""Rows as dataclasses have them, in columns."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def columns_of(row: DataclassInstance) -> dict[str, Any]:
    """Give a row's values by the names of its columns; unlike ``asdict`` it copies none."""
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
