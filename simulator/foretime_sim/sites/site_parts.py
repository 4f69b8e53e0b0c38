"""What files of sites have in common, whatever schedules there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.near_names import nearest
from foretime_sim.files.toml_keys import NAMES, Key, quoted

Named = TypeVar("Named")
NOT_MODELLED = {"not_modelled": Key("not_modelled", NAMES, "sentences")}
"""The key above the tables that every file may have, besides scheduler."""
_NOT_MODELLED = """\
# What of the site is not modelled."""


class _Nothing:
    """Has no value that is left out."""

    def __getattr__(self, name: str) -> object:
        return self


NOTHING = _Nothing()
"""For `lines_of`: has no value that is left out."""


def check_known(tables: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a table or key that is not known; InputError says which is nearest."""
    for name in tables:
        if name not in known:
            raise InputError(f"{name!r} is unknown{nearest(name, known)}")


def table_of(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Give a table by name, empty if it is not there; InputError if it is none."""
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"{name} is {table!r}: make it a table [{name}]")
    return table


def named_tables(tables: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any, str]]:
    """Give the tables ``[kind.NAME]``: name, table, and what errors call it."""
    for name, table in table_of(tables, kind).items():
        yield name, table, f"[{kind}.{name}]"


def listed_tables(tables: Mapping[str, Any], kind: str) -> list[Any]:
    """Give the tables ``[[kind]]``, none if there are none; InputError if it is no list."""
    found = tables.get(kind, [])
    if not isinstance(found, list):
        raise InputError(f"{kind} is {found!r}: make it tables [[{kind}]]")
    return found


def not_modelled_lines(sentences: Sequence[str]) -> list[str]:
    """Write what is not modelled, a sentence a line."""
    if not sentences:
        return []
    said = (f"    {quoted(sentence)}," for sentence in sentences)
    return ["", _NOT_MODELLED, "not_modelled = [", *said, "]"]


def tables_below(
    remark: str, described: Iterable[Named], write: Callable[[Named], list[str]]
) -> list[list[str]]:
    """Write tables of a kind, the first of them below a remark."""
    blocks = [write(each) for each in described]
    return [[remark, *blocks[0]], *blocks[1:]] if blocks else []


def text_of(blocks: Iterable[Iterable[str]]) -> str:
    """Write blocks of lines with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
