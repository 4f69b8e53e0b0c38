"""A moment as a site's PBS has it, for forward runs by its order, fair share and limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.node_snapshot import HeldNodes, NodeRequests
from foretime_sim.engine.told_pbs_jobs import ToldPbsJob, pbs_request
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.sites.pbs.site import PbsHost, PbsSite
from foretime_sim.waits.moment import Moment

from foretime_sidecar.clients.cluster import AskedChunks

_MIB = 2**20


def under_pbs(
    moment: Moment, site: PbsSite, read_at: int | None = None
) -> tuple[Moment, tuple[str, ...]]:
    """Give a moment under the site's PBS, and what of the site and its queue that leaves out.

    Parameters
    ----------
    moment
        Its snapshot is of a flat pool, and tells of each job what PBS does.
    site
        As it was read. Hosts that are away are left out, with what runs on them.
    read_at
        When its usage was so, epoch seconds, if it does not say; ``None``: now.

    Raises
    ------
    InputError
        If it is not told what jobs ask of hosts, or every host is away.
    """
    snapshot = moment.snapshot
    told = [job for job in snapshot.told or () if isinstance(job, ToldPbsJob)]
    if len(told) < len(snapshot):
        raise InputError("what jobs ask of hosts is not known")
    site = _as_now(site, snapshot.away, read_at)
    machine = site.machine
    running, pending = snapshot.running, snapshot.pending
    places = _places(site, machine, told)
    waiting = told[len(running) :]
    requests = NodeRequests.of_each(
        [
            pbs_request(machine, job, processors, place)
            for job, processors, place in zip(
                waiting, pending.processors.tolist(), places[len(running) :], strict=True
            )
        ]
    )
    by_pbs = replace(
        snapshot,
        machine=machine,
        machine_processors=machine.cpus,
        running=replace(
            running,
            processors=np.minimum(running.processors, machine.cpus),
            slurm_partition=np.array(places[: len(running)], dtype=np.int64),
            held=_held(site.able, told[: len(running)]),
        ),
        pending=replace(
            pending,
            processors=requests.processors(),
            priority=np.array([job.priority for job in waiting], dtype=np.int64),
            requests=requests,
        ),
        reservations=(),  # of processors; the site has those of hosts
    )
    correction = moment.policy.correction
    if correction is not Correction.PBS:
        correction = Correction.REQUESTED
    policy = Policy(backfill=Pbs(site), correction=correction)
    by_site = replace(moment, snapshot=by_pbs, policy=policy, since=moment.waits_from())
    return by_site, tuple(_left_out(site, machine, told))


def check_room(
    site: PbsSite, asked: AskedChunks, queue: str | None, away: frozenset[str] = frozenset()
) -> None:
    """Refuse chunks that the hosts have no room for, whatever runs there.

    Parameters
    ----------
    site
        Of the hosts.
    asked
        Select and place.
    queue
        Whose hosts count; ``None``: those of the default.
    away
        Hosts that take no jobs now.

    Raises
    ------
    InputError
        Naming the chunk.
    """
    name = queue or site.server.default_queue
    owner = name if any(host.queue == name for host in site.hosts) else None
    rooms = [
        _room(host.resources) for host in site.able if host.queue == owner and host.name not in away
    ]
    for chunk in asked.chunks:
        wanted = (chunk.cpus, chunk.memory_bytes // _MIB, chunk.gpus)
        each = [
            min(has // of for has, of in zip(room, wanted, strict=True) if of)
            if any(wanted)
            else chunk.number
            for room in rooms
        ]
        if asked.place == "scatter":
            each = [min(number, 1) for number in each]
        places = max(each, default=0) if asked.place == "pack" else sum(each)
        if places < chunk.number:
            largest = [max(column) for column in zip(*rooms, strict=True)] or [0, 0, 0]
            raise InputError(
                f"select: {chunk.number:,} x {_in_words(wanted)}: the hosts that take jobs"
                f" have room for {places:,}; ask for less (on one host are at most"
                f" {_in_words(largest)})"
            )


def _in_words(room: Sequence[int]) -> str:
    cpus, memory_mib, gpus = room
    words = [f"{cpus:,} CPUs", *([f"{memory_mib:,} MiB"] if memory_mib else [])]
    return ", ".join([*words, *([f"{gpus:,} GPUs"] if gpus else [])])


def _as_now(site: PbsSite, away: frozenset[str], read_at: int | None) -> PbsSite:
    """Give a site without the hosts that take no jobs now."""
    hosts = tuple(host for host in site.hosts if host.name not in away)
    if not hosts:
        raise InputError("no host takes jobs now")
    names = {host.name for host in hosts}
    return replace(
        site,
        hosts=hosts,
        reservations=tuple(
            replace(each, hosts={name: has for name, has in each.hosts.items() if name in names})
            for each in site.reservations
        ),
        usage_at=read_at if site.usage_at is None else site.usage_at,
    )


def _places(site: PbsSite, machine: Machine, told: Sequence[ToldPbsJob]) -> list[int]:
    """Give the number of each job's queue on the machine; of an unknown one, the default's."""
    numbers = {part.name: place for place, part in enumerate(machine.slurm_partitions)}
    default = numbers.get(site.server.default_queue, 0)
    return [numbers.get(job.queue or "", default) for job in told]


def _held(able: Sequence[PbsHost], told: Sequence[ToldPbsJob]) -> HeldNodes:
    """Give what running jobs have of hosts, no more than there is of any.

    (A reservation has its hosts, and jobs inside it have none besides.)
    """
    number_of = {host.name: number for number, host in enumerate(able)}
    left = [_room(host.resources) for host in able]
    rows = []
    for row, job in enumerate(told):
        for name, has in () if job.reserved else job.has:
            node = number_of.get(name)
            if node is None:
                continue
            wanted = (has.cpus, has.memory_bytes // _MIB, has.gpus)
            taken = [min(*pair) for pair in zip(wanted, left[node], strict=True)]
            left[node] = [had - of for had, of in zip(left[node], taken, strict=True)]
            rows.append((row, node, 1, *taken))
    return HeldNodes.of_rows(rows)


def _room(resources: Mapping[str, int]) -> list[int]:
    cpus, memory, gpus = (resources.get(name, 0) for name in ("ncpus", "mem", "ngpus"))
    return [cpus, memory // _MIB, gpus]


def _left_out(site: PbsSite, machine: Machine, told: Sequence[ToldPbsJob]) -> Iterator[str]:
    """Say what forward runs of this queue do not know."""
    if site.not_modelled:
        yield (
            f"{len(site.not_modelled):,} things of this site are not modelled"
            " (foretime site import says which)"
        )
    known = {part.name for part in machine.slurm_partitions}
    strange = sum(job.queue not in known and not job.reserved for job in told)
    if strange:
        yield f"the site has no hosts for the queues of {strange:,} jobs: they are as if in another"
    inside = sum(job.reserved for job in told)
    if inside:
        yield f"jobs inside reservations have the hosts of these ({inside:,} jobs)"
    counted = Counter(words for job in told for words in job.not_modelled)
    yield from (f"{words} ({jobs:,} jobs)" for words, jobs in counted.most_common())
    yield "jobs that wait for others, or are held, are left out"
