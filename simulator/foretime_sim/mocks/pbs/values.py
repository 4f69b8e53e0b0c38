"""Types, errors and resources of the stand-in for the ``pbs`` module; see `pbs_module`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import total_ordering
from typing import Any, ClassVar, TypeAlias

from foretime_sim.sites.pbs.formula import RANK

Fields: TypeAlias = Mapping[str, Any]
Held: TypeAlias = Any  # whatever PBS or a hook puts there


class EventIncompatibleError(Exception):
    """The event has no such parameter."""


class UnsetAttributeNameError(Exception):
    """No attribute has this name."""


class BadAttributeValueTypeError(Exception):
    """The value's type is not the attribute's."""


class BadAttributeValueError(Exception):
    """The attribute can't be this, or can't be set here."""


class UnsetResourceNameError(Exception):
    """No resource has this name."""


class BadResourceValueTypeError(Exception):
    """The value's type is not the resource's."""


class BadResourceValueError(Exception):
    """The resource can't be this, or can't be set here."""


class Duration(int):
    """``pbs.duration``: seconds, from a number or ``[[HH:]MM:]SS[.milliseconds]``.

    As the server's own (OpenPBS, ``decode_time``): half a second is rounded up, no text is 0.
    """

    text: str

    def __new__(cls, value: float | str) -> Duration:
        """Make it from seconds or their text."""
        text = str(value)
        whole, _, fraction = text.partition(".")
        parts = whole.split(":")
        digits = [*parts, fraction or "0"] if text else []
        if len(parts) > 3 or not all(part.isascii() and part.isdigit() for part in digits):
            raise BadResourceValueError(f"walltime: bad duration {text!r}")
        seconds = 0
        for part in parts if text else ():
            seconds = seconds * 60 + int(part)
        seconds += fraction[:1] >= "5"
        made = super().__new__(cls, seconds)
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text


_SIZE_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_WORD_BYTES = 8


@total_ordering
class Size:
    """``pbs.size``: an amount of memory, ``10gb`` or ``5mw``; the unit of a sum is the smaller."""

    __slots__ = ("_bytes", "_shift", "_word")
    __hash__ = None  # type: ignore[assignment]  # as the real one, which only compares

    def __init__(self, value: int | str | Size) -> None:
        text = str(value).lower()
        digits = text.rstrip("bwkmgtp")
        unit = text[len(digits) :]
        self._word = unit.endswith("w")
        unit = unit.removesuffix("w" if self._word else "b")
        if not digits.isdigit() or unit not in _SIZE_UNITS:
            raise BadResourceValueError(f"mem: bad size {text!r}")
        self._shift = _SIZE_UNITS[unit]
        self._bytes = (int(digits) << self._shift) * (_WORD_BYTES if self._word else 1)

    def __str__(self) -> str:
        letter = next(unit for unit, shift in _SIZE_UNITS.items() if shift == self._shift)
        return f"{-(-self._bytes >> self._shift)}{letter}b"

    def _with(self, other: int | str | Size, sign: int) -> Size:
        one = other if isinstance(other, Size) else Size(other)
        result = Size(0)
        result._shift = min(self._shift, one._shift)
        result._bytes = self._bytes + sign * one._bytes
        return result

    def __add__(self, other: int | str | Size) -> Size:
        return self._with(other, 1)

    def __sub__(self, other: int | str | Size) -> Size:
        return self._with(other, -1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | str | Size) and self._bytes == Size(other)._bytes

    def __lt__(self, other: int | str | Size) -> bool:
        return self._bytes < Size(other)._bytes


class Text:
    """One of the types that only wrap a text: ``pbs.select``, ``pbs.place``, ..."""

    def __init__(self, value: object) -> None:
        self._value = str(value)

    def __str__(self) -> str:
        return self._value

    __repr__ = __str__


class Environment(dict[str, str]):
    """``pbs.pbs_env``: the variables of a job, from a dict or ``NAME=value,NAME=value``."""

    def __init__(self, value: str | Mapping[str, Any]) -> None:
        if isinstance(value, str):
            hidden = value.replace("\\,", "\3")
            pairs = [part.replace("\3", "\\,").partition("=") for part in hidden.split(",")]
            super().__init__({name: text for name, equals, text in pairs if equals})
        else:
            super().__init__({name: str(text) for name, text in value.items()})

    def __str__(self) -> str:
        return ",".join(f"{name}={text}" for name, text in self.items())


def boolean(value: object) -> int:
    """Read one of PBS' words for yes and no."""
    known = {"true": 1, "t": 1, "y": 1, "1": 1, "false": 0, "f": 0, "n": 0, "0": 0}
    try:
        return known[str(value).lower()]
    except KeyError as error:
        raise BadAttributeValueError(f"bad boolean {value!r}") from error


