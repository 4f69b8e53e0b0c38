"""The machine of nodes that forward runs begin with, and what jobs have and ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim import _core
from foretime_sim.engine.native.node_core import core_group, core_request
from foretime_sim.engine.native.pbs_core import check_notes, core_pbs_site
from foretime_sim.engine.native.pbs_names import PbsNames
from foretime_sim.engine.native.slurm_core import as_submitted, core_site
from foretime_sim.engine.node_snapshot import NodeRequests
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.told_jobs import ToldJob, describe_told
from foretime_sim.engine.told_pbs_jobs import ToldPbsJob, charged_s, describe_told_pbs
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite

_Told = TypeVar("_Told", ToldJob, ToldPbsJob)


def told_of(kind: type[_Told], told: Sequence[ToldJob | ToldPbsJob]) -> list[_Told]:
    """Give what is told of jobs; InputError if that is another scheduler's."""
    found = [job for job in told if isinstance(job, kind)]
    if len(found) < len(told):
        raise InputError(f"what is told of the jobs is not a {kind.__name__} each: give those")
    return found


def notes_of(
    snapshot: Snapshot, site: SlurmSite | PbsSite | None
) -> _core.SlurmState | _core.PbsNotes | None:
    """Give what an engine's scheduler has in mind, if it is that of the site."""
    return snapshot.pbs_notes if isinstance(site, PbsSite) else _slurm_state(snapshot, site)


def _slurm_state(snapshot: Snapshot, site: SlurmSite | None) -> _core.SlurmState | None:
    notes = snapshot.slurm_notes
    return None if notes is None or notes.site != site else notes.state


def _first_partitions(machine: Machine, running: Int64Array, pending: NodeRequests) -> list[str]:
    """Give the slurm_partition of each running job, and the first that each pending one names."""
    first = [request.choices[0].slurm_partition for request in pending.distinct]
    places = [*running.tolist(), *(first[number] for number in pending.number.tolist())]
    return [machine.slurm_partitions[place].name for place in places]


def give_nodes(
    beginning: _core.Beginning,
    snapshot: Snapshot,
    arriving: NodeRequests | None,
    site: SlurmSite | PbsSite | None = None,
    names: PbsNames | None = None,
    *,
    coarse: bool = False,
) -> None:
    """Give the core the machine, what jobs have of it, and what those that wait or come ask.

    ``names``: codes of a PBS's users and projects; ``None``: fresh ones. ``coarse``: as of `Slurm`.
    """
    machine, running, pending = snapshot.machine, snapshot.running, snapshot.pending
    held, partition, requests = running.held, running.slurm_partition, pending.requests
    if machine is None or held is None or partition is None or requests is None:
        raise InputError("the snapshot has no machine of nodes")
    asked = (*requests.distinct, *(() if arriving is None else arriving.distinct))
    if isinstance(site, PbsSite):
        names = names or PbsNames(site)
        known = snapshot.pbs_notes is not None or snapshot.told is not None
        check_notes(site, known=known)
        beginning.use_pbs(
            core_pbs_site(site, snapshot.epoch_of_zero, names),
            [core_request(request) for request in asked],
            np.ascontiguousarray(requests.number, dtype=np.int64),
            partition,
            held.rows(),
            snapshot.pbs_notes,
        )
        if snapshot.pbs_notes is None and snapshot.told is not None:
            told = told_of(ToldPbsJob, snapshot.told)
            ages = (snapshot.now - running.start_time).tolist()
            charged = charged_s(site, snapshot.now + snapshot.epoch_of_zero, ages)
            describe_told_pbs(beginning, names, told, charged)
        return
    if site is not None:
        state = _slurm_state(snapshot, site)
        told_jobs = None
        if state is None and snapshot.told is not None:
            told_jobs = told_of(ToldJob, snapshot.told)
        core = None
        if state is None:
            rules = as_submitted(site) if told_jobs is None else site
            core = core_site(rules, snapshot.epoch_of_zero)
        beginning.use_slurm(
            core,
            [core_request(request) for request in asked],
            np.ascontiguousarray(requests.number, dtype=np.int64),
            partition,
            held.rows(),
            state,
            coarse,
        )
        if told_jobs is not None:
            where = _first_partitions(machine, partition, requests)
            describe_told(beginning, site, told_jobs, where)
        return
    beginning.use_nodes(
        [core_group(machine, number) for number in range(len(machine.node_groups))],
        [part.max_nodes_in_use for part in machine.slurm_partitions],
        [core_request(request) for request in asked],
    )
    beginning.add_running_nodes(partition, held.rows())
    beginning.add_pending_requests(np.ascontiguousarray(requests.number, dtype=np.int64))
    plans = pending.plans
    if plans is not None and plans.slurm_partition is not None and plans.held is not None:
        beginning.add_planned_nodes(plans.slurm_partition, plans.held.rows())
