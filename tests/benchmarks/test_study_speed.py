"""What the study of Tang 2010 costs, and the model that its workloads come from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from foretime_sim import intrepid_like


def test_whole_study(benchmark: Any, tmp_path: Path) -> None:
    benchmark.group = "foretime study tang2010, whole process, two threads"
    words = ["study", "tang2010", "--output-dir", str(tmp_path / "out")]
    command = [sys.executable, "-c", "from foretime_sidecar.cli import main; main()", *words]
    benchmark.pedantic(
        subprocess.run, args=(command,), kwargs={"check": True, "capture_output": True}, rounds=1
    )
    benchmark.extra_info["goal_s"] = 300


def test_generating(benchmark: Any) -> None:
    benchmark.group = "generating jobs (intrepid-like)"
    benchmark.pedantic(intrepid_like.generate, args=(68_936,), rounds=3)
    benchmark.extra_info["jobs"] = 68_936
