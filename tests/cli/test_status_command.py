"""``foretime status`` where there is nothing yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
