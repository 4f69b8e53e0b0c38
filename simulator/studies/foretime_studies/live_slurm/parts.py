"""Runs made side by side, in parts: what is not done when a part's time is up goes on by itself.

A live cluster can't be paused, and a run takes longer than most people's patience. So each run is a
process of its own, which brings its cluster up and down and writes its result at its end. A part
begins runs as places are free, and watches; the next part finds those that go on, takes what has
ended, and begins anew what ended without a result.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import psutil

from foretime_studies.live_slurm.runs import RunName

BETWEEN_S = 8.0
"""Between the beginnings of two runs: bringing up a cluster is work, the run itself is not."""
_WATCHED_S = 1.0
_END_S = 30.0


Begin: TypeAlias = Callable[[RunName, Path, Path], int]
"""Begins a run, with the files of its result and of what it says, and gives its process's id."""


@dataclass(slots=True)
class Part:
    """What became of the runs in one part.

    Attributes
    ----------
    done
        That have their results.
    going_on
        That are being run.
    failed
        That ended without a result in this part.
    left
        That were not begun.
    """

    done: list[RunName] = field(default_factory=list)
    going_on: list[RunName] = field(default_factory=list)
    failed: list[RunName] = field(default_factory=list)
    left: list[RunName] = field(default_factory=list)


def run_part(
    runs: Sequence[RunName],
    folder: Path,
    begin: Begin,
    *,
    minutes: float = math.inf,
    side_by_side: int = 8,
    between_s: float = BETWEEN_S,
    progress: Callable[[int], None] = lambda _: None,
) -> Part:
    """Make runs that are not there yet, until all are or the time is up.

    Ctrl-C ends the runs that go on; the end of the time does not.

    Parameters
    ----------
    runs
        In the order in which they begin.
    folder
        Of the results.
    begin
        Begins one.
    minutes
        When the part ends.
    side_by_side
        Runs at once.
    between_s
        Between the beginnings of two runs, seconds.
    progress
        Called with how many have ended.
    """
    until = time.monotonic() + 60 * minutes
    part, next_begin = Part(left=list(runs)), -math.inf
    try:
        while True:
            _sort(part, folder)
            progress(len(part.done))
            now = time.monotonic()
            if now >= until or not (part.left or part.going_on):
                return part
            if part.left and len(part.going_on) < side_by_side and now >= next_begin:
                name = part.left.pop(0)
                _begin(name, folder, begin)
                part.going_on.append(name)
                next_begin = now + between_s
            time.sleep(min(_WATCHED_S, max(until - time.monotonic(), 0)))
    except BaseException:
        for name in part.going_on:
            _end(name.path(folder))
        raise


def _sort(part: Part, folder: Path) -> None:
    """Find out which runs have ended since, and which go on from an earlier part."""
    for name in list(part.left):
        if name.path(folder).exists():
            _move(name, part.left, part.done)
        elif _process(name.path(folder)) is not None:
            _move(name, part.left, part.going_on)
    for name in list(part.going_on):
        if _process(name.path(folder)) is None:
            _note(name.path(folder)).unlink(missing_ok=True)
            there = name.path(folder).exists()
            _move(name, part.going_on, part.done if there else part.failed)
            if there:
                log_of(name.path(folder)).unlink(missing_ok=True)


def _move(name: RunName, source: list[RunName], target: list[RunName]) -> None:
    source.remove(name)
    target.append(name)


def _begin(name: RunName, folder: Path, begin: Begin) -> None:
    path = name.path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    process = psutil.Process(begin(name, path, log_of(path)))
    told = {"pid": process.pid, "began": process.create_time()}
    _note(path).write_text(json.dumps(told), encoding="utf-8")


def _process(path: Path) -> psutil.Process | None:
    """Give the process that makes a run; ``None`` if there is none."""
    try:
        told = json.loads(_note(path).read_text(encoding="utf-8"))
        process = psutil.Process(told["pid"])
        same = abs(process.create_time() - told["began"]) < 1
        alive = process.status() != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return None
    return process if same and alive else None


def _end(path: Path) -> None:
    """End a run; its cluster ends with it."""
    process = _process(path)
    if process is not None:
        os.killpg(process.pid, signal.SIGTERM)
        psutil.wait_procs([process], timeout=_END_S)
    _note(path).unlink(missing_ok=True)


def _note(path: Path) -> Path:
    return path.with_suffix(".running")


def log_of(path: Path) -> Path:
    """Give the file of what a run says, which is removed once it has its result."""
    return path.with_suffix(".log")
