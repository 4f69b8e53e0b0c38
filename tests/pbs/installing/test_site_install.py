"""foretime install pbs on the whole host of a live server: done, done again, failing, undone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.pbs.installing.pbs_site_host import pbs_site_host
from tests.pbs.openpbs import PREFIX
from tests.pbs.pbs_server import PbsServer
from tests.support.processes.site_host import SiteHost

INSTALL = "foretime install pbs --yes"


class Site:
    """A server and its host."""

    def __init__(self, server: PbsServer, host: SiteHost) -> None:
        self.server, self.host = server, host

    def state(self) -> tuple[set[str], str, set[str]]:
        """Give all that an installation changes."""
        told = self.server.qmgr("print server", "list hook")
        return self.host.files(), told, set(self.host.systemd.enabled)


@pytest.fixture(scope="module")
def site(pbs_of_module: PbsServer) -> Iterator[Site]:
    """A server that has nothing of Foretime, for all tests: each leaves none."""
    with pbs_site_host(pbs_of_module) as host:
        yield Site(pbs_of_module, host)


@contextmanager
def qmgr_refuses(site: Site, part: str) -> Iterator[None]:
    folder = site.server.folder / "systemd/bin"  # the PATH's first
    others = [path.name for path in (PREFIX / "bin").iterdir() if path.name != "qmgr"]
    for name in others:
        (folder / name).symlink_to(PREFIX / "bin" / name)
    qmgr = folder / "qmgr"
    qmgr.write_text(
        f'#!/bin/sh\ncase "$*" in *"{part}"*) echo "made to fail" >&2; exit 1 ;; esac\n'
        f'exec {PREFIX}/bin/qmgr "$@"\n'
    )
    qmgr.chmod(0o755)
    try:
        yield
    finally:
        for name in ("qmgr", *others):
            (folder / name).unlink()


FAULTS: dict[str, tuple[Callable[[Site], AbstractContextManager[None]], str]] = {
    "systemd's folder can't be written": (
        lambda site: site.host.read_only("/etc/systemd/system"),
        "/etc/systemd/system/foretime.service: can't write it: Read-only file system",
    ),
    "the daemon can't be started": (
        lambda site: site.host.refusing("restart foretime.service foretime-watchdog.timer"),
        "refused by the test",
    ),
    "nobody may be made a manager": (
        lambda site: qmgr_refuses(site, "managers +="),
        "made to fail",
    ),
    "PBS refuses the hook's last attribute": (
        lambda site: qmgr_refuses(site, "enabled = true"),
        "made to fail",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_fails_is_undone(fault: str, site: Site) -> None:
    before = site.state()
    breaks, says = FAULTS[fault]
    with breaks(site):
        reply = site.host.shell(INSTALL)
    assert reply.returncode == 1, reply.stdout + reply.stderr
    assert says in reply.stderr
    assert "Everything is as it was before." in reply.stderr
    assert site.state() == before


def test_who_is_not_root_changes_nothing(site: Site) -> None:
    before = site.state()
    reply = site.host.shell(f"setpriv --reuid=alice --regid=alice --init-groups {INSTALL}")
    assert reply.returncode == 2
    assert "be root" in reply.stderr
    assert site.state() == before


def test_it_is_installed_once_and_taken_out_again(site: Site) -> None:
    before = site.state()
    site.host.checked("foretime install pbs --json")
    assert site.state() == before, "without --yes it only shows"

    done = json.loads(site.host.checked(f"{INSTALL} --json"))
    assert [check for check in done["doctor"] if check["health"] != "ok"] == []
    assert "foretime@pbs01" in site.state()[1]

    installed = site.state()[1:]
    again = json.loads(site.host.checked(f"{INSTALL} --json"))
    assert (again["done"], again["notes"]) == (
        [],
        ["everything is as it should be: nothing to do"],
    )
    shown = json.loads(site.host.checked("foretime install pbs --json"))
    assert shown == {"host": [], "files": {}, "commands": [], "notes": []}
    assert site.state()[1:] == installed

    site.host.checked("foretime uninstall pbs --yes")
    site.host.checked("userdel foretime && rm -r /etc/foretime /var/lib/foretime")
    assert site.state() == before
