"""docs/install_pbs.md on a live server: each of its commands, from nothing to observe and back."""

from __future__ import annotations

from pathlib import Path

from tests.pbs.pbs_server import PbsServer
from tests.pbs.pbs_site_host import pbs_site_host
from tests.support.guide_page import run_page, to_observe


def test_the_page_leads_from_nothing_to_observe_and_back(pbs: PbsServer, repository: Path) -> None:
    with pbs_site_host(pbs) as host:
        before = pbs.qmgr("print server", "list hook")

        def no_systemd() -> None:
            host.checked("rmdir /run/systemd/system")

        page = repository / "docs/install_pbs.md"
        ran = run_page(host, page, {"Containers": no_systemd})
        needed, seconds = to_observe(ran)
        print(f"OpenPBS: {len(needed)} commands to observe, {seconds:.0f} s")
        assert len(needed) + 1 <= 3, "with the one that gets the package"
        assert seconds <= 300
        printed = {(run.section, run.line): run.printed for run in ran}
        assert "mode     observe" in printed["Observe", "foretime status"]
        assert "enforce" in printed["A share", "foretime status"]
        assert "nothing to do" in printed["Upgrade", "foretime install pbs --yes"]
        told = printed["Containers", "foretime install pbs --yes"]
        assert "start the daemon as its user" in told
        host.checked("foretime uninstall pbs --yes")
        assert pbs.qmgr("print server", "list hook") == before
