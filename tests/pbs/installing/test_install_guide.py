"""docs/install_pbs.md on a live server: each of its commands, from nothing to observe and back."""

from __future__ import annotations

from pathlib import Path

from tests.pbs.installing.pbs_site_host import pbs_site_host
from tests.pbs.pbs_server import PbsServer
from tests.support.guide_page import run_guide


def test_the_page_leads_from_nothing_to_observe_and_back(pbs: PbsServer, repository: Path) -> None:
    with pbs_site_host(pbs) as host:
        before = pbs.qmgr("print server", "list hook")
        run_guide(host, repository / "docs/install_pbs.md", "pbs")
        assert pbs.qmgr("print server", "list hook") == before
