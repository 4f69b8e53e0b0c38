"""docs/install_slurm.md on a live cluster: all of it, from nothing to observe and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.harness.slurm_site_host import slurm_site_host
from tests.support.guide_page import run_page, to_observe


def test_the_page_leads_from_nothing_to_observe_and_back(
    release: SlurmRelease, new_cluster: Callable[..., SlurmCluster], repository: Path
) -> None:
    cluster = new_cluster(release, conf={"PriorityType": "priority/multifactor"})
    cluster.add_accounting()
    with slurm_site_host(cluster) as host:
        conf = (cluster.folder / "etc/slurm.conf").read_bytes()

        def no_systemd() -> None:
            host.checked("rmdir /run/systemd/system")

        page = repository / "docs/install_slurm.md"
        ran = run_page(host, page, {"Containers": no_systemd})
        needed, seconds = to_observe(ran)
        print(f"Slurm {release.name}: {len(needed)} commands to observe, {seconds:.0f} s")
        assert len(needed) + 1 <= 3, "with the one that gets the package"
        assert seconds <= 300
        printed = {(run.section, run.line): run.printed for run in ran}
        assert "mode     observe" in printed["Observe", "foretime status"]
        assert "enforce" in printed["A share", "foretime status"]
        assert "nothing to do" in printed["Upgrade", "foretime install slurm --yes"]
        told = printed["Containers", "foretime install slurm --yes"]
        assert "start the daemon as its user" in told
        host.checked("foretime uninstall slurm --yes")
        assert (cluster.folder / "etc/slurm.conf").read_bytes() == conf
