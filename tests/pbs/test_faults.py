"""Whatever breaks of Foretime, a job goes through as its user wrote it."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.table.table import Mode
from foretime_sim.mocks.plugin_files import plugin_file

from tests.pbs.installed_foretime import InstalledForetime

TORN = {
    "a hook that can't import": r"^( *)import json$",
    "a hook that can't import what it begins with": r"^( *)import os$",
}
HUGE = 65 * 1024 * 1024
Fault = Callable[[InstalledForetime], object]


def gone(foretime: InstalledForetime) -> None:
    foretime.table.unlink()


def stale(foretime: InstalledForetime) -> None:
    now = int(time.time())
    foretime.publish(written_at=now - 7200, valid_until=now - 3600)


def from_the_future(foretime: InstalledForetime) -> None:
    now = int(time.time())
    foretime.publish(written_at=now + 86_400, valid_until=now + 90_000)


def off(foretime: InstalledForetime) -> None:
    foretime.publish(settings=foretime.table_settings(Mode.OFF))


def observing(foretime: InstalledForetime) -> None:
    foretime.publish(settings=foretime.table_settings(Mode.OBSERVE))


def nonsense(foretime: InstalledForetime) -> None:
    foretime.table.write_bytes(os.urandom(100_000))


def cut_short(foretime: InstalledForetime) -> None:
    foretime.table.write_bytes(foretime.table.read_bytes()[:-1])


def one_byte_wrong(foretime: InstalledForetime) -> None:
    content = foretime.table.read_bytes()
    foretime.table.write_bytes(content.replace(b" 0.200000 ", b" 0.300000 "))
    assert foretime.table.read_bytes() != content


def huge(foretime: InstalledForetime) -> None:
    os.truncate(foretime.table, HUGE)


def folder(foretime: InstalledForetime) -> None:
    gone(foretime)
    foretime.table.mkdir()


def fifo(foretime: InstalledForetime) -> None:
    gone(foretime)
    os.mkfifo(foretime.table)


def endless_device(foretime: InstalledForetime) -> None:
    gone(foretime)
    foretime.table.symlink_to("/dev/zero")


def circle(foretime: InstalledForetime) -> None:
    gone(foretime)
    foretime.table.symlink_to(foretime.table)


def disabled(foretime: InstalledForetime) -> None:
    foretime.checked("disable")


def configured_with(text: str) -> Fault:
    def fault(foretime: InstalledForetime) -> None:
        path = foretime.folder / "config"
        path.write_text(text)
        foretime.server.qmgr(f"import hook foretime application/x-config default {path}")

    return fault


def hook(old: str, new: str) -> Fault:
    """Another script in the hook's place: the shipped one with something changed."""

    def fault(foretime: InstalledForetime) -> None:
        shipped = plugin_file("pbs/foretime_hook.py").read_text()
        path = foretime.folder / "hook.py"
        path.write_text(re.sub(old, new, shipped, count=1, flags=re.MULTILINE))
        assert path.read_text() != shipped
        foretime.server.qmgr(f"import hook foretime application/x-python default {path}")

    return fault


def full_disks(foretime: InstalledForetime) -> None:
    """The hooks' own folder and the table's are full: what was published stays."""
    content = foretime.table.read_bytes()
    for path in (Path("/var/spool/pbs/server_priv/hooks/tmp"), foretime.table.parent):
        foretime.server.checked(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(path)])
        foretime.server.run(["dd", "if=/dev/zero", f"of={path}/full", "bs=1k"])
    reply = foretime.server.run(["tee", str(foretime.table)], stdin=content.decode())
    assert os.strerror(errno.ENOSPC) in reply.stderr, "the disk is full"


FAULTS = {
    "no table": gone,
    "a table out of date": stale,
    "a table from the future": from_the_future,
    "a table that says off": off,
    "a table that says observe": observing,
    "nonsense for a table": nonsense,
    "a table cut short": cut_short,
    "a table with one byte wrong": one_byte_wrong,
    "a huge table": huge,
    "a folder for a table": folder,
    "a FIFO for a table": fifo,
    "a device without end for a table": endless_device,
    "a link to itself for a table": circle,
    "the disable file": disabled,
    "a full disk": full_disks,
    "nonsense for a configuration": configured_with("nonsense"),
    "a configuration with a setting unknown": configured_with('{"tabel": "/x"}'),
    "a configuration with a wrong value": configured_with('{"deadline_s": "long"}'),
    "no time at all": configured_with('{"deadline_s": 0}'),
    "an error in the hook": hook(
        r"^def main\(\):$", "def disabled(*_):\n    1 / 0\n\n\ndef main():"
    ),
    "an error that ends Python": hook(
        r"^def main\(\):$", "def disabled(*_):\n    raise KeyboardInterrupt\n\n\ndef main():"
    ),
    **{name: hook(line, r"\1import no_such_module") for name, line in TORN.items()},
    "a hook without end": hook(
        r"^def main\(\):$", "def disabled(*_):\n    while True:\n        pass\n\n\ndef main():"
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_goes_through_as_it_was_written(
    fault: str, foretime_of_module: InstalledForetime
) -> None:
    foretime, server = foretime_of_module, foretime_of_module.server
    planned = server.qsub("-lwalltime=1000", "-h")
    assert server.resource(planned, "soft_walltime") == "00:03:20", "it plans without the fault"
    FAULTS[fault](foretime)
    try:
        reply = server.try_qsub("-lwalltime=1000", script="exit 5")
        assert (reply.returncode, reply.stderr) == (0, "")
        job = server.wait_for_state(reply.stdout.strip(), "F")
        asked = {"ncpus": 1, "nodect": 1, "place": "pack", "select": "1:ncpus=1"}
        assert job["Resource_List"] == {**asked, "walltime": "00:16:40"}
        assert job["Exit_status"] == 5
        # Users may change what was planned before the fault; below t_sched, if the hook runs.
        lower = "300" if fault in TORN else "100"
        assert server.run(["qalter", f"-lwalltime={lower}", planned], "alice").returncode == 0
        assert seconds(server.resource(planned, "walltime")) == int(lower)
        assert server.run(["qrls", planned], "alice").returncode == 0
        server.wait_for_state(planned, "R")
    finally:
        server.run(["qdel", "-Wforce", planned])
        mend(foretime)


def seconds(text: str | None) -> int:
    """Read HH:MM:SS."""
    hours, minutes, rest = (int(part) for part in str(text).split(":"))
    return hours * 3600 + minutes * 60 + rest


def mend(foretime: InstalledForetime) -> None:
    server = foretime.server
    for path in ("/var/spool/pbs/server_priv/hooks/tmp", str(foretime.table.parent)):
        server.run(["umount", path])
    foretime.disable_file.unlink(missing_ok=True)
    if foretime.table.is_dir():
        foretime.table.rmdir()
    foretime.table.unlink(missing_ok=True)
    foretime.publish()
    scripts = (foretime.folder / "config", foretime.folder / "hook.py")
    replaced = [script for script in scripts if script.exists()]
    for script in replaced:
        script.unlink()
    if replaced:
        foretime.install()
