"""Select statements, places and vnodes, as PBS prints them of jobs and reservations."""

from __future__ import annotations

import re
from collections.abc import Mapping

from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.largest_machine import MAX_PROCESSORS
from foretime_sim.workloads.node_request import ChunkPlace, HostChunk

from foretime_sidecar.clients.cluster import AskedChunks, HeldNode
from foretime_sidecar.clients.pbs.amounts import is_amount, parse_amount

_MIB = 2**20
_VNODE = re.compile(r"([^:()+]+)((?::[\w.-]+=[^:()+]*)*)")
_WRITTEN_CHUNK = re.compile(
    r"(?:[0-9]{1,10}|[A-Za-z]\w*=[^:+\s]+)(?::[A-Za-z]\w*=[^:+\s]+)*", re.ASCII
)
_PLACE_WORDS = ("free", "pack", "scatter", "vscatter", "excl", "exclhost", "shared")
_COUNTED = ("ncpus", "mem", "ngpus")
_OF_NO_HOST = frozenset({"mpiprocs", "ompthreads", "nchunk"})
"""What a chunk says that no host has less of."""
_PLACES: Mapping[str, ChunkPlace] = {
    "free": "free",
    "pack": "pack",
    "scatter": "scatter",
    "vscatter": "scatter",
}


def parse_select(select: str, place: str, priority: int = 0, project: str = "") -> AskedChunks:
    """Read what a job asks of hosts, such as ``2:ncpus=8:mem=4gb+1:ncpus=1`` and ``scatter:excl``.

    Parameters
    ----------
    select, place
        As PBS prints them, with defaults (``schedselect``); of no place ``free``.
    priority, project
        Of the job: ``qsub -p`` and ``-P``.

    Raises
    ------
    InputError
        Naming the chunk that can't be read.

    Examples
    --------
    >>> from foretime_sidecar.clients.pbs.select import parse_select
    >>> parse_select("2:ncpus=8:mem=4gb", "scatter").chunks
    (HostChunk(number=2, cpus=8, memory_bytes=4294967296, gpus=0),)
    """
    chunks, odd = [], []
    for text in select.split("+"):
        number, has = 1, dict.fromkeys(_COUNTED, 0)
        for word in filter(None, text.split(":")):
            name, is_pair, value = word.partition("=")
            if not is_pair:
                number = parse_amount(name, f"select {text}")
            elif name in has:
                has[name] = parse_amount(value, f"select {text}: {name}")
            elif name not in _OF_NO_HOST:
                odd.append(f"{name} of chunks")
        if number:
            chunks.append(HostChunk(number, has["ncpus"], has["mem"], has["ngpus"]))
    arrangement: ChunkPlace = "free"
    exclusive = False
    for word in filter(None, place.split(":")):
        if word in _PLACES:
            arrangement = _PLACES[word]
        exclusive |= word in ("excl", "exclhost")
        if word.startswith("group") or word == "vscatter":
            odd.append(f"place={word}")
    not_modelled = tuple(dict.fromkeys(odd))
    return AskedChunks(tuple(chunks), arrangement, exclusive, priority, project, not_modelled)


def parse_asked(select: str, place: str | None = None) -> AskedChunks:
    """Read what a user writes after ``qsub -l``; a chunk that names no CPUs has one, as in PBS.

    Parameters
    ----------
    select, place
        Such as ``2:ncpus=8:mem=4gb+1`` and ``scatter:excl``.

    Raises
    ------
    InputError
        Naming what qsub would not take.

    Examples
    --------
    >>> from foretime_sidecar.clients.pbs.select import parse_asked
    >>> parse_asked("2:ncpus=8+1:mem=4gb", "scatter").chunks[1].cpus
    1
    """
    where = f"select = {select!r}"
    chunks = select.split("+")
    for chunk in chunks:
        if not _WRITTEN_CHUNK.fullmatch(chunk):
            raise InputError(
                f"{where}: {chunk!r} is no chunk; write NUMBER:ncpus=8:mem=4gb, + between two"
            )
    words = [] if place is None else place.split(":")
    for word in words:
        if word not in _PLACE_WORDS and not word.startswith("group="):
            raise InputError(
                f"place = {place!r}: {word!r} is no place; write {', '.join(_PLACE_WORDS)} or"
                " group=RESOURCE, and : between two"
            )
    counted = [chunk if ":ncpus=" in f":{chunk}" else f"{chunk}:ncpus=1" for chunk in chunks]
    try:
        asked = parse_select("+".join(counted), place or "")
    except InputError as error:
        raise InputError(f"{where}: {error}; write NUMBER:ncpus=8:mem=4gb") from None
    cpus = sum(chunk.number * chunk.cpus for chunk in asked.chunks)
    if not 0 < cpus <= MAX_PROCESSORS:
        raise InputError(f"{where} asks for {cpus:,} CPUs; ask for 1 to {MAX_PROCESSORS:,}")
    return asked


def vnodes_of(text: str, where: str) -> dict[str, dict[str, int]]:
    """Read ``(n1:ncpus=3:mem=4gb)+(n1:ncpus=3+n2:ncpus=1)``: what is had of each vnode in all.

    Raises
    ------
    InputError
        Naming the place, if an amount can't be read.
    """
    found: dict[str, dict[str, int]] = {}
    for match in _VNODE.finditer(text):
        amounts = found.setdefault(match[1].strip(), {})
        for part in filter(None, match[2].split(":")):
            resource, _, word = part.partition("=")
            if is_amount(word):
                amount = parse_amount(word, f"{where}: {resource}")
                amounts[resource] = amounts.get(resource, 0) + amount
    return found


def held_vnodes(text: str, where: str) -> tuple[HeldNode, ...]:
    """Give what a running job has of each vnode (``exec_vnode``); nothing if it can't be read."""
    try:
        found = vnodes_of(text, where)
    except InputError:
        return ()
    return tuple(
        HeldNode(name, has.get("ncpus", 0), has.get("mem", 0) // _MIB, has.get("ngpus", 0))
        for name, has in found.items()
    )
