"""The command line as a person meets it, and a log to run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.cli import main
from foretime_sim.logs.swf import write_swf
from foretime_sim.models import lublin2003
from foretime_sim.workloads.job_log import log_of_workload


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Call ``foretime`` with arguments; give exit code, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["foretime", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        code = left.value.code
        return (0 if code is None else int(code)), captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated log of 300 jobs in a few days."""
    path = tmp_path_factory.mktemp("log") / "made.swf.gz"
    write_swf(log_of_workload(lublin2003.generate(300, seed=3)), path)
    return path
