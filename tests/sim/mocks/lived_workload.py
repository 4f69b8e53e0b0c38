"""A workload lived through by a mock scheduler, with a client that looks in on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from foretime_sidecar.clients.client import Cursor, SchedulerClient
from foretime_sim.engine.schedule import Schedule
from foretime_sim.mocks.mock_scheduler import MockScheduler
from foretime_sim.workloads.workload import Workload


def lived(
    mock: MockScheduler[Any],
    client: SchedulerClient,
    submit: Callable[[int, int, int], object],
    workload: Workload,
    looks: list[int],
) -> Schedule:
    """Submit a workload job by job, with looks at some moments; its times count from the mock's.

    ``submit`` is given processors, requested time and actual runtime of the next job.
    """
    start = mock.now
    looks = sorted(looks, reverse=True)
    for job in range(len(workload)):
        at = int(workload.submit_time[job]) + start
        while looks and looks[-1] + start <= at:
            moment = looks.pop() + start
            if moment >= mock.now:
                mock.advance(moment)
                assert client.queue().processors == workload.machine_processors
                client.finished_since(Cursor(0))
        if at > mock.now:
            mock.advance(at)
        submit(
            int(workload.processors[job]),
            int(workload.requested_time[job]),
            int(workload.actual_runtime[job]),
        )
    mock.finish()
    schedule = mock.schedule()
    return replace(
        schedule, start_time=schedule.start_time - start, end_time=schedule.end_time - start
    )
