"""Commands that are run within bounds: what they print, and how they go wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.bounded_output import bounded_output
from foretime_sidecar.clients.slurm.bounded_commands import BoundedCommands


def of_shell(script: str, timeout_s: float = 10, most_bytes: int = 1 << 20) -> str:
    return bounded_output(["sh", "-c", script], os.environ, timeout_s, most_bytes)


def test_what_is_printed_is_given_and_what_is_no_text_is_replaced() -> None:
    assert of_shell("echo one; echo two; echo aside >&2") == "one\ntwo\n"
    assert of_shell(r"printf 'a\377b'") == "a\ufffdb"
    assert len(of_shell("yes | head -c 500000")) == 500_000


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo it broke >&2; exit 3", "failed with exit code 3: it broke; check slurmctld"),
        ("echo it broke; exit 3", "failed with exit code 3: it broke"),
        ("kill -9 $$", "failed with exit code -9: no message"),
        ("exec yes", "printed more than 1 MiB, and was ended"),
    ],
)
def test_what_fails_or_floods_is_said(script: str, said: str) -> None:
    with pytest.raises(SchedulerError, match=said):
        of_shell(script)


def test_a_flood_of_errors_is_not_kept() -> None:
    with pytest.raises(SchedulerError, match="exit code 1: y y y") as refused:
        of_shell("yes | head -c 3000000 >&2; exit 1")
    assert len(str(refused.value)) < 100_000


@pytest.mark.parametrize("script", ["sleep 60 & echo $! >pid; wait", "exec >&- 2>&-; sleep 60"])
def test_what_hangs_is_ended_with_its_children(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    with pytest.raises(SchedulerError, match=r"did not answer within 0\.5 s"):
        of_shell(script, timeout_s=0.5)
    assert time.monotonic() - began < 10
    if (tmp_path / "pid").exists():
        deadline = time.monotonic() + 10
        number = int((tmp_path / "pid").read_text())
        while _runs(number) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not _runs(number)


def _runs(number: int) -> bool:
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_command_that_is_not_there_is_said() -> None:
    with pytest.raises(SchedulerError, match=r"can't run nowhere/scontrol: .*scheduler\.commands"):
        BoundedCommands("nowhere")(["scontrol", "show", "config"])


def test_commands_have_their_folder_cluster_and_times_in_seconds(tmp_path: Path) -> None:
    for name in ("scontrol", "sacctmgr"):
        (tmp_path / name).write_text('#!/bin/sh\necho "$(basename $0) $* $SLURM_TIME_FORMAT"\n')
        (tmp_path / name).chmod(0o755)
    run = BoundedCommands(str(tmp_path), cluster="east")
    assert run(["scontrol", "show", "node"]) == "scontrol -M east show node %s\n"
    assert run(["sacctmgr", "show", "qos"]) == "sacctmgr show qos %s\n"
