"""docs/campaigns.md says what the program says, and its example gives what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from foretime_sim.campaigns.cells import plan
from foretime_sim.campaigns.execution import execute
from foretime_sim.campaigns.file import parse_campaign, read_campaign
from foretime_sim.campaigns.reference_page import to_markdown
from foretime_sim.campaigns.results import (
    failures_frame,
    results_frame,
    summary_frame,
    write_tables,
)
from foretime_sim.campaigns.runs import attempt
from foretime_sim.campaigns.store import CampaignStore
from foretime_sim.scores.metrics import METRICS


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "campaigns.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


def test_the_reference_is_the_programs_own(page: str) -> None:
    assert page.endswith("## Reference\n\n" + to_markdown())


def test_the_worked_example_gives_the_pages_figures(page: str, tmp_path: Path) -> None:
    path = tmp_path / "loads.toml"
    path.write_text(blocks(page, "toml")[0])
    planned = plan(read_campaign(path))
    outcome = execute(
        planned,
        CampaignStore(tmp_path / "loads-results"),
        lambda cells: (attempt(cell) for cell in cells),
    )
    write_tables(planned, outcome.records, tmp_path / "loads-results")
    code = blocks(page, "python")[0]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    shown = page.partition(code)[2].partition("```\n")[2]
    shown = shown.partition("```\n")[2].partition("```")[0]
    assert shown.split() == done.stdout.split()
    assert f"loads: {len(planned.cells)} cells, 2 policies" in page


def test_other_toml_in_the_page_is_valid(page: str, sites: Path) -> None:
    for name in ("site", "more-nodes", "long-window"):
        (sites / f"{name}.toml").write_text((sites / "small.toml").read_text())
    log = '[[logs]]\ngenerate = "lublin2003"\n'
    for block in blocks(page, "toml")[1:]:
        assert tomllib.loads(block)
        parse_campaign(log + block, sites / "c.toml")


def test_every_column_is_told(page: str, tmp_path: Path) -> None:
    planned = plan(parse_campaign('[[logs]]\ngenerate = "lublin2003"\n', tmp_path / "c.toml"))
    told = set(re.findall(r"`([a-z_]+)`", page)) | set(METRICS)
    for frame in (
        results_frame(planned, {}),
        summary_frame(planned, []),
        failures_frame(planned, {}),
    ):
        assert set(frame.columns) <= told


def test_the_example_with_real_logs_is_a_sound_campaign(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    example = repository / "contrib" / "campaigns" / "orders_and_backfillings.toml"
    for name in re.findall(r"\$\{FORETIME_TRACES\}/(\S+)\"", example.read_text()):
        (tmp_path / name).write_text("; MaxProcs: 8\n")
    monkeypatch.setenv("FORETIME_TRACES", str(tmp_path))
    campaign = read_campaign(example)
    assert len(campaign.logs) == 3
    assert len(campaign.grid.order) == len(campaign.grid.backfill) == 4
    # Nothing of the four by four collapses.
    assert len(plan(campaign).cells) == 3 * 4 * 4 * len(campaign.grid.seeds)
