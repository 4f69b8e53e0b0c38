"""Counts and weights of TRES as Slurm writes them: ``cpu=512,mem=4T,gres/gpu=8``.

What can't be read raises ValueError, which says what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeVar

_MEBIBYTES = {"K": Fraction(1, 1024), **{u: Fraction(1024**n) for n, u in enumerate("MGTP")}}
_PAIR = re.compile(r"([A-Za-z][\w/:.+-]*)=(-?[\d.]+(?:[eE][+-]?\d+)?)([A-Za-z]?)", re.ASCII)
_FORM = 'write it like "cpu=512,mem=4T,gres/gpu=8"'
MEMORY = "mem"
Value = TypeVar("Value", int, float)


def parse_tres(text: str) -> dict[str, int]:
    """Read counts by kind; memory in MiB, what is unlimited (-1) left out.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.tres_text import parse_tres
    >>> parse_tres("cpu=512,mem=4G,gres/gpu=8")
    {'cpu': 512, 'mem': 4096, 'gres/gpu': 8}
    """
    return {kind: count for kind, count in _pairs(text, _count).items() if count >= 0}


def format_tres(counts: Mapping[str, int]) -> str:
    """Write counts by kind, memory in the largest unit that is exact."""
    return ",".join(
        f"{kind}={_memory(count) if kind == MEMORY else count}" for kind, count in counts.items()
    )


def parse_weights(text: str) -> dict[str, float]:
    """Read weights by kind; those of memory for a MiB (``mem=0.25G``: 0.25 for a GiB).

    As ``slurm_get_tres_weight_array`` in Slurm's slurm_protocol_api.c.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.tres_text import parse_weights
    >>> parse_weights("CPU=1.0,Mem=0.25G,GRES/gpu=8")
    {'cpu': 1.0, 'mem': 0.000244140625, 'gres/gpu': 8.0}
    """
    return _pairs(text, _weight)


def parse_amounts(text: str) -> dict[str, float]:
    """Read amounts by kind, with fractions; memory in MiB.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.tres_text import parse_amounts
    >>> parse_amounts("cpu=7200.5,mem=4G")
    {'cpu': 7200.5, 'mem': 4096.0}
    """
    return _pairs(text, _amount)


def format_amounts(amounts: Mapping[str, float]) -> str:
    """Write amounts by kind, memory in MiB."""
    return ",".join(f"{kind}={_plain(amount)}" for kind, amount in amounts.items())


def format_weights(weights: Mapping[str, float]) -> str:
    """Write weights by kind, those of memory for a MiB or a GiB, as is shorter."""
    return ",".join(f"{kind}={_written_weight(kind, weight)}" for kind, weight in weights.items())


def _written_weight(kind: str, weight: float) -> str:
    if kind != MEMORY:
        return _plain(weight)
    # A power of two takes nothing from a number.
    return min(_plain(weight), f"{_plain(weight * 1024)}G", key=len)


def _plain(number: float) -> str:
    return repr(number).removesuffix(".0")


def _pairs(text: str, read: Callable[[str, str, str], Value]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no kind and number: {_FORM}")
        kind = _kind(match[1])
        if kind in found:
            raise ValueError(f"{kind} is there twice: give it once")
        found[kind] = read(kind, match[2], match[3].upper())
    return found


def _kind(word: str) -> str:
    """Kinds are in lower case; names of licenses and types of GPUs are as they are."""
    first, slash, name = word.partition("/")
    if not slash:
        return first.lower()
    device, colon, model = name.partition(":")
    return f"{first.lower()}/{device.lower() if first.lower() == 'gres' else device}{colon}{model}"


def _count(kind: str, number: str, unit: str) -> int:
    try:
        count = Fraction(number)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{kind}={number}{unit} is no number: {_FORM}") from None
    if count == -1:
        return -1
    if unit:
        if kind != MEMORY or unit not in _MEBIBYTES:
            raise ValueError(f"{kind}={number}{unit}: {unit} is no unit of {kind}: {_FORM}")
        count *= _MEBIBYTES[unit]
    if count.denominator != 1 or not 0 <= count < 2**62:
        whole = "whole MiB" if kind == MEMORY else "a whole number"
        raise ValueError(f"{kind}={number}{unit}: give {whole} of 0 or more")
    return int(count)


def _weight(kind: str, number: str, unit: str) -> float:
    return _checked(_float(kind, number, unit) / _size(kind, number, unit), kind, number, unit)


def _amount(kind: str, number: str, unit: str) -> float:
    return _checked(_float(kind, number, unit) * _size(kind, number, unit), kind, number, unit)


def _float(kind: str, number: str, unit: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise ValueError(f"{kind}={number}{unit} is no number: {_FORM}") from None


def _size(kind: str, number: str, unit: str) -> float:
    """Give the MiB of a unit; 1 where there is none."""
    if not unit:
        return 1.0
    if kind != MEMORY or unit not in _MEBIBYTES:
        raise ValueError(f"{kind}={number}{unit}: {unit} is no unit of {kind}: {_FORM}")
    return float(_MEBIBYTES[unit])


def _checked(found: float, kind: str, number: str, unit: str) -> float:
    if not math.isfinite(found) or found < 0:
        raise ValueError(f"{kind}={number}{unit}: give a number of 0 or more")
    return found


def _memory(mebibytes: int) -> str:
    for unit in ("T", "G"):
        size = int(_MEBIBYTES[unit])
        if mebibytes and mebibytes % size == 0:
            return f"{mebibytes // size}{unit}"
    return f"{mebibytes}M"
