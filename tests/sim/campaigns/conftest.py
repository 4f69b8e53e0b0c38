"""Campaigns that run in a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.campaigns.campaign import Campaign
from foretime_sim.campaigns.file import read_campaign

SMALL = """
[[logs]]
generate = "lublin2003"
name = "made"
jobs = 150
processors = 32

[scoring]
warm_up_s = 0
"""


@pytest.fixture
def campaign_of(tmp_path: Path) -> Callable[[str], Campaign]:
    """Give a campaign of 150 generated jobs with more TOML below it."""

    def make(text: str) -> Campaign:
        path = tmp_path / "small.toml"
        path.write_text(SMALL + text)
        return read_campaign(path)

    return make


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    """Give the campaign's folder with one site under Slurm, one larger, and one under PBS in it."""
    for name, nodes in (("small", 4), ("large", 12)):
        text = f"[node_groups.cpu]\nnodes = {nodes}\ncpus = 4\n[partitions.main]\n"
        (tmp_path / f"{name}.toml").write_text(text + 'node_groups = ["cpu"]\nDefault = true\n')
    (tmp_path / "pro.toml").write_text(
        'scheduler = "pbs"\n[queues.workq]\n[[hosts]]\nname = "n01"\nlast = "n12"\n'
        "resources_available = { ncpus = 4 }\n"
    )
    return tmp_path
