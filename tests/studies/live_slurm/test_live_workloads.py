"""The jobs of live-slurm: as they were drawn, and as a replay has them."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_studies.live_slurm.workloads import LiveWorkload, workload_names

from tests.slurm.runs.arm_workloads import DRAWS, FOLDER, files


def test_files_are_as_they_are_drawn() -> None:
    drawn = files()

    assert sorted(drawn) == workload_names()
    for name, text in drawn.items():
        assert (FOLDER / f"{name}.csv").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", DRAWS)
def test_a_workload_has_as_many_jobs_and_minutes_as_were_asked_for(name: str) -> None:
    workload = LiveWorkload.named(name)

    assert len(workload.jobs) >= 400
    assert len(workload.before) == 500
    work_min = sum(job.tasks * job.runtime_s for job in workload.jobs) / 100 / 60
    assert max(work_min, workload.jobs[-1].submit_s / 60) > 60
    assert workload.heavy == name.startswith("heavy")
    assert workload.load == pytest.approx(DRAWS[name].load, rel=0.05)


def test_a_replay_has_the_jobs_with_what_they_asked_for() -> None:
    workload = LiveWorkload.named("short")
    columns, before = workload.columns(), workload.columns_before()

    assert columns.submit_time.tolist() == [job.submit_s for job in workload.jobs]
    assert columns.requested_time.tolist() == [60 * job.time_limit_min for job in workload.jobs]
    assert columns.processors.max() == 100
    ended = (before.unix_start_time or 0) + before.submit_time + before.actual_runtime
    assert ended.max() < (columns.unix_start_time or 0)


def test_a_workload_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no workload 'heavy'; there are heavy-1, heavy-2, light"):
        LiveWorkload.named("heavy")
