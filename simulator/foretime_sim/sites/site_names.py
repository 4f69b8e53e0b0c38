"""Names of a site that are there twice, or not at all, and trees that are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.near_names import nearest
from foretime_sim.files.toml_keys import table_name


def check_once(table: str, what: str, names: Iterable[str]) -> None:
    """Refuse a name that is there twice; InputError names it."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{table}: the {what} {name!r} is there twice: leave one of them")


def check_there(where: str, name: str, known: Collection[str], what: str) -> None:
    """Refuse a name of nothing; InputError says which is nearest."""
    if name not in known:
        there = nearest(name, known) if known else "; there are none"
        raise InputError(f"{where}: there is no {what} {name!r}{there}")


def check_no_circle(kind: str, key: str, parents: Mapping[str, str | None]) -> None:
    """Refuse what is above itself.

    Parameters
    ----------
    kind, key
        Of the tables ``[kind.NAME]``, and of what names the one above.
    parents
        Of each the one above; whose is ``None``, or missing, is above all.

    Raises
    ------
    InputError
        Naming the first that is in a circle.
    """
    safe: set[str] = set()
    for name in parents:
        path = [name]
        while (above := parents.get(path[-1])) is not None and above not in safe:
            if above in path:
                circle = " -> ".join([*path[path.index(above) :], above])
                raise InputError(
                    f"[{table_name(kind, name)}]: {key}: {circle} is a circle: let the highest of"
                    " them have the parent root"
                )
            path.append(above)
        safe.update(path)
