"""A page of commands, run line by line on a live host as root's shell would.

Each line of each block ```sh is a command; one that ends in a backslash goes on in the next.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.site_host import SiteHost

NOT_RUN: Mapping[str, str] = {
    "apt-get install --yes ./foretime_*.deb": "packages are installed by their own tests",
    "dnf install --assumeyes ./foretime-*.rpm": "packages are installed by their own tests",
    "python3 -m venv /opt/foretime": "a stand-in is there: tests/support/processes/opt_foretime.py",
    "/opt/foretime/bin/pip install ./foretime-*.whl": "as the line before",
    "ln --symbolic --force /opt/foretime/bin/foretime /usr/local/bin/foretime": "it is on the PATH",
}
"""Lines of the pages that no test here runs, and why. Keep them few."""

MOST_COMMANDS, MOST_S = 3, 300
"""From a working scheduler to `observe`."""

_READY_S = 120
_PAUSE_S = 0.5
_STARTS = re.compile(r"^systemctl restart foretime$|&$")


@dataclass(frozen=True)
class RunLine:
    """A line that was run."""

    section: str
    line: str
    printed: str
    seconds: float


def commands_of(page: Path) -> list[tuple[str, str]]:
    """Give a page's commands in their order, each with the heading that it stands under."""
    found = []
    for part in re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]:
        heading = part.partition("\n")[0]
        for block in re.findall(r"^```sh\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL):
            found += [(heading, line) for line in block.replace("\\\n", "").splitlines() if line]
    return found


def run_page(
    host: SiteHost, page: Path, before: Mapping[str, Callable[[], object]]
) -> list[RunLine]:
    """Run all of a page's commands, each of which must succeed.

    Parameters
    ----------
    host
        Where.
    page
        The page.
    before
        What a test does before the first command of a section, by heading.

    Raises
    ------
    RuntimeError
        If one fails.
    """
    ran: list[RunLine] = []
    section = ""
    for heading, line in commands_of(page):
        if heading != section:
            section = heading
            before.get(heading, lambda: None)()
        if line in NOT_RUN:
            continue
        begin = time.monotonic()
        printed = host.checked(line)
        ran.append(RunLine(heading, line, printed, time.monotonic() - begin))
        if _STARTS.search(line):
            _wait_for_daemon(host)
    return ran


def _wait_for_daemon(host: SiteHost) -> None:
    until = time.monotonic() + _READY_S
    while host.shell("foretime doctor").returncode:
        if time.monotonic() > until:
            host.checked("foretime doctor")
        time.sleep(_PAUSE_S)


def run_guide(host: SiteHost, page: Path, scheduler: str) -> None:
    """Run all of an installation's guide; what its commands print must be what the page says.

    Raises
    ------
    RuntimeError
        If one fails.
    """
    install = f"foretime install {scheduler} --yes"
    ran = run_page(host, page, {"Containers": lambda: host.checked("rmdir /run/systemd/system")})
    needed, seconds = to_observe(ran)
    print(f"{page.name}: {len(needed)} commands to observe, {seconds:.0f} s")
    assert len(needed) + 1 <= MOST_COMMANDS, "with the one that gets the package"
    assert seconds <= MOST_S
    printed = {(run.section, run.line): run.printed for run in ran}
    assert "mode     observe" in printed["Observe", "foretime status"]
    assert "enforce" in printed["A share", "foretime status"]
    assert "nothing to do" in printed["Upgrade", install]
    assert "start the daemon as its user" in printed["Containers", install]
    host.checked(f"foretime uninstall {scheduler} --yes")


def to_observe(ran: list[RunLine]) -> tuple[list[RunLine], float]:
    """Give the commands that it takes to `observe`, but for getting Foretime, and their seconds."""
    begun = [run for run in ran if run.section == "Observe"]
    last = next(at for at, run in enumerate(begun) if run.line.endswith("--yes"))
    needed = begun[: last + 1]
    return needed, sum(run.seconds for run in needed)
