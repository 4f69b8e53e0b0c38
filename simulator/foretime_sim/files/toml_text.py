"""The text of a TOML file, of whatever it describes."""

from __future__ import annotations

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
        If it is not TOML.

    Examples
    --------
    >>> from foretime_sim.files.toml_text import parse_toml
    >>> parse_toml('table = {refresh_s = 60}', "foretime.toml")
    {'table': {'refresh_s': 60}}
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: not TOML: {error}") from None
    except ValueError:  # Python reads no whole number of thousands of digits
        raise InputError(f"{source}: a number is far too long; mend it") from None
    except RecursionError:
        raise InputError(f"{source}: tables or lists are nested too deeply; mend them") from None
