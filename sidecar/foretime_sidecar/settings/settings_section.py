"""What all sections of the settings have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from foretime_estimators.jobs.errors import InputError
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Value = TypeVar("Value")
Names = list[Annotated[str, Field(min_length=1)]]


class Section(BaseModel):
    """A section: no setting that is not known, nothing of another type, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def refused_as_value(value: Value, use: Callable[[Value], object]) -> Value:
    """Give a value that can be used; the error says why one can't."""
    try:
        use(value)
    except InputError as error:
        raise PydanticCustomError("unusable", "{reason}", {"reason": str(error)}) from error
    return value
