"""``foretime status``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.table.table import Mode, Table, TableSettings, write_table
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy

from tests.support.slurm.mock_site import MockSite

Run = Callable[..., tuple[int, str, str]]


def test_a_table_that_is_not_there_is_named_once(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "foretime.table"
    settings = tmp_path / "foretime.toml"
    settings.write_text(
        f'[table]\npath = "{table}"\n[api]\nlisten = "unix:{tmp_path}/foretime.sock"\n'
    )
    code, out, err = run("status", "--settings", settings)
    assert (code, err) == (1, "")
    said = next(line for line in out.splitlines() if line.startswith("table"))
    assert said == f"table    {table}: can't read the table: No such file or directory"


@pytest.mark.parametrize("mode", list(Mode))
def test_enforce_is_told_to_lengthen_waits(mode: Mode, run: Run, tmp_path: Path) -> None:
    now = int(time.time())
    write_table(tmp_path / "table", Table(1, now, now + 3600, TableSettings(mode=mode)))
    chosen = mode if mode is not Mode.OFF else Mode.ENFORCE
    settings = tmp_path / "foretime.toml"
    settings.write_text(
        f'[table]\npath = "{tmp_path}/table"\n[api]\nlisten = "unix:{tmp_path}/s"\n'
        f'[hook]\nmode = "{chosen}"\ndisable_file = "{tmp_path}/off"\n'
        '[queue_order]\norder = "none"\n'
    )
    code, out, err = run("status", "--settings", settings)
    assert (code, err) == (1, "")
    said = [line for line in out.splitlines() if line.startswith("waits")]
    assert len(said) == (mode is Mode.ENFORCE)
    assert all("27 to 42% longer" in line and 'order = "auto"' in line for line in said)


def test_by_a_socket_all_is_as_the_daemon_says_it(run: Run, tmp_path: Path) -> None:
    now = int(time.time())
    with MockSite(tmp_path, MockSlurm(SlurmSetup(64), Policy(), None, now)) as site:
        code, out, err = run("status", "--socket", site.socket_path)
        assert (code, err) == (0, "")
        lines = dict(line.split(maxsplit=1) for line in out.splitlines())
        said = f"not read: all of this is as the daemon at {site.listen} says it"
        assert lines["settings"] == said
        assert lines["mode"] == "observe"
        assert lines["daemon"] == "ok, 0 finished jobs learned"
        assert lines["table"].startswith("generation 1, ")
        assert lines["breaker"] == "closed: 0 planned jobs ended, head job's slip 00:00:00"
        alone = json.loads(run("status", "--socket", site.socket_path, "--json")[1])
        whole = json.loads(run("status", "--settings", site.settings_path, "--json")[1])
    assert alone.keys() == whole.keys()
    assert alone["table"].keys() == whole["table"].keys()
    for key in ("mode", "mode_reason", "breaker", "queue_order", "daemon_error"):
        assert alone[key] == whole[key]
    assert alone["settings"] is alone["table"]["path"] is None


def test_no_daemon_at_a_socket_is_said_and_nothing_else(run: Run, tmp_path: Path) -> None:
    code, out, err = run("status", "--socket", tmp_path / "none")
    assert (code, out) == (3, "")
    assert "no foretime daemon answers at" in err
    code, out, err = run("status", "--socket", tmp_path / "none", "--settings", tmp_path / "x")
    assert (code, out) == (2, "")
    assert "give one" in err
