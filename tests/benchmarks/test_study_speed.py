"""What the studies of Tang 2010 and Gaussier 2015 cost, and the model of the former's workloads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foretime_sim.models import intrepid_like

GAUSSIER_S, GAUSSIER_JOBS = 900, 687_741
"""Goal for all five logs on two cores, and their jobs."""


def test_whole_study(benchmark: Any, tmp_path: Path) -> None:
    benchmark.group = "foretime study tang2010, whole process, two threads"
    words = ["study", "tang2010", "--output-dir", str(tmp_path / "out")]
    command = [sys.executable, "-c", "from foretime_sidecar.cli import main; main()", *words]
    benchmark.pedantic(
        subprocess.run, args=(command,), kwargs={"check": True, "capture_output": True}, rounds=1
    )
    benchmark.extra_info["goal_s"] = 300


def test_gaussier_2015_on_kth(benchmark: Any, tmp_path: Path, trace: Callable[[str], Path]) -> None:
    benchmark.group = "foretime study gaussier2015, KTH, whole process, two processes"
    log = str(trace("KTH-SP2-1996-2.1-cln.swf.gz"))
    words = ["study", "gaussier2015", log, "--output-dir", str(tmp_path / "out")]
    command = [sys.executable, "-c", "from foretime_sidecar.cli import main; main()", *words]
    benchmark.pedantic(
        subprocess.run, args=(command,), kwargs={"check": True, "capture_output": True}, rounds=1
    )
    jobs = 28_467
    benchmark.extra_info |= {"jobs": jobs, "goal_s": GAUSSIER_S * jobs / GAUSSIER_JOBS}


def test_generating(benchmark: Any) -> None:
    benchmark.group = "generating jobs (intrepid-like)"
    benchmark.pedantic(intrepid_like.generate, args=(68_936,), rounds=3)
    benchmark.extra_info["jobs"] = 68_936
