"""``foretime status`` where no daemon runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.table.table import Mode, Table, TableSettings, write_table

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
