"""The systemd units let the daemon do little, as systemd itself judges them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

# Of 10, which is no protection at all: what is left is what Slurm's commands need (the network,
# munge's socket, callers known by uid). PBS' setuid pbs_iff needs more.
MOST_EXPOSED = {"foretime.service": 1.3, "foretime-watchdog.service": 1.3, "pbs.conf": 5.9}


@pytest.mark.parametrize("name", MOST_EXPOSED)
def test_the_units_are_little_exposed(name: str, repository: Path, tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("no systemd-analyze: the units are not judged here")
    units = repository / "contrib/systemd"
    unit = tmp_path / ("foretime.service" if name == "pbs.conf" else name)
    # Alone: beside its drop-in for PBS it would be judged with that.
    shutil.copy(units / unit.name, unit)
    if name == "pbs.conf":
        shutil.copytree(units / "foretime.service.d", tmp_path / "foretime.service.d")
    reply = subprocess.run(
        [
            *(tool, "security", "--offline=yes", "--no-pager"),
            *(f"--threshold={MOST_EXPOSED[name] * 10:.0f}", str(unit)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "Overall exposure level" not in reply.stdout:
        pytest.skip(f"systemd-analyze judges no units here: {reply.stderr[:200]}")
    assert reply.returncode == 0, reply.stdout


@pytest.mark.parametrize("name", ["foretime.service", "foretime-watchdog.service"])
def test_the_unit_lets_pbs_commands_prove_who_asks(name: str, repository: Path) -> None:
    """pbs_iff is setuid; systemd forbids that with any of these, for a unit that has User=."""
    implying = [
        "LockPersonality",
        "MemoryDenyWriteExecute",
        "NoNewPrivileges",
        "PrivateDevices",
        "ProtectClock",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "RestrictAddressFamilies",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "SystemCallArchitectures",
        "SystemCallFilter",
        "SystemCallLog",
        "DynamicUser",
    ]
    units = repository / "contrib" / "systemd"
    unit = (units / name).read_text()
    changed = (units / "foretime.service.d" / "pbs.conf").read_text().splitlines()
    given = [name for name in implying if f"\n{name}=" in unit]
    assert len(given) > 10
    assert not [name for name in given if not {f"{name}=", f"{name}=no"} & set(changed)]
