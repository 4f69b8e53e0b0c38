"""Values of sbatch's options: each form that sbatch takes, checked and brought into one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.wording.durations import format_duration, parse_duration

_MOST = 2**31 - 1
_NUMBER = re.compile(r"\d{1,10}", re.ASCII)
_NODES = re.compile(r"(\d{1,10})([kKmM]?)", re.ASCII)
_MEMORY = re.compile(r"(\d{1,15})(?:([kmgt])b?)?", re.ASCII | re.IGNORECASE)
_NAMES = re.compile(r"[^\s,]{1,255}(?:,[^\s,]{1,255})*")
_GRES = re.compile(r"[A-Za-z_]\w*(?:[/:=][\w.\-]+)*(?:,[A-Za-z_]\w*(?:[/:=][\w.\-]+)*)*", re.ASCII)
_GPUS = re.compile(r"(?:[A-Za-z_][\w.\-]*[:=])?\d{1,9}(?:,[A-Za-z_][\w.\-]*[:=]\d{1,9})*", re.ASCII)
_INDICES = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::([1-9]\d{0,8}))?)?", re.ASCII)
_DEPENDENCY = re.compile(
    r"(singleton|(after|afterany|afterburstbuffer|aftercorr|afternotok|afterok|expand)"
    r"(:\d+(_(\d+|\*))?(\+\d+)?)+|\d+)",
    re.ASCII,
)
_NO_LIMIT = frozenset({"0", "-1", "unlimited", "infinite", "-1.0"})


def checked(name: str, value: str, where: str) -> str:
    """Check the value of an option and write it in one form.

    Parameters
    ----------
    name
        sbatch's long name, such as ``cpus-per-task``; one of those that a forecast is asked with.
    value
        As it was written.
    where
        What to name in an error: ``job.sh:3``, or ``command line``.

    Returns
    -------
    str
        Durations as D-HH:MM:SS, nodes as MIN or MIN-MAX, memory as a number with K, M, G or T.

    Raises
    ------
    InputError
        If sbatch would not take it.
    """
    check = _CHECKS[name]
    try:
        return check(value)
    except InputError as error:
        raise InputError(f"{where}: --{name} = {value!r}: {error}") from None


def node_range(text: str) -> tuple[int, int]:
    """Read ``--nodes``: the least and the most nodes that a job would take.

    Raises
    ------
    InputError
        If it is none of N, MIN-MAX, and lists and steps of them (Slurm 23.11 and newer).
    """
    numbers = []
    for part in text.split(","):
        ends = part.partition(":")[0].split("-")
        found = [_NODES.fullmatch(end) for end in ends]
        if len(ends) > 2 or not all(found):
            raise InputError("is no number of nodes; write N or MIN-MAX")
        numbers += [
            int(each[1]) * {"": 1, "k": 1024, "m": 1024**2}[each[2].lower()]
            for each in found
            if each is not None
        ]
        if numbers[-1] < numbers[-len(ends)]:
            raise InputError("the most nodes are fewer than the least; write MIN-MAX")
    if min(numbers) < 1 or max(numbers) > _MOST:
        raise InputError(f"is no number of nodes from 1 to {_MOST:,}; write N or MIN-MAX")
    return min(numbers), max(numbers)


def array_tasks(text: str) -> int:
    """Count the tasks of ``--array``: 0-15, 1,3,5-7, 1-7:2, each perhaps with %MOST_AT_ONCE.

    Raises
    ------
    InputError
        If it is none of these.
    """
    indices, percent, most = text.partition("%")
    if percent and not (_NUMBER.fullmatch(most) and int(most)):
        raise InputError("after % stands how many tasks may run at once; write a number above 0")
    tasks = 0
    for part in indices.removeprefix("[").removesuffix("]").split(","):
        found = _INDICES.fullmatch(part)
        if found is None:
            raise InputError("is no list of indices; write it as 0-15, 1,3,5-7 or 1-7:2")
        first = int(found[1])
        last, step = (int(group) if group else None for group in found.group(2, 3))
        if last is not None and last < first:
            raise InputError(f"the index {last} is below {first}; write the smaller one first")
        tasks += 1 if last is None else (last - first) // (step or 1) + 1
    return tasks


def _nodes(value: str) -> str:
    least, most = node_range(value)
    return str(least) if least == most else f"{least}-{most}"


def _count(value: str) -> str:
    if not _NUMBER.fullmatch(value) or not 1 <= int(value) <= _MOST:
        raise InputError(f"is no number from 1 to {_MOST:,}; write one")
    return str(int(value))


def _memory(value: str) -> str:
    found = _MEMORY.fullmatch(value)
    if found is None:
        raise InputError("is no amount of memory; write it as 4000 (MiB), 4G or 1T")
    return f"{int(found[1])}{(found[2] or 'M').upper()}"


def _time(value: str) -> str:
    if value.lower() in _NO_LIMIT:
        raise InputError(
            "a forecast needs a limit; give the longest that the partition allows (sinfo)"
        )
    return _duration(value)


def _duration(value: str) -> str:
    try:
        return format_duration(parse_duration(value, ""))
    except InputError as error:
        raise InputError(str(error).partition(f"{value!r} ")[2]) from None


def _names(value: str) -> str:
    if not _NAMES.fullmatch(value):
        raise InputError("is no name; write one, or several with commas and no blanks")
    return value


def _gres(value: str) -> str:
    if not _GRES.fullmatch(value):
        raise InputError("is no list of generic resources; write it as gpu:2 or gpu:a100:2")
    if re.search(r"[:=]-", value):
        raise InputError("asks for a negative number; write it as gpu:2 or gpu:a100:2")
    return value


def _gpus(value: str) -> str:
    if not _GPUS.fullmatch(value):
        raise InputError("is no number of GPUs; write it as 2 or a100:2")
    return value


def _array(value: str) -> str:
    array_tasks(value)
    return value


def _dependency(value: str) -> str:
    for part in re.split(r"[,?]", value):
        if not _DEPENDENCY.fullmatch(part):
            raise InputError(
                f"{part!r} is no dependency; write TYPE:JOBID, such as afterok:4711, or singleton"
            )
    return value


def _begin(value: str) -> str:
    if not value.strip():
        raise InputError("is no time; write it as now+2hours, 16:00 or 2026-12-24T18:00")
    return value


def _exclusive(value: str) -> str:
    if value not in ("", "user", "mcs", "topo", "exclusive", "yes", "1"):
        raise InputError("is neither user, mcs nor topo; write --exclusive alone")
    return value


_CHECKS: Mapping[str, Callable[[str], str]] = {
    "account": _names,
    "array": _array,
    "begin": _begin,
    "cpus-per-task": _count,
    "dependency": _dependency,
    "exclusive": _exclusive,
    "gpus": _gpus,
    "gpus-per-node": _gpus,
    "gres": _gres,
    "mem": _memory,
    "nodes": _nodes,
    "ntasks": _count,
    "ntasks-per-node": _count,
    "partition": _names,
    "qos": _names,
    "reservation": _names,
    "time": _time,
    "time-min": _time,
}
