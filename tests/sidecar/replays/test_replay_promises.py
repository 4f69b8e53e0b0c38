"""What a replay promises: nobody killed early, nothing without the soft limit, bounded waits."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics, ReplaySchedule
from foretime_sidecar.replays.report import render
from foretime_sidecar.table.table import Mode, read_table
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.families import Easy
from foretime_sim.policies.guard import Guard, parse_guard
from foretime_sim.policies.policy import Policy
from foretime_sim.scores.comparison import compare
from foretime_sim.scores.replay_result import ReplayResult
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload
from rich.console import Console

from tests.support.replay_runs import (
    CLOCK,
    DAY_S,
    PAPER,
    PROCESSORS,
    WORKLOAD,
    replay_of,
    run,
    same_schedule,
)

# Nobody is killed early, and the check can fail ---------------------------------------------------


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("guard_s", [None, 0, 3600])
def test_nobody_is_killed_before_the_time_asked_for(
    mechanism: Mechanism, guard_s: int | None
) -> None:
    _, adjusted = run(
        replay_of(mechanism, policy=Policy(backfill=Easy(guard=parse_guard(guard_s))))
    )
    assert (adjusted.scheduled_time < WORKLOAD.requested_time).any()
    assert adjusted.outlived.any(), "no job outlived t_sched, so none could have been killed"


def test_a_prolog_that_fails_kills_early_and_the_report_says_so() -> None:
    broken = SlurmSetup(PROCESSORS, prolog_works=False)
    task = replay_of(Mechanism.REWRITE_LIMIT, setup=broken)
    comparison = compare(WORKLOAD, task)
    adjusted = task(WORKLOAD, 0).adjusted
    assert isinstance(adjusted, ReplaySchedule)
    shortened = adjusted.scheduled_time < WORKLOAD.requested_time
    np.testing.assert_array_equal(
        adjusted.killed,
        shortened
        & (np.minimum(WORKLOAD.actual_runtime, WORKLOAD.requested_time) > adjusted.scheduled_time),
    )
    assert adjusted.killed.any()
    ran = adjusted.end_time - adjusted.start_time
    np.testing.assert_array_equal(ran[adjusted.killed], adjusted.scheduled_time[adjusted.killed])
    text = printed(comparison_result(comparison))
    assert "Nobody was killed" not in text
    assert f"{int(adjusted.killed.sum())} jobs" in text


def comparison_result(comparison: Any) -> ReplayResult:
    return ReplayResult("made", PROCESSORS, len(WORKLOAD), (), {}, comparison, None, 0, 1.0)


def printed(result: ReplayResult) -> str:
    file = io.StringIO()
    Console(file=file, width=100).print(render(result))
    return file.getvalue()


# Without the soft limit the hook only observes ----------------------------------------------------


def test_without_the_soft_limit_nothing_is_changed(tmp_path: Path) -> None:
    setup = SlurmSetup(PROCESSORS, soft_limit_parameter=False)
    baseline, adjusted = run(replay_of(setup=setup, state_dir=tmp_path))
    same_schedule(baseline, adjusted)
    np.testing.assert_array_equal(adjusted.scheduled_time, WORKLOAD.requested_time)
    table = read_table(tmp_path / "repeat-0" / "foretime.table")
    assert table.settings.mode is Mode.OBSERVE
    assert table.rows, "it learned all the same"


# The starvation guard -----------------------------------------------------------------------------


def starving() -> tuple[Workload, Workload]:
    """Give a stream of narrow jobs whose history says that they are short, and a wide one in it."""

    def narrow(submit_time: np.ndarray[Any, np.dtype[np.int64]], runtime: int) -> Workload:
        count = len(submit_time)
        return Workload(
            name="starving",
            machine_processors=10,
            unix_start_time=CLOCK,
            job_id=np.arange(1, count + 1),
            submit_time=submit_time,
            processors=np.ones(count, dtype=np.int64),
            actual_runtime=np.full(count, runtime),
            requested_time=np.full(count, 4 * 3600),
            users=Labels(np.zeros(count, dtype=np.int32), ("narrow", "wide")),
        )

    history = narrow(np.arange(60) * 600, 300)
    stream = narrow(3 * DAY_S + np.arange(1500) * 400, 3900)
    processors, requested = stream.processors.copy(), stream.requested_time.copy()
    codes = np.zeros(len(stream), dtype=np.int32)
    wide = 50
    processors[wide], requested[wide], codes[wide] = 10, 3600, 1
    runtime = stream.actual_runtime.copy()
    runtime[wide] = 3600
    users = Labels(codes, ("narrow", "wide"))
    return history, replace(
        stream, processors=processors, requested_time=requested, actual_runtime=runtime, users=users
    )


def test_the_guard_bounds_the_wait_of_a_head_job() -> None:
    history, log = starving()
    waits = {}
    for guard_s in (None, 6 * 3600):
        task = replay_of(
            rule=PAPER,
            policy=Policy(backfill=Easy(guard=parse_guard(guard_s))),
            history=history,
            learn=False,
        )
        baseline, adjusted = run(task, log)
        waits[guard_s] = int(adjusted.start_time[50] - log.submit_time[50])
        plain = int(baseline.start_time[50] - log.submit_time[50])
        # Every limit has run out 4 hours after the wide job became the head.
        assert plain <= 4 * 3600
    assert waits[None] > 4 * DAY_S
    assert waits[6 * 3600] <= (4 + 6 + 4) * 3600 + 400


def test_guard_activations_are_counted() -> None:
    history, log = starving()
    task = replay_of(
        rule=PAPER, policy=Policy(backfill=Easy(guard=Guard(3600))), history=history, learn=False
    )
    statistics = task(log, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.guard_activations >= 1
