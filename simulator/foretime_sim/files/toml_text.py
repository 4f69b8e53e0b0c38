"""The text of a TOML file, of whatever it describes."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from foretime_estimators.jobs.errors import InputError


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Give the tables and values of a text in TOML.

    Parameters
    ----------
    text
        The text.
    source
        Where it comes from, for errors.

    Raises
    ------
    InputError
        If it is not TOML; it names the line.

    Examples
    --------
    >>> from foretime_sim.files.toml_text import parse_toml
    >>> parse_toml('table = {refresh_s = 60}', "foretime.toml")
    {'table': {'refresh_s': 60}}
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(_not_toml(str(error), text, source)) from None
    except ValueError:  # Python reads no whole number of thousands of digits
        where = re.search(r"[0-9_]{1000}", text)
        line = text.count("\n", 0, where.start()) + 1 if where else 1
        raise InputError(f"{source}:{line}: a number is far too long; mend it") from None
    except RecursionError:
        raise InputError(f"{source}: tables or lists are nested too deeply; mend them") from None


def _not_toml(said: str, text: str, source: str) -> str:
    """Put the line in front of what the parser says: it has it at the end, or speaks of the end."""
    at = re.search(r" \(at line ([0-9]+), (column [0-9]+)\)$", said)
    if at is None:
        line = text.rstrip().count("\n") + 1
        return f"{source}:{line}: not TOML: {said}"
    return f"{source}:{at[1]}: not TOML: {said[: at.start()]} ({at[2]})"
