"""Pure parsers of what Slurm judges jobs by: slurm_partitions, associations, QOS.

``sacctmgr`` tells more than ``scontrol show assoc_mgr``, which lacks MaxTRESRunMins.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from foretime_estimators.jobs.errors import InputError, SchedulerError

from foretime_sidecar.clients.client import Holder, SiteLimits, SlurmPartition
from foretime_sidecar.wording.durations import parse_duration

# Limits that Slurm works out from processors x time_min, or from the time that all jobs take.
_ACCUMULATING = ("GrpTRESMins", "GrpTRESRunMins", "GrpWall", "MaxTRESMins", "MaxTRESRunMins")
ASSOCIATION_FIELDS = ("Account", "User", "ParentName", "MaxWall", *_ACCUMULATING)
QOS_FIELDS = ("Name", "MaxWall", *_ACCUMULATING[:-1], "MaxTRESRunMinsPU", "MaxTRESRunMinsPA")

_LIST_PART = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")


_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_MOST_NODES = 2**16  # of a range, as Slurm has it
_MOST_CHARACTERS = 2**24


def expand_nodes(expression: str) -> frozenset[str]:
    """Give the names that a node list such as ``rack[1-2]n[01-03,7],login`` stands for.

    A part of it that stands for more nodes than any cluster has is taken for a name, which no node
    has.
    """
    names: set[str] = set()
    left = _MOST_CHARACTERS
    for part in _LIST_PART.findall(expression):
        pieces = _BRACKETS.split(part)
        choices = [
            [piece] if number % 2 == 0 else list(itertools.islice(_numbers(piece), _MOST_NODES + 1))
            for number, piece in enumerate(pieces)
        ]
        count = math.prod(map(len, choices))
        if count > _MOST_NODES or count * len(part) > left:
            names.add(part)
        else:
            left -= count * len(part)
            names.update(map("".join, itertools.product(*choices)))
    return frozenset(names)


def _numbers(ranges: str) -> Iterator[str]:
    """Give the numbers of ``01-03,7``, with their leading zeros."""
    for text in ranges.split(","):
        found = _RANGE.fullmatch(text)
        if found and int(found[2]) - int(found[1]) < _MOST_NODES:
            for number in range(int(found[1]), int(found[2]) + 1):
                yield str(number).zfill(len(found[1]))
        else:
            yield text


def fields_of(line: str) -> dict[str, str]:
    """Give the fields of a line of ``scontrol show ... --oneliner``.

    Of a name that comes twice the first counts: reasons and comments can hold anything.
    """
    values: dict[str, str] = {}
    for part in line.split(" "):
        name, given, value = part.partition("=")
        if given:
            values.setdefault(name, value)
    return values


def parse_partitions(text: str) -> tuple[SlurmPartition, ...]:
    """Read ``scontrol show partition --all --oneliner``.

    Raises
    ------
    SchedulerError
        If it names none, or a MaxTime can't be read.
    """
    found = []
    for line in text.splitlines():
        if not line.startswith("PartitionName="):
            continue
        values = fields_of(line)
        nodes = values.get("Nodes", "(null)")
        qos = values.get("QoS", "N/A")
        found.append(
            SlurmPartition(
                values["PartitionName"],
                parse_max_time(values.get("MaxTime", "UNLIMITED"), line),
                None if qos in ("N/A", "") else qos,
                None if nodes == "(null)" else expand_nodes(nodes),
            )
        )
    if not found:
        raise SchedulerError(
            f"scontrol show partition named no partition: {text[:120]!r}; check slurmctld"
        )
    return tuple(found)


def parse_max_time(text: str, where: str) -> int | None:
    """Read a time limit of Slurm's, seconds; ``None`` if there is none."""
    if text in ("", "UNLIMITED", "NONE"):
        return None
    try:
        return parse_duration(text, "time", zero=True)
    except InputError as error:
        raise SchedulerError(
            f"can't read a time limit of Slurm's: {error}: {where[:120]}"
        ) from error


def parse_limits(partitions: Sequence[SlurmPartition], associations: str, qos: str) -> SiteLimits:
    """Read ``sacctmgr show assoc`` and ``show qos`` with the fields above, ``--parsable2``.

    What limits an account limits those below it; what limits a user's association with one account
    counts for the user.

    Raises
    ------
    SchedulerError
        If a line has other fields.
    """
    accumulating: set[tuple[Holder, str]] = set()
    longest: dict[tuple[Holder, str], int] = {}

    def take(holder: Holder, name: str, max_wall: str, limited: bool, where: str) -> None:
        if limited:
            accumulating.add((holder, name))
        seconds = parse_max_time(max_wall, where)
        if seconds is not None:
            longest[holder, name] = min(seconds, longest.get((holder, name), seconds))

    parents: dict[str, str] = {}
    for line, (account, user, parent, max_wall, *limits) in _rows(
        associations, ASSOCIATION_FIELDS, "sacctmgr show assoc"
    ):
        if user:
            take("user", user, max_wall, any(limits), line)
        else:
            parents[account] = parent
            take("account", account, max_wall, any(limits), line)
    for account in parents:
        for above in _ancestors(account, parents):
            if ("account", above) in accumulating:
                accumulating.add(("account", account))
            if ("account", above) in longest:
                take("account", account, f"{longest['account', above] // 60}", False, above)
    for line, (name, max_wall, *limits) in _rows(qos, QOS_FIELDS, "sacctmgr show qos"):
        take("qos", name, max_wall, any(limits), line)
    return SiteLimits(tuple(partitions), frozenset(accumulating), longest)


def _ancestors(account: str, parents: dict[str, str]) -> Iterator[str]:
    seen = {account}
    above = parents.get(account, "")
    while above and above not in seen:
        seen.add(above)
        yield above
        above = parents.get(above, "")


def _rows(text: str, names: Sequence[str], command: str) -> Iterator[tuple[str, list[str]]]:
    for line in filter(None, text.splitlines()):
        values = line.split("|")
        if len(values) != len(names):
            raise SchedulerError(
                f"{command} answered {len(values)} fields, not {len(names)}: {line[:120]!r}; "
                "Foretime knows sacctmgr of Slurm 22.05 and newer"
            )
        yield line, values
