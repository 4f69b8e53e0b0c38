"""An engine that begins with a snapshot, for whoever lives on from there step by step."""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim import _core
from foretime_sim.engine.forward import snapshot_beginning
from foretime_sim.engine.nodes_beginning import told_of
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.site import SlurmSite


def begun_engine(
    snapshot: Snapshot, policy: Policy, actual_runtime: Int64Array
) -> tuple[Engine, Int64Array]:
    """Begin an engine with a snapshot; it goes on as a forward run would, and can be changed.

    Parameters
    ----------
    snapshot, policy
        As for `foretime_sim.engine.forward.forward_runs`. A pending job that is submitted later
        joins the queue then. The policy is a site's Slurm. The snapshot is of an engine under it,
        which the new one then goes on as; or it tells whose the jobs are, or nobody's are.
    actual_runtime
        Of each job, in the order of columns, seconds; shape (jobs,).

    Returns
    -------
    tuple
        The engine, and its index of the job in each column, shape (jobs,).

    Raises
    ------
    InputError
        As `foretime_sim.engine.forward.forward_runs`, or if the policy is no site's Slurm.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim import Policy, Snapshot
    >>> from foretime_sim.engine.begun_engine import begun_engine
    >>> from foretime_sim.engine.stepwise import Engine
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.policies.slurm import Slurm
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> policy = Policy(backfill=Slurm(SlurmSite(Machine.flat(8))))
    >>> engine = Engine(8, policy)
    >>> for _ in range(2):
    ...     job = engine.submit(0, 8, actual_runtime=600, requested_time=3600)
    >>> _ = engine.advance(60)
    >>> again, index = begun_engine(Snapshot.of(engine), policy, np.array([600, 600]))
    >>> again.cancel(int(index[1]))
    >>> again.finish().started.tolist()
    []
    """
    if not isinstance(policy.backfill, Slurm):
        raise InputError(f"{policy.backfill} is no site's Slurm: an engine begins with that alone")
    columns = len(snapshot)
    runtimes = np.ascontiguousarray(actual_runtime, dtype=np.int64)
    if runtimes.shape != (columns,):
        raise InputError(f"actual_runtime has shape {runtimes.shape}: give ({columns},)")
    engine = Engine(
        snapshot.machine_processors, policy, snapshot.now, epoch_of_zero=snapshot.epoch_of_zero
    )
    core, order = snapshot_beginning(snapshot, policy).engine(runtimes)
    running = len(snapshot.running)
    index = np.arange(columns, dtype=np.int64)
    index[running + np.array(order, dtype=np.int64)] = running + np.arange(len(order))
    engine._core = core  # instead of the one that knows no jobs
    waiting, requests = index[running:], snapshot.pending.requests
    if requests is not None:
        numbers = _core.requests_of(core)[waiting].tolist()
        asked = (requests.distinct[each] for each in requests.number.tolist())
        engine._asked = dict(zip(numbers, asked, strict=True))
        engine._request_numbers = {request: each for each, request in engine._asked.items()}
    notes = snapshot.slurm_notes
    if notes is not None and notes.site == policy.backfill.site:
        engine._slurm_names = notes.names.of_jobs(np.argsort(index))
    elif snapshot.told is not None:
        _note_names(engine, snapshot, policy.backfill.site, index)
    return engine, index


def _note_names(engine: Engine, snapshot: Snapshot, site: SlurmSite, index: Int64Array) -> None:
    """Tell the engine whose the jobs are, as the core has been told."""
    names, pending, where = engine._slurm_names, snapshot.pending.requests, []
    partitions, runs_in = site.machine.slurm_partitions, snapshot.running.slurm_partition
    if names is None or pending is None or runs_in is None:
        raise InputError("the snapshot has no machine of nodes")
    first = [request.choices[0].slurm_partition for request in pending.distinct]
    where = [*runs_in.tolist(), *(first[number] for number in pending.number.tolist())]
    for column, job in enumerate(told_of(ToldJob, snapshot.told or ())):
        partition = partitions[where[column]].name
        names.note(int(index[column]), job.user, job.account, job.reservation, partition, job.said)
