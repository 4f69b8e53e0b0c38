"""What ``qmgr -c "print server"`` and the like print: lines that would make the same again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from foretime_estimators.jobs.errors import InputError

_LINE = re.compile(r"(create|set) (\w+)(?: ([^\s=]+))?(?: ([\w.]+) (\+?=) (.*))?")


@dataclass(frozen=True, slots=True)
class QmgrObject:
    """A server, queue, scheduler, node or resource with its attributes.

    Attributes
    ----------
    kind, name
        ``server`` has no name.
    attributes
        By name, ``resources_max.walltime`` among them; lists joined by commas.
    """

    kind: str
    name: str
    attributes: dict[str, str] = field(default_factory=dict)


def parse_qmgr(text: str) -> list[QmgrObject]:
    """Read objects in their order.

    Raises
    ------
    InputError
        Naming the first line that is none of qmgr's, or sets a queue that is not created.
    """
    found: dict[tuple[str, str], QmgrObject] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith(("#", "import ", "unset ")):
            continue
        if (match := _LINE.fullmatch(line.strip())) is None:
            raise InputError(f"line {number} is none of qmgr's: {line[:80]!r}")
        verb, kind, name, attribute, sign, value = match.groups()
        if kind == "queue" and verb == "set" and (kind, name) not in found:
            raise InputError(
                f"line {number}: no line above creates the queue {name}: it is cut off"
            )
        if kind == "server":
            # "set server NAME = VALUE": what looks like the name is the attribute.
            attribute, name = attribute or name, ""
        owner = found.setdefault((kind, name or ""), QmgrObject(kind, name or ""))
        if attribute is not None and value is not None:
            value = value.strip().strip('"')
            old = owner.attributes.get(attribute)
            # qmgr prints limits of several as if each took the place of the one before.
            adds = sign == "+=" or value.startswith("[")
            owner.attributes[attribute] = f"{old},{value}" if adds and old else value
    return list(found.values())


def scheduler_attributes(text: str) -> dict[str, str]:
    """Give the attributes of the default scheduler, as ``qmgr -c "print sched"`` prints them.

    Raises
    ------
    InputError
        As of `parse_qmgr`.
    """
    found: dict[str, str] = {}
    for each in parse_qmgr(text):
        # qmgr leaves the name of the default scheduler out where it sets its attributes.
        if each.kind == "sched" and each.name in ("", "default"):
            found |= each.attributes
    return found
