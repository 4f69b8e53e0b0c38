"""How it is said what is wrong in a TOML file that pydantic checks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


_WORDS = {
    "bool_parsing": "give true or false",
    "bool_type": "give true or false",
    "date_type": "give a date, like 2026-01-31",
    "datetime_type": "give a date and time, like 2026-01-31T12:00:00",
    "dict_type": "give a table",
    "enum": "give {expected}",
    "finite_number": "give a finite number",
    "float_parsing": "give a number",
    "float_type": "give a number",
    "greater_than": "give more than {gt:,}",
    "greater_than_equal": "give {ge:,} or more",
    "int_from_float": "give a whole number",
    "int_parsing": "give a whole number",
    "int_parsing_size": "give a whole number that is nearer to 0",
    "int_type": "give a whole number",
    "less_than": "give less than {lt:,}",
    "less_than_equal": "give at most {le:,}",
    "list_type": "give a list",
    "literal_error": "give {expected}",
    "model_type": "give a table",
    "multiple_of": "give a multiple of {multiple_of}",
    "string_pattern_mismatch": "give a text of the form {pattern}",
    "string_too_long": "give at most {max_length:,} characters",
    "string_too_short": "give a text of {min_length} or more characters",
    "string_type": "give a text",
    "too_long": "give a list of at most {max_length:,}",
    "too_short": "give a list of {min_length} or more",
    "tuple_type": "give a list",
}
"""What to do, by pydantic's kind of problem; names in braces are of its context."""


def message_of(problem: ErrorDetails) -> str:
    """Say what to give in a value's place.

    Examples
    --------
    >>> from foretime_sim.files.toml_messages import message_of
    >>> message_of({"type": "int_type", "msg": "Input should be a ...", "loc": (), "input": "x"})
    'give a whole number'
    """
    words = _WORDS.get(problem["type"])
    if words is not None:
        return words.format_map({k: _plain(v) for k, v in problem.get("ctx", {}).items()})
    message = problem["msg"].removeprefix("Value error, ")  # names in it keep their case
    return message[0].lower() + message[1:]


def _plain(value: object) -> object:
    """Write a bound of 1.0 as 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def nearest(name: object, valid: Iterable[str]) -> str:
    """Say which valid name is nearest, and which there are."""
    names = tuple(valid)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? Valid: " if near else "valid: "
    return hint + ", ".join(names)
