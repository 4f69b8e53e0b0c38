"""The groups that a running slurmctld has, as /proc tells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from foretime_sidecar.install.slurm_host import running_groups


@pytest.mark.parametrize(
    ("name", "known"), [("slurmctld", True), ("slurmctld-wlm", True), ("other", False)]
)
def test_the_groups_are_those_of_a_slurmctld(name: str, known: bool, tmp_path: Path) -> None:
    """Debian's slurmctld 26.05 is called slurmctld-wlm after a reconfigure."""
    code = f"open('/proc/self/comm', 'w').write('{name}'); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pid_file = tmp_path / "pid"
        pid_file.write_text(f"{process.pid}\n")
        expected = frozenset({os.getegid(), *os.getgroups()}) if known else None
        assert running_groups({"SlurmctldPidFile": str(pid_file)}) == expected
        process.kill()


def test_without_a_pid_file_nothing_is_known(tmp_path: Path) -> None:
    assert running_groups({}) is None
    assert running_groups({"SlurmctldPidFile": str(tmp_path / "none")}) is None
