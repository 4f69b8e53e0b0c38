"""Reading SWF, and the whole way from a file to a result, Python's start included."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foretime_sim.files.compressed_files import read_text
from foretime_sim.logs.swf import _read_line_by_line, parse_swf, read_swf

LOGS = ("KTH-SP2-1996-2.1-cln", "SDSC-BLUE-2000-4.2-cln", "CEA-Curie-2011-2.1-cln")
SLICE = 5_000
"""Lines that are read line by line, in Python, too."""


@pytest.mark.traces
@pytest.mark.parametrize("log", LOGS)
def test_read_swf(
    benchmark: Any,
    trace: Callable[[str], Path],
    times_reference: Callable[[Callable[[], object], Callable[[], object]], int],
    log: str,
) -> None:
    """From a gzip file to columns."""
    benchmark.group = "reading SWF (gzip)"
    path = trace(f"{log}.swf.gz")
    jobs = benchmark.pedantic(read_swf, args=(path,), rounds=5, warmup_rounds=1)
    text = read_text(path)
    benchmark.extra_info["jobs"] = len(jobs)
    benchmark.extra_info["mb_per_s"] = round(len(text) / 1e6 / benchmark.stats.stats.min)
    lines = [line for line in text.split("\n") if line and not line.startswith(";")]
    some = "\n".join(lines[:SLICE])
    benchmark.extra_info["times_reference"] = times_reference(
        lambda: _read_line_by_line(some, "some", lenient=False),
        lambda: parse_swf(some, source="some"),
    )


@pytest.mark.traces
@pytest.mark.parametrize(
    ("log", "options"),
    [
        ("KTH-SP2-1996-2.1-cln", ()),
        ("CEA-Curie-2011-2.1-cln", ("--processors", "80640")),
    ],
)
def test_swf_to_result(
    benchmark: Any, trace: Callable[[str], Path], log: str, options: tuple[str, ...]
) -> None:
    """A process of its own: start, read, filter, simulate with EASY, score, print."""
    benchmark.group = "foretime simulate, from start to table"
    path = str(trace(f"{log}.swf.gz"))
    command = [sys.executable, "-c", "from foretime_sidecar.cli import main; main()", "simulate"]
    benchmark.pedantic(
        subprocess.run,
        args=([*command, path, *options],),
        kwargs={"check": True, "stdout": subprocess.DEVNULL},
        rounds=5,
        warmup_rounds=1,
    )
    benchmark.extra_info["goal_s"] = 1.5


def test_help(benchmark: Any) -> None:
    benchmark.group = "foretime --help"
    command = [sys.executable, "-c", "from foretime_sidecar.cli import main; main()", "--help"]
    benchmark.pedantic(
        subprocess.run,
        args=(command,),
        kwargs={"check": True, "stdout": subprocess.DEVNULL},
        rounds=5,
        warmup_rounds=1,
    )
