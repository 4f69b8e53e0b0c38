"""A PBS site whose commands are fakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pbs.faked_pbs_site import PLAIN_CONFIG, Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A PBS site with nothing of ours on it."""
    home = tmp_path / "home"
    (home / "sched_priv").mkdir(parents=True)
    (home / "sched_priv" / "sched_config").write_text(PLAIN_CONFIG)
    monkeypatch.setenv("PBS_HOME", str(home))
    return Site(tmp_path)
