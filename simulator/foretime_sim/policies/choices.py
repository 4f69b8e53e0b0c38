"""Choices that have names on the command line."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Collection, Sequence
from typing import Self

from foretime_estimators.jobs.errors import InputError


class NamedChoice(enum.Enum):
    """A choice with the name that it has on the command line."""

    @classmethod
    def parse(cls, name: str, *, unlisted: Collection[Self] = ()) -> Self:
        """Find a choice by name.

        Parameters
        ----------
        name
            In any case, with ``-`` or ``_``.
        unlisted
            Choices that a message does not offer.

        Raises
        ------
        InputError
            If there is none of that name; it says which is near and which there are.
        """
        folded = name.strip().lower().replace("_", "-")
        if folded in [choice.value for choice in cls]:
            return cls(folded)
        names = [choice.value for choice in cls if choice not in unlisted]
        kind = (cls.__doc__ or cls.__name__).split(":")[0].lower()
        raise InputError(unknown_name(kind, name, names))

    def __str__(self) -> str:
        return str(self.value)


def unknown_name(kind: str, name: str, names: Sequence[str]) -> str:
    """Say that there is nothing of a name, which is near, and which there are."""
    folded = name.strip().lower().replace("_", "-")
    near = difflib.get_close_matches(folded, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"unknown {kind} {name!r}{hint} Valid: {', '.join(names)}"
