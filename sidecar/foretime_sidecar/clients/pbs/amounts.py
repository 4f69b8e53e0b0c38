"""Amounts of resources in what PBS prints."""

from __future__ import annotations

from collections.abc import Mapping

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs import amounts as pbs_amounts


def parse_amount(word: str, where: str) -> int:
    """Read ``12``, ``16gb`` (bytes) or ``01:30:00`` (seconds).

    Raises
    ------
    InputError
        Naming the place, if it is none of them.
    """
    try:
        return pbs_amounts.parse_amount(word)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def parse_whole_number(word: str, where: str, least: int = -pbs_amounts.MOST) -> int:
    """Read a number that may be negative, such as a priority, unless it has a least.

    Raises
    ------
    InputError
        Naming the place, if it is none.
    """
    try:
        number = int(word)
    except ValueError:
        number = pbs_amounts.MOST + 1
    if not least <= number <= pbs_amounts.MOST:
        above = f" from {least} on" if least >= 0 else ""
        raise InputError(f"{where}: {word!r} is no whole number{above}")
    return number


def parse_yes(attributes: Mapping[str, str], name: str, where: str) -> bool:
    """Read an attribute that is True or False; without it, no.

    Raises
    ------
    InputError
        Naming the place, if it is neither.
    """
    word = attributes.get(name, "False")
    if word not in ("True", "False"):
        raise InputError(f"{where}: {name} is {word!r}, neither True nor False")
    return word == "True"


def is_amount(word: str) -> bool:
    """Whether a word is an amount, not a name or a yes or no."""
    try:
        pbs_amounts.parse_amount(word)
    except ValueError:
        return False
    return True
