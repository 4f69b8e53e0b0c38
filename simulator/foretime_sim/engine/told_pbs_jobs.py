"""What a real PBS tells of the jobs of a snapshot, and how forward runs begin with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int64Array

from foretime_sim import _core
from foretime_sim.engine.native.pbs_names import PbsNames
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.workloads.node_request import (
    ChunkPlace,
    HostChunk,
    PartitionChoice,
    Request,
)


@dataclass(frozen=True, slots=True)
class ToldPbsJob:
    """What a real PBS tells of a job, besides its times.

    Attributes
    ----------
    user, project
        Whose it is; ``None``: nobody's, whom no limit of a user or project keeps.
    queue
        In which it waits, or which it runs out of; ``None``: not told.
    chunks, place, exclusive
        Its select and place; no chunks: its processors, each on any host.
    priority
        ``qsub -p``.
    has
        What it has of each vnode, if it runs: a chunk of one, by name.
    reserved
        Whether it runs inside a reservation, which has its hosts.
    not_modelled
        What else it asks for, in qsub's words.
    """

    user: str | None = None
    project: str | None = None
    queue: str | None = None
    chunks: tuple[HostChunk, ...] = ()
    place: ChunkPlace = "free"
    exclusive: bool = False
    priority: int = 0
    has: tuple[tuple[str, HostChunk], ...] = ()
    reserved: bool = False
    not_modelled: tuple[str, ...] = ()

    @property
    def at_limit(self) -> bool:
        """Whether it is known that a limit keeps it waiting; PBS does not tell."""
        return False


def pbs_request(
    machine: Machine, job: ToldPbsJob, processors: int, slurm_partition: int
) -> Request:
    """Give what a job asks of a site's machine.

    Parameters
    ----------
    machine
        Of the site.
    job, processors
        What it asks for.
    slurm_partition
        Number of its queue among those of the machine.
    """
    cpus = sum(chunk.number * chunk.cpus for chunk in job.chunks) or processors
    cpus = min(max(cpus, 1), machine.cpus)  # of more, its chunks find no room
    groups = machine.groups_of(slurm_partition)
    choice = PartitionChoice(slurm_partition, tuple(groups), machine.nodes, 0, job.exclusive)
    chunks = job.chunks or (HostChunk(processors, 1),)
    return Request(cpus, 1, 0, 0, 0, (choice,), 0, chunks, job.place)


def charged_s(site: PbsSite, now: int, ages_s: Sequence[int]) -> list[int]:
    """Give for how many seconds of each running job its use is part of the site's usage.

    Parameters
    ----------
    site
        Its usage is as of `PbsSite.usage_at`; where that is not told, as of now.
    now
        Epoch seconds.
    ages_s
        How long each job has run.
    """
    since = 0 if site.usage_at is None else max(now - site.usage_at, 0)
    return [max(age - since - site.usage_lag_s, 0) for age in ages_s]


def describe_told_pbs(
    beginning: _core.Beginning,
    names: PbsNames,
    told: Sequence[ToldPbsJob],
    charged_s: Sequence[int],
) -> None:
    """Tell the core whose the jobs of a snapshot are, running ones first.

    Parameters
    ----------
    beginning
        To which the site has been given, with the same names.
    names
        Of users and projects.
    told
        Of each job.
    charged_s
        For how many seconds of each running job fair share has charged what it used.
    """
    running = told[: len(charged_s)]
    beginning.describe_for_pbs(
        _rows(names, told),
        np.array([job.exclusive for job in running], dtype=np.int64),
        np.array(charged_s, dtype=np.int64),
    )


def own_pbs_arrivals(
    arrivals: _core.Arrivals, names: PbsNames, owners: Sequence[ToldPbsJob], owner: Int64Array
) -> None:
    """Tell the core whose the jobs that come later are: a row of ``owners`` for each."""
    _core.give_pbs_owners(
        arrivals, _rows(names, owners), np.ascontiguousarray(owner, dtype=np.int64)
    )


def _rows(names: PbsNames, told: Sequence[ToldPbsJob]) -> Int64Array:
    rows = [(names.code("u", job.user), names.code("p", job.project)) for job in told]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)