Converter: TypeAlias = Callable[[Any], Any]

# The resources that every OpenPBS has and that jobs use; a site adds its own.
RESOURCES: dict[str, Converter] = {
    "walltime": Duration,
    "soft_walltime": Duration,
    RANK: float,  # `foretime install pbs` makes it
    "min_walltime": Duration,
    "max_walltime": Duration,
    "cput": Duration,
    "pcput": Duration,
    "mem": Size,
    "pmem": Size,
    "vmem": Size,
    "pvmem": Size,
    "file": Size,
    "ncpus": int,
    "mpiprocs": int,
    "ngpus": int,
    "nodect": int,
    "nice": int,
    "select": Text,
    "place": Text,
    "nodes": str,
    "host": str,
    "arch": str,
    "software": Text,
    "preempt_targets": str,
}


class Guard:
    """Whether things may still be changed: until the hook has accepted or rejected."""

    def __init__(self) -> None:
        self.open = True


def none_if_unset(value: Held) -> Held:
    """Give what a hook set, ``None`` where it unset it: PBS holds no text then; 0 is a value."""
    return None if isinstance(value, str) and value == "" else value


class ResourceList:
    """A ``pbs_resource``: resources by name, as items and as attributes."""

    _own: ClassVar[frozenset[str]] = frozenset({"_types", "_values", "_guard", "_changed"})

    def __init__(self, types: Mapping[str, Converter], values: Fields, guard: Guard | None) -> None:
        self._types = types
        self._values: dict[str, Any] = {}
        self._guard = guard
        self._changed: dict[str, None] = {}
        for name, value in values.items():
            known = self._known(name)
            # What a request takes away (qalter -l walltime=) is there, as no text.
            unset = none_if_unset(value) is None
            self._values[known] = value if unset else types[known](value)

    def _known(self, name: str) -> str:
        if name in self._types:
            return name
        for known in self._types:
            if known.lower() == name.lower():
                return known
        raise UnsetResourceNameError(f"resource attribute '{name}' not found")

    def __getattr__(self, name: str) -> Held:
        if name in ResourceList._own or name not in self._types:
            raise AttributeError(name)
        return self._values.get(name)

    def __getitem__(self, name: str) -> Held:
        return getattr(self, name)

    def __setattr__(self, name: str, value: Held) -> None:
        if name in ResourceList._own:
            super().__setattr__(name, value)
            return
        if self._guard is None or not self._guard.open:
            raise BadResourceValueError(f"resource '{name}' is readonly")
        known = self._known(name)
        if value is None or value == "":
            self._values[known] = ""
        else:
            try:
                self._values[known] = self._types[known](value)
            except (TypeError, ValueError) as error:
                raise BadResourceValueTypeError(f"{known}: {value!r}") from error
        self._changed[known] = None

    def __setitem__(self, name: str, value: Held) -> None:
        setattr(self, name, value)

    def __contains__(self, name: str) -> bool:
        return hasattr(self, name)

    def keys(self) -> list[str]:
        """Names of the resources that have a value."""
        return [name for name, value in self._values.items() if value is not None]

    def changes(self) -> dict[str, Any]:
        """Give what was set since it was made; ``None`` where it was unset."""
        return {name: none_if_unset(self._values[name]) for name in self._changed}

    def __str__(self) -> str:
        return ",".join(f"{name}={self._values[name]}" for name in self.keys())
