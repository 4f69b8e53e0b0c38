"""Each hook, and all of them at once; a PBS server with its hook."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hooks.hook_sites import MAKERS, Site, table_text
from tests.support.hooks.hooked_pbs import Scheduler


@pytest.fixture(scope="module")
def all_sites(tmp_path_factory: pytest.TempPathFactory) -> list[Site]:
    folder = tmp_path_factory.mktemp("sites")  # one table for all of them
    return [make(folder) for make in MAKERS.values()]


@pytest.fixture(params=MAKERS)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    made = MAKERS[request.param](tmp_path)
    made.table.write_text(table_text())
    return made


@pytest.fixture
def scheduler(tmp_path: Path) -> Scheduler:
    """A PBS server with the hook."""
    return Scheduler(tmp_path)
