"""``foretime install slurm`` where a scontrol answers that is made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("version", "mechanism", "warned"),
    [
        ("26.05.5", "slurm-soft-limit", True),
        ("22.05.8", "slurm-soft-limit", False),
        ("22.05.8", "rewrite-limit", False),
    ],
)
def test_it_says_what_enforce_did_to_waits(
    version: str, mechanism: str, warned: bool, run: Run, tmp_path: Path
) -> None:
    conf, settings, scontrol = (tmp_path / name for name in ("slurm.conf", "toml", "scontrol"))
    conf.write_text("SchedulerParameters=bf_interval=30\n")
    settings.write_text(f'[hook]\nmechanism = "{mechanism}"\n[queue_order]\norder = "none"\n')
    scontrol.write_text(f"#!/bin/sh\necho 'SLURM_VERSION = {version}'\n")
    scontrol.chmod(0o755)
    options = ["--settings", settings, "--conf", conf, "--commands-dir", tmp_path]
    code, out, err = run("install", "slurm", "--hook-only", *options)
    assert (code, err) == (0, "")
    for words in (
        'hook.mode = "enforce" made mean waits 27 to 42% longer than plain Slurm\'s',
        'keep queue_order.order = "auto"',
        'docs/slurm.md, "What planning short does to waits"',
    ):
        assert (words in out) is warned, words


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_slurm_conf_that_is_not_there_is_told_before_slurm_is_asked(
    command: str, run: Run, tmp_path: Path
) -> None:
    missing = tmp_path / "slurm.conf"
    code, out, err = run(command, "slurm", "--conf", missing, "--commands-dir", tmp_path)
    assert (code, out) == (2, "")
    assert f"--conf {missing}: there is no such file" in err


@pytest.mark.parametrize("command", ["install", "uninstall"])
@pytest.mark.parametrize(("scheduler", "asked"), [("slurm", "scontrol"), ("pbs", "qmgr")])
def test_a_host_without_the_scheduler_is_told_before_anything_is_planned(
    command: str, scheduler: str, asked: str, run: Run, tmp_path: Path
) -> None:
    code, out, err = run(command, scheduler, "--commands-dir", tmp_path)
    assert (code, out) == (2, "")
    assert err.endswith(
        f"foretime: there is no {tmp_path}/{asked}: run this on the scheduler's host, or name the"
        " folder of its commands with --commands-dir\n"
    )
