"""What a mock PBS of several hosts tells of them, and of what jobs ask and have of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from foretime_sim.engine.node_snapshot import HeldNodes, nodes_of_engine
from foretime_sim.engine.stepwise import Engine
from foretime_sim.reference.pbs.jobs_of_workload import chunks_of
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.workloads.node_request import Request

_KIB = 2**10


class HostReplies:
    """The hosts of a site in PBS's words.

    Parameters
    ----------
    site
        As which the mock schedules.
    engine
        Of the mock.
    """

    def __init__(self, site: PbsSite, engine: Engine) -> None:
        self._site = site
        self._engine = engine

    def jobs(self, indices: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Give of jobs select and place as the server completes them, and what they have."""
        running = self._engine.running()
        told = nodes_of_engine(self._engine, running, np.array(indices, dtype=np.int64))
        had: dict[int, list[str]] = {}
        for row, name, has in self._rows(told.held):
            had.setdefault(int(running[row]), []).append(f"({name}:{_words(has)})")
        found = {}
        for index, number in zip(indices, told.requests.number.tolist(), strict=True):
            found[index] = self._asked(told.requests.distinct[number])
            if index in had:
                found[index]["exec_vnode"] = "+".join(had[index])
        return found

    def nodes(self) -> dict[str, Any]:
        """Give what ``pbsnodes`` tells of each host."""
        used: dict[str, dict[str, int]] = {}
        held = nodes_of_engine(self._engine, self._engine.running(), self._engine.queue()).held
        for _, name, has in self._rows(held):
            of = used.setdefault(name, {})
            for resource, amount in has.items():
                of[resource] = of.get(resource, 0) + amount
        found = {}
        for host in self._site.hosts:
            taken = used.get(host.name, {})
            cpus = host.resources.get("ncpus", 0)
            found[host.name] = {
                "Mom": host.name,
                "ntype": "PBS",
                "state": "free" if taken.get("ncpus", 0) < cpus else "job-busy",
                "pcpus": cpus,
                "resources_available": {"host": host.name, **_told(host.resources)},
                "resources_assigned": _told({"ncpus": 0} | taken),
                "resv_enable": "True",
            }
        return found

    def _asked(self, request: Request) -> dict[str, Any]:
        chunks, place = chunks_of(request, self._site)
        select = "+".join(f"{chunk.count}:{_words(chunk.resources)}" for chunk in chunks)
        exclusive = request.choices[0].exclusive
        return {"schedselect": select, "place": f"{place}:excl" if exclusive else place}

    def _rows(self, held: HeldNodes) -> Iterator[tuple[int, str, dict[str, int]]]:
        """Give the row of the job, the host, and what it has of it; bytes."""
        hosts = self._site.able
        for row, node, number, cpus, memory_mib, gpus in held.rows().tolist():
            has = {"ncpus": cpus, "mem": memory_mib * _KIB**2, "ngpus": gpus}
            for host in range(node, node + number):
                yield row, hosts[host].name, {name: had for name, had in has.items() if had}


def _told(resources: Mapping[str, int]) -> dict[str, int | str]:
    return {
        name: f"{amount // _KIB}kb" if name == "mem" else amount
        for name, amount in resources.items()
    }


def _words(resources: Mapping[str, int]) -> str:
    return ":".join(f"{name}={value}" for name, value in _told(resources).items())
