"""foretime install slurm on the whole host of a live cluster: done, done again, failing, undone."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import pytest

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.harness.slurm_site_host import slurm_site_host
from tests.support.processes.site_host import SiteHost

INSTALL = "foretime install slurm --yes"


@dataclass(frozen=True)
class Site:
    """A cluster and its controller's host."""

    cluster: SlurmCluster
    host: SiteHost

    def state(self) -> tuple[set[str], str, set[str]]:
        """Give all that an installation changes."""
        users = self.cluster.checked(
            ["sacctmgr", "--noheader", "--parsable2", "show", "user", "format=user,adminlevel"]
        )
        return self.host.files(), users, set(self.host.systemd.enabled)


@pytest.fixture(scope="module")
def site(release: SlurmRelease) -> Iterator[Site]:
    """A cluster with accounting that has nothing of Foretime, for all tests: each leaves none."""
    with SlurmCluster(release, conf={"PriorityType": "priority/multifactor"}) as cluster:
        cluster.add_accounting()
        with slurm_site_host(cluster) as host:
            yield Site(cluster, host)


@contextmanager
def slurmdbd_down(site: Site) -> Iterator[None]:
    pid = (site.cluster.folder / "run/slurmdbd.pid").read_text().strip()
    site.cluster.checked(["kill", "-STOP", pid])
    try:
        yield
    finally:
        site.cluster.checked(["kill", "-CONT", pid])
        for daemon in site.cluster.namespace._daemons:  # nsenter stops itself with its child
            daemon.send_signal(signal.SIGCONT)


@contextmanager
def reconfigure_fails(site: Site) -> Iterator[None]:
    """It does once the hook is in slurm.conf."""
    scontrol = site.cluster.commands / "scontrol"
    real = scontrol.rename(scontrol.with_name("scontrol.real"))
    scontrol.write_text(
        '#!/bin/sh\nif [ "$1" = reconfigure ] && grep -q ^JobSubmitPlugins /etc/slurm/slurm.conf\n'
        f'then echo "made to fail" >&2; exit 1; fi\nexec {real} "$@"\n'
    )
    scontrol.chmod(0o755)
    try:
        yield
    finally:
        real.rename(scontrol)


FAULTS: dict[str, tuple[Callable[[Site], AbstractContextManager[None]], str]] = {
    "slurmdbd does not answer": (slurmdbd_down, "check slurmctld and slurmdbd"),
    "slurm.conf's folder can't be written": (
        lambda site: site.host.read_only("/etc/slurm"),
        "/etc/slurm/foretime.installed: can't write it: Read-only file system",
    ),
    "systemd's folder can't be written": (
        lambda site: site.host.read_only("/etc/systemd/system"),
        "/etc/systemd/system/foretime.service: can't write it: Read-only file system",
    ),
    "the units can't be enabled": (
        lambda site: site.host.refusing("enable foretime.service foretime-watchdog.timer"),
        "refused by the test",
    ),
    "the daemon can't be started": (
        lambda site: site.host.refusing("restart foretime.service foretime-watchdog.timer"),
        "refused by the test",
    ),
    "slurmctld can't be restarted": (
        lambda site: site.host.refusing("restart slurmctld.service"),
        "refused by the test",
    ),
    "slurmctld refuses the hook": (reconfigure_fails, "made to fail"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_fails_is_undone(fault: str, site: Site) -> None:
    before = site.state()
    breaks, says = FAULTS[fault]
    with breaks(site):
        reply = site.host.shell(INSTALL)
    assert reply.returncode == 1, reply.stdout + reply.stderr
    assert says in reply.stderr
    if fault != "slurmdbd does not answer":  # nothing had been begun
        assert "Everything is as it was before." in reply.stderr
    assert "Traceback" not in reply.stderr
    assert site.state() == before
    assert "JobSubmitPlugins        = (null)" in site.cluster.checked(
        ["scontrol", "show", "config"]
    )


def test_who_is_not_root_changes_nothing(site: Site) -> None:
    before = site.state()
    reply = site.host.shell(f"setpriv --reuid=alice --regid=alice --init-groups {INSTALL}")
    assert reply.returncode == 2
    assert "be root" in reply.stderr
    assert site.state() == before


def test_it_is_installed_once_and_taken_out_again(site: Site) -> None:
    before = site.state()
    plan = json.loads(site.host.checked("foretime install slurm --json"))
    assert any(line.startswith("useradd") for line in plan["host"])
    assert site.state() == before, "without --yes it only shows"

    done = json.loads(site.host.checked(f"{INSTALL} --json"))
    assert any("adminlevel=Operator" in line for line in done["done"])
    ill = [check for check in done["doctor"] if check["health"] == "problem"]
    assert ill == []
    health = {check["check"]: check["message"] for check in done["doctor"]}
    assert "observe" in health["daemon"]
    assert health["table for slurmctld"].startswith("slurm can open")
    assert "foretime|Operator" in site.state()[1]

    installed = site.state()[1:]
    again = json.loads(site.host.checked(f"{INSTALL} --json"))
    assert (again["done"], again["notes"]) == (
        [],
        ["everything is as it should be: nothing to do"],
    )
    assert json.loads(site.host.checked("foretime install slurm --json"))["host"] == []
    assert site.state()[1:] == installed

    out = json.loads(site.host.checked("foretime uninstall slurm --yes --json"))
    assert any("what was learned stay" in note for note in out["notes"])
    files, users, enabled = site.state()
    assert (users, enabled) == before[1:]
    left = {line.split()[-1] for line in files - before[0] if "/" in line.split()[-1]}
    kept = ("/var/lib/foretime", "/etc/foretime/foretime.toml", "/etc/passwd", "/etc/group")
    assert all(place.startswith(kept) for place in left), left
    site.host.checked("userdel foretime && rm -r /etc/foretime /var/lib/foretime")
    assert site.state() == before
