"""What several commands are tested on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.fixture
def cluster(repository: Path, tmp_path: Path) -> Path:
    """Give the file that docs/machines.md describes."""
    text = (repository / "docs" / "machines.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    path = tmp_path / "cluster.toml"
    path.write_text(block[1], encoding="utf-8")
    return path
