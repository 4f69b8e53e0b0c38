"""What keeps jobs from the queue, by hand; and what is impossible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.admission import After, Dependencies, GroupLimit
from foretime_sim.engine.forward import forward_runs
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy

NOW = 1_000


def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def snapshot(*pending: tuple[int, int], waits: Dependencies | None = None) -> Snapshot:
    """Eight processors, of which a job that began 100 s ago has four; jobs of width and request."""
    waiting = PendingJobs(
        column(*range(NOW - len(pending), NOW)),
        column(*(width for width, _ in pending)),
        column(*(requested for _, requested in pending)),
        dependencies=waits,
    )
    running = RunningJobs(column(NOW - 100), column(4), column(300))
    return Snapshot(NOW, 8, running, waiting)


def starts(of: Snapshot, *runtimes: int) -> list[int]:
    """Columns: the running job, then those that wait; seconds from now."""
    return [int(t) - NOW for t in forward_runs(of, Policy(), column(*runtimes)[np.newaxis])[0]]


@pytest.mark.parametrize(
    ("event", "delay", "start"),
    # The job waited for runs until 150, and has run since -100.
    [(After.END, 0, 150), (After.END, 60, 210), (After.START, 0, 0), (After.START, 130, 30)],
)
def test_a_running_job_is_waited_for(event: After, delay: int, start: int) -> None:
    waits = Dependencies.of_rows([(0, 0, event, delay, 0)])
    assert starts(snapshot((2, 50), waits=waits), 250, 50) == [-100, start]


def test_a_chain_ends_as_its_samples_end() -> None:
    # 0 starts now and runs 30; 1 is after it, and 2 after the start of 1.
    waits = Dependencies.of_rows([(1, 1, After.END, 0, 0), (2, 2, After.START, 5, 0)])
    asked = snapshot((2, 60), (2, 60), (2, 60), waits=waits)
    assert starts(asked, 250, 30, 20, 10) == [-100, 0, 30, 35]


def test_a_job_waits_for_all_or_for_any_of_its_dependencies() -> None:
    for any_suffices, start in ((0, 150), (1, 30)):
        rows = [(1, 0, After.END, 0, any_suffices), (1, 1, After.END, 0, any_suffices)]
        asked = snapshot((2, 60), (2, 60), waits=Dependencies.of_rows(rows))
        assert starts(asked, 250, 30, 20) == [-100, 0, start]


def test_who_waits_for_others_is_in_nobodys_way() -> None:
    # The wide job would be the head; it is not in the queue until the running job has ended.
    waits = Dependencies.of_rows([(0, 0, After.END, 0, 0)])
    assert starts(snapshot((8, 60), (4, 500), waits=waits), 250, 50, 400) == [-100, 400, 0]
    assert starts(snapshot((8, 60), (4, 500)), 250, 50, 400) == [-100, 150, 200]


def test_a_throttled_array_has_so_many_tasks_at_once() -> None:
    # Two tasks at once (%2): each of 2 processors, though there is room for both.
    array = snapshot((2, 50), (2, 50), (2, 50))
    assert starts(array, 250, 40, 30, 20) == [-100, 0, 0, 30]
    limited = replace(array, limits=(GroupLimit(column(1, 2, 3), most_jobs=1),))
    assert starts(limited, 250, 40, 30, 20) == [-100, 0, 40, 70]
    of_user = replace(array, limits=(GroupLimit(column(0, 1, 2, 3), most_processors=6),))
    assert starts(of_user, 250, 40, 30, 20) == [-100, 0, 40, 70]
    more = of_user.with_job(2, 50, limits=[0])
    assert starts(more, 250, 40, 30, 20, 10) == [-100, 0, 40, 70, 90]
    assert starts(of_user.with_job(2, 50), 250, 40, 30, 20, 10) == [-100, 0, 40, 70, 0]


def test_larger_priorities_are_let_in_first() -> None:
    limited = replace(snapshot((2, 50), (2, 50)), limits=(GroupLimit(column(1, 2), 1),))
    ranked = replace(limited, pending=replace(limited.pending, priority=column(1, 2)))
    runs = forward_runs(ranked, Policy(Order.PRIORITY), column(250, 40, 30)[np.newaxis])
    assert (runs[0] - NOW).tolist() == [-100, 30, 0]


def test_a_group_over_its_limit_gets_nothing_until_it_has_less() -> None:
    over = replace(snapshot((2, 50)), limits=(GroupLimit(column(0, 1), 1),))
    assert starts(over, 250, 40) == [-100, 150]


def test_what_is_impossible_is_said() -> None:
    circle = Dependencies.of_rows([(0, 2, After.END, 0, 0), (1, 1, After.START, 0, 0)])
    with pytest.raises(InputError, match="wait for each other and never start: 0, 1"):
        snapshot((2, 50), (2, 50), waits=circle)
    for row, message in (
        ((1, 0, 1, 0, 0), "row 0: job is 1, it must be from 0 to 0"),
        ((0, 2, 1, 0, 0), "row 0: on is 2"),
        ((0, 0, 2, 0, 0), "row 0: event is 2"),
        ((0, 0, 1, -1, 0), "row 0: delay_s is -1"),
    ):
        with pytest.raises(InputError, match=f"dependencies: {message}"):
            snapshot((2, 50), waits=Dependencies.of_rows([row]))
    both = Dependencies.of_rows([(0, 0, After.END, 0, 0), (0, 0, After.START, 0, 1)])
    with pytest.raises(InputError, match="any_suffices is both 0 and 1"):
        snapshot((2, 50), waits=both)
    for limit, message in (
        (GroupLimit(column(1), 0), "most_jobs is 0: none could ever start"),
        (GroupLimit(column(1), most_processors=1), "job 1 needs 2 processors, more than"),
        (GroupLimit(column(1, 1), 1), "a job is in it twice"),
        (GroupLimit(column(2), 1), "row 0: jobs is 2"),
    ):
        with pytest.raises(InputError, match=f"limit 0: {message}"):
            replace(snapshot((2, 50)), limits=(limit,))
