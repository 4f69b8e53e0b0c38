"""docs/baselines.md: every command gives the page's figures, which are near the published ones."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "baselines.md"
Run = Callable[..., tuple[int, str, str]]


class Row(NamedTuple):
    """One policy on one log: figures as the page writes them; published ones may be empty."""

    log: str
    policy: str
    wait_s: str
    published_wait_s: str
    avebsld: str
    published_avebsld: str
    seen_in: str


def commands() -> list[tuple[str, list[Row]]]:
    """Give every command on the page with the rows that it fills."""
    found = []
    for section in PAGE.read_text().split("\n## ")[1:]:
        cells = [
            [cell.strip() for cell in line.split("|")[1:-1]]
            for line in re.findall(r"^\| .* \|$", section, flags=re.MULTILINE)[1:]
        ]
        rows = [Row(*row) for row in cells]
        for command in re.findall(r"^foretime simulate .*$", section, flags=re.MULTILINE):
            log = shlex.split(command)[2]
            found.append((command, [row for row in rows if log.startswith(row.log)]))
    return found


@pytest.mark.traces
@pytest.mark.parametrize(
    ("command", "rows"), commands(), ids=[command.split(" ", 2)[2] for command, _ in commands()]
)
def test_the_page_says_what_the_command_finds(
    command: str, rows: list[Row], run: Run, trace: Callable[[str], Path]
) -> None:
    _, name, log, *options = shlex.split(command)
    code, out, err = run(name, trace(log), *options, "--json")
    assert (code, err) == (0, "")
    policies = {policy["name"]: policy["metrics"] for policy in json.loads(out)["policies"]}
    assert rows, f"no row for {log}"
    for row in rows:
        metrics = policies[row.policy]
        for key, ours, published in (
            ("wait_mean_s", row.wait_s, row.published_wait_s),
            ("bounded_slowdown_mean", row.avebsld, row.published_avebsld),
        ):
            assert f"{metrics[key]['value']:,.2f}" == ours
            if published:
                told = float(published.replace(",", ""))
                assert metrics[key]["value"] == pytest.approx(told, rel=0.04)
