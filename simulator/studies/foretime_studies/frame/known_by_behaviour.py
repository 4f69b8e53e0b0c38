"""What a study keeps of its runs is known by what the code does, too, not by its version alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from foretime_sim.campaigns.cells import Cell, Plan
from foretime_sim.campaigns.runs import policy_of
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.models.lublin2003 import generate
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

_PROBE_JOBS, _PROBE_PROCESSORS, _PROBE_USERS = 300, 32, 5
_OF_THE_WORKLOAD = ("log", "seed", "interarrival_factor")


def known_by_behaviour(planned: Plan) -> Plan:
    """Add to what each cell is known by what its policy and estimator do to a small workload.

    So a result of older code is not taken for one of this.
    """
    return replace(planned, cells=tuple(_with_behaviour(planned.cells)))


def _with_behaviour(cells: Sequence[Cell]) -> Iterator[Cell]:
    seen: dict[str, bytes] = {}
    jobs = probe()
    for cell in cells:
        axes = {axis: v for axis, v in cell.axes.items() if axis not in _OF_THE_WORKLOAD}
        policy = json.dumps(axes, sort_keys=True)
        if policy not in seen:
            estimator = estimator_of(cell.axes["estimator"], jobs)
            schedule = simulate_with_estimator(jobs, policy_of(cell), estimator)
            seen[policy] = schedule.start_time.tobytes()
        digest = hashlib.sha256(cell.id.encode() + seen[policy]).hexdigest()
        yield replace(cell, id=digest[:16])


def probe() -> Workload:
    """Give a small workload with users, busy enough that jobs wait."""
    jobs = generate(_PROBE_JOBS, processors=_PROBE_PROCESSORS, load=0.9)
    codes = np.arange(len(jobs), dtype=np.int32) // 3 % _PROBE_USERS
    names = tuple(f"user{number}" for number in range(_PROBE_USERS))
    return replace(jobs, users=Labels(codes, names))


def known_by_jobs(workload: Workload, scheduler: str, behaviour: bytes) -> str:
    """Give a short name of a run by its machine, its jobs, its scheduler and what that does."""
    hashed = hashlib.sha256(f"{workload.machine_processors} {scheduler}".encode())
    for column in ("submit_time", "processors", "actual_runtime", "requested_time"):
        hashed.update(getattr(workload, column).tobytes())
    hashed.update(behaviour)
    return hashed.hexdigest()[:16]
