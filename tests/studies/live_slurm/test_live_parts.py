"""Runs made in parts: begun, left to go on, taken up again, begun anew."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from foretime_studies.live_slurm.parts import Part, run_part
from foretime_studies.live_slurm.runs import RunName

NAMES = [RunName("short", "26.05", arm, 1) for arm in ("plain", "start", "plain-one")]
_SECOND_MIN = 1 / 60


class Processes:
    """Begins processes that write their result after some seconds, or end without one.

    Attributes
    ----------
    lasting_s
        How long one takes.
    fails
        Whether they end without a result.
    begun
        By the runs' names.
    """

    def __init__(self) -> None:
        self.lasting_s, self.fails = 0.2, False
        self.begun: list[tuple[RunName, subprocess.Popen[bytes]]] = []

    def begin(self, run: RunName, result: Path, log: Path) -> int:
        log.write_text("said")
        last = "exit(1)" if self.fails else f"open({str(result)!r}, 'w').close()"
        words = [sys.executable, "-c", f"import time; time.sleep({self.lasting_s}); {last}"]
        process = subprocess.Popen(words, start_new_session=True)
        self.begun.append((run, process))
        return process.pid

    @property
    def alive(self) -> int:
        return sum(process.poll() is None for _, process in self.begun)

    def end(self) -> None:
        for _, process in self.begun:
            process.kill()
            process.wait()


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Processes that are ended with the test."""
    made = Processes()
    yield made
    made.end()


Runs = Callable[..., Part]


@pytest.fixture
def part(processes: Processes, tmp_path: Path) -> Runs:
    """Make a part of `NAMES`."""

    def make(**given: float) -> Part:
        settings = {"between_s": 0, "minutes": 10, "side_by_side": 3, **given}
        return run_part(NAMES, tmp_path, processes.begin, **settings)  # type: ignore[arg-type]

    return make


def test_all_are_run_once(part: Runs, processes: Processes, tmp_path: Path) -> None:
    assert sorted(part().done) == sorted(NAMES)
    assert sorted(part().done) == sorted(NAMES)

    assert len(processes.begun) == 3
    assert sorted(tmp_path.rglob("*.csv")) == sorted(name.path(tmp_path) for name in NAMES)
    assert not [*tmp_path.rglob("*.running"), *tmp_path.rglob("*.log")]


def test_only_so_many_are_run_at_once(part: Runs, processes: Processes) -> None:
    processes.lasting_s = 600

    made = part(side_by_side=2, minutes=3 * _SECOND_MIN)

    assert (len(made.going_on), made.left) == (2, NAMES[2:])
    assert processes.alive == 2


def test_what_goes_on_when_the_time_is_up_is_not_begun_anew(
    part: Runs, processes: Processes
) -> None:
    processes.lasting_s = 6
    first = part(minutes=4 * _SECOND_MIN)

    assert (len(first.going_on), first.done) == (3, [])
    assert sorted(part().done) == sorted(NAMES)
    assert len(processes.begun) == 3


def test_a_run_that_ended_without_a_result_is_begun_anew_in_the_next_part(
    part: Runs, processes: Processes, tmp_path: Path
) -> None:
    processes.fails = True
    failed = part()

    assert sorted(failed.failed) == sorted(NAMES)
    assert len(list(tmp_path.rglob("*.log"))) == 3

    processes.fails = False
    assert sorted(part().done) == sorted(NAMES)


def test_a_run_that_was_killed_between_two_parts_is_begun_anew(
    part: Runs, processes: Processes
) -> None:
    processes.lasting_s = 600
    part(minutes=3 * _SECOND_MIN)
    processes.end()

    processes.lasting_s = 0.2
    assert sorted(part().done) == sorted(NAMES)
    assert len(processes.begun) == 6


def test_an_interruption_ends_what_goes_on(part: Runs, processes: Processes) -> None:
    processes.lasting_s = 600

    def interrupt(_: int) -> None:
        if len(processes.begun) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        part(progress=interrupt)

    until = time.monotonic() + 30
    while processes.alive and time.monotonic() < until:
        time.sleep(0.1)
    assert not processes.alive
    assert all(psutil.pid_exists(process.pid) is False for _, process in processes.begun)
