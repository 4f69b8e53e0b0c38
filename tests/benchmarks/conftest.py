"""One readable table of what `make bench` measured, with the goals beside it.

A benchmark says in ``extra_info`` what it measured beside time, each key with its unit; what is
known here is in the table, everything is in the JSON. ``jobs`` (how many one round ran) gives
jobs/s. A goal stands under ``goal_jobs_per_s`` (at least), ``goal_s``, ``goal_cpu_s`` or
``goal_ratio`` (at most).
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import pytest

NAME_WIDTH = 70
NO_GROUP = "accuracy table, hook and replay"


@pytest.fixture
def times_reference() -> Callable[[Callable[[], object], Callable[[], object]], int]:
    """How many times quicker the second function is than the first, the quickest of five runs."""

    def measure(plain: Callable[[], object], quick: Callable[[], object]) -> int:
        slow_s = timeit.timeit(plain, number=1)
        return round(slow_s / min(timeit.repeat(quick, number=1, repeat=5)))

    return measure


def jobs_per_s(bench: Any) -> float | None:
    """Jobs per second of the quickest round."""
    if "jobs_per_s" in bench.extra_info:
        return float(bench.extra_info["jobs_per_s"])
    jobs = bench.extra_info.get("jobs")
    return None if jobs is None else jobs / bench.stats.min


def verdict(bench: Any) -> str:
    """What was aimed at, and whether it was reached."""
    info = bench.extra_info
    speed = jobs_per_s(bench)
    if "goal_jobs_per_s" in info and speed is not None:
        goal, reached = f">= {info['goal_jobs_per_s']:,}/s", speed >= info["goal_jobs_per_s"]
    elif "goal_s" in info:
        goal, reached = f"<= {info['goal_s']:g} s", bench.stats.min <= info["goal_s"]
    elif "goal_cpu_s" in info:
        goal, reached = f"<= {info['goal_cpu_s']:g} s CPU", info["cpu_s"] <= info["goal_cpu_s"]
    elif "goal_bytes_per_job" in info:
        goal = f"< {info['goal_bytes_per_job']} bytes"
        reached = info["bytes_per_job"] < info["goal_bytes_per_job"]
    elif "goal_ratio" in info:
        goal, reached = f"ratio <= {info['goal_ratio']:g}", info["ratio"] <= info["goal_ratio"]
    else:
        return ""
    return f"{goal} {'met' if reached else 'MISSED'}"


def details(info: dict[str, Any]) -> str:
    """Everything else that a benchmark tells, except what has a column of its own."""
    shown = {"jobs", "jobs_per_s", "times_reference"}
    told = [
        f"{key} {value:,.3g}" if isinstance(value, float) else f"{key} {value:,}"
        for key, value in info.items()
        if key not in shown and not key.startswith("goal_") and isinstance(value, int | float)
    ]
    return ", ".join(told)


def seconds(time_s: float) -> str:
    """Write a time in a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if time_s >= size:
            return f"{time_s / size:.3g} {unit}"
    return f"{time_s / 1e-9:.3g} ns"


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    """Keep each benchmark's statistics, not its millions of timings."""
    for bench in output_json["benchmarks"]:
        bench["stats"].pop("data", None)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    session = getattr(config, "_benchmarksession", None)
    measured = [] if session is None else [b for b in session.benchmarks if b.stats is not None]
    measured = [bench for bench in measured if bench.stats.data]
    if not measured:
        return
    write = terminalreporter.write_line
    terminalreporter.section("what was measured, and the goals")
    heading = f"{'':{NAME_WIDTH}} {'quickest':>9} {'jobs/s':>12} {'x Python':>9}  goal"
    for group in dict.fromkeys(bench.group or NO_GROUP for bench in measured):
        write("")
        write(f"{group:{NAME_WIDTH}}{heading[NAME_WIDTH:]}")
        for bench in measured:
            if (bench.group or NO_GROUP) != group:
                continue
            info = bench.extra_info
            speed, ratio = jobs_per_s(bench), info.get("times_reference")
            name = bench.name.removeprefix("test_").replace("-cln", "")
            columns = (
                f"{seconds(bench.stats.min):>9}",
                f"{'' if speed is None else format(speed, ',.0f'):>12}",
                f"{'' if ratio is None else format(ratio, ',.0f'):>9}",
            )
            more = "  ".join(part for part in (verdict(bench), details(info)) if part)
            write(f"  {name:{NAME_WIDTH - 2}} {' '.join(columns)}  {more}".rstrip())
