"""Worker processes do all tasks, and end with whoever gave them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_sim.scores.worker_processes import run_in_processes


def halved(number: int) -> int:
    if number % 2:
        raise InputError(f"{number} is odd")
    return number // 2


def killed_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def waits_at_one(path: Path) -> None:
    if path.name == "1":
        time.sleep(600)


def spawned() -> list[psutil.Process]:
    """Give the workers of this process that live."""
    children = psutil.Process().children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_each_task_is_done_once(processes: int) -> None:
    done: dict[int, int] = {}

    def finished(number: int, result: int) -> None:
        assert number not in done
        done[number] = result

    run_in_processes(halved, range(0, 10, 2), processes, finished)
    assert done == dict(enumerate(range(5)))
    assert spawned() == []


def test_without_tasks_nothing_is_done() -> None:
    run_in_processes(halved, [], 2, lambda *_: pytest.fail("nothing is to be done"))


def test_what_a_task_raises_is_raised_with_where_it_was() -> None:
    with pytest.raises(InputError, match="3 is odd") as raised:
        run_in_processes(halved, [2, 3, 4], 2, lambda *_: None)
    assert "in halved" in "".join(raised.value.__notes__)
    assert spawned() == []


def test_a_worker_that_died_is_told() -> None:
    with pytest.raises(
        StateError, match=r"killed by SIGKILL: perhaps .* out of memory; give fewer"
    ):
        run_in_processes(killed_at_three, [2, 3, 4], 2, lambda *_: None)


def test_an_interruption_ends_who_is_at_work(tmp_path: Path) -> None:
    def finished(number: int, _result: None) -> None:
        assert number == 0
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_in_processes(waits_at_one, [tmp_path / "0", tmp_path / "1"], 2, finished)
    assert time.monotonic() - began < 300
    assert spawned() == []


def test_it_is_looked_at_while_tasks_run() -> None:
    looks: list[float] = []
    run_in_processes(time.sleep, [1.2], 1, lambda *_: None, look=lambda: looks.append(0))
    assert len(looks) > 1
