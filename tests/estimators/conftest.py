"""Finished jobs, made short."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest


@pytest.fixture
def finished() -> Callable[..., FinishedJob]:
    """Build finished jobs; unless said otherwise user u, project p, 1 processor, 48 hours."""
    numbers = count(1)

    def build(
        actual_runtime: int,
        requested_time: int = 48 * 3600,
        *,
        user: str | None = "u",
        project: str | None = "p",
        processors: int = 1,
        end_time: int = 1_000_000_000,
        ending: Ending = Ending.COMPLETED,
        array_id: str | None = None,
        started: bool = True,
        submit_time: int | None = None,
    ) -> FinishedJob:
        start_time = end_time - actual_runtime
        request = JobRequest(
            job_id=str(next(numbers)),
            user=user,
            project=project,
            processors=processors,
            requested_time=requested_time,
            submit_time=start_time if submit_time is None else submit_time,
            array_id=array_id,
        )
        return FinishedJob(
            request=request,
            start_time=start_time if started else None,
            end_time=end_time,
            actual_runtime=actual_runtime,
            ending=ending,
        )

    return build
