"""Clean Debian roots in which packages are tried."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from locks import SHIPPED, pins_for
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = REPOSITORY / "contrib/packages"
DIST = REPOSITORY / "dist"

SUITES = {"bookworm": "3.11", "trixie": "3.13"}
"""The Debian releases, and their Python."""
NUMBERS = {"bookworm": 12, "trixie": 13}


def built(pattern: str) -> Path:
    """Give the one package of this name that was built."""
    found = sorted(DIST.glob(pattern))
    if not found:
        pytest.skip(f"there is no dist/{pattern}: make packages")
    assert len(found) == 1, found
    return found[0]


def assert_locked(root: PackageRoot, suite: str, below: str = "/") -> None:
    """See that a package installed exactly what the lock has, and an SBOM that names it."""
    script = "import importlib.metadata as m; [print(d.name, d.version) for d in m.distributions()]"
    said = root.run(f"chroot {below} /opt/foretime/bin/python -I -c '{script}'")
    installed = [
        (canonicalize_name(name), version) for name, version in map(str.split, said.splitlines())
    ]
    sbom = json.loads(root.run(f"cat {below}/usr/share/doc/foretime/foretime.cdx.json"))
    about = sbom["metadata"]["component"]
    locked = [(pin.name, pin.version) for pin in pins_for(SUITES[suite], SHIPPED)]
    assert sorted(installed) == sorted([*locked, (about["name"], about["version"])])
    assert {(part["name"], part["version"]) for part in sbom["components"]} >= set(locked)


class PackageRoot:
    """A Debian root, of which what is written goes when `folder` does.

    Without a compiler and without a network: a service node with Python and systemd.
    """

    def __init__(self, suite: str, folder: Path, below: str | None = None) -> None:
        self.folder = folder
        self.below = below or self._made(suite)

    def layer(self, folder: Path) -> PackageRoot:
        """Give a root that begins as this one is now, and leaves this one alone."""
        return PackageRoot("", folder, f"{self.folder / 'upper'}:{self.below}")

    def run(self, script: str, *, fails: bool = False, timeout_s: int = 300) -> str:
        """Run a shell script; give what it prints."""
        return self.enter("sh", "-euc", script, fails=fails, timeout_s=timeout_s)

    def boot(self, script: str, timeout_s: int = 120) -> str:
        """Boot systemd, run a script in it, and give what it prints."""
        self.path("trial.sh").write_text(script)
        self.path("etc/systemd/system/trial.service").parent.mkdir(parents=True, exist_ok=True)
        self.path("etc/systemd/system/trial.service").write_text(
            "[Unit]\nAfter=basic.target\n"
            "[Service]\nType=exec\nExecStart=sh -eux /trial.sh\n"
            "StandardOutput=file:/trial.log\nStandardError=inherit\n"
            "ExecStopPost=systemctl --no-block poweroff\n"
        )
        # The packages' scripts may start what they like here.
        self.run(
            "rm -f /usr/sbin/policy-rc.d; systemctl mask --quiet console-getty.service\n"
            "ln -sf ../trial.service /etc/systemd/system/multi-user.target.wants/"
        )
        self.enter("/lib/systemd/systemd", fails=True, timeout_s=timeout_s)
        log = self.path("trial.log")
        if not log.exists():
            pytest.skip("systemd does not boot in a root here")
        return log.read_text()

    def enter(self, *command: str, fails: bool = False, timeout_s: int = 300) -> str:
        """Run a command in it."""
        binds = [f"{DIST}:/dist", f"{TOOLS}:/packages"]
        done = subprocess.run(
            [str(TOOLS / "enter_root.sh"), self.below, str(self.folder), *binds, "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        assert fails or done.returncode == 0, done.stdout
        return done.stdout

    def path(self, name: str) -> Path:
        """Give where a file lies that was written in it."""
        return self.folder / "upper" / name

    @staticmethod
    def _made(suite: str) -> str:
        if os.geteuid() != 0 or shutil.which("debootstrap") is None:
            pytest.skip("only root can make a Debian root, with debootstrap")
        made = subprocess.run(
            [str(TOOLS / "make_root.sh"), suite], stdout=subprocess.PIPE, text=True, check=True
        )
        return made.stdout.strip()
