"""What all sections of the settings have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from foretime_estimators.jobs.errors import InputError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

Value = TypeVar("Value")
_LARGEST = 10_000_000_000


def _is_a_name(name: str) -> None:
    if not name.isprintable() or name != name.strip():
        raise InputError("is no name; write it without spaces around it, on one line")


def _begins_at_the_root(path: str) -> None:
    if path not in ("", ":memory:") and not path.startswith("/"):  # SQLite's own
        raise InputError("write the whole path, from / on: not all who use it are in one folder")


def _is_not_too_large(value: object) -> None:
    numbers = value if isinstance(value, list) else [value]
    if any(isinstance(number, int) and number > _LARGEST for number in numbers):
        raise InputError(f"give at most {_LARGEST:,}")


Names = list[
    Annotated[
        str, Field(min_length=1), AfterValidator(lambda name: refused_as_value(name, _is_a_name))
    ]
]
FilePath = Annotated[str, AfterValidator(lambda path: refused_as_value(path, _begins_at_the_root))]
"""A file or folder of the site's; some settings may be empty."""


class Section(BaseModel):
    """A section: no setting that is not known, nothing of another type, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @field_validator("*")
    @classmethod
    def _are_not_too_large(cls, value: Value) -> Value:
        return refused_as_value(value, _is_not_too_large)


def refused_as_value(value: Value, use: Callable[[Value], object]) -> Value:
    """Give a value that can be used; the error says why one can't."""
    try:
        use(value)
    except InputError as error:
        raise PydanticCustomError("unusable", "{reason}", {"reason": str(error)}) from error
    return value
