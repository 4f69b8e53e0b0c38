"""The folder of a test server: its /etc, /run, /var/spool and /var/tmp, and its users' homes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.pbs.openpbs import PREFIX

HOST = "pbs01"
FORETIME_UID, FIRST_USER_UID = 64050, 64051
USERS = ("alice", "bob", "carol", "manager")
PBS_HOME = Path("/var/spool/pbs")
CONF = {
    "PBS_EXEC": str(PREFIX),
    "PBS_HOME": str(PBS_HOME),
    "PBS_SERVER": HOST,
    "PBS_START_SERVER": "1",
    "PBS_START_SCHED": "1",
    "PBS_START_COMM": "1",
    "PBS_START_MOM": "1",
    "PBS_CORE_LIMIT": "unlimited",
    "PBS_SCP": "/usr/bin/scp",
}


def fill(folder: Path) -> None:
    """Make all but PBS_HOME in a server's folder."""
    folder.chmod(0o755)
    # Of the machine's own, which nothing here ever writes.
    shutil.copytree("/etc", folder / "etc", symlinks=True)
    for name in ("run", "spool", "var-tmp", "home"):
        (folder / name).mkdir()
    (folder / "var-tmp").chmod(0o1777)
    (folder / "run/lock").mkdir()
    (folder / "run/postgresql").mkdir()
    shutil.chown(folder / "run/postgresql", "postgres", "postgres")
    etc = folder / "etc"
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n192.0.2.2 {HOST}\n")
    (etc / "hostname").write_text(f"{HOST}\n")
    (etc / "pbs.conf").write_text("".join(f"{name}={value}\n" for name, value in CONF.items()))
    accounts = {"foretime": FORETIME_UID}
    accounts |= {user: FIRST_USER_UID + number for number, user in enumerate(USERS)}
    for user, uid in accounts.items():
        home = folder / "home" / user
        home.mkdir()
        os.chown(home, uid, uid)
        _replace(etc / "passwd", user, f"{user}:x:{uid}:{uid}::{home}:/bin/sh")
        _replace(etc / "group", user, f"{user}:x:{uid}:")
        _replace(etc / "shadow", user, f"{user}:*:19000:0:99999:7:::")


def _replace(path: Path, name: str, line: str) -> None:
    lines = [old for old in path.read_text().splitlines() if not old.startswith(f"{name}:")]
    path.write_text("\n".join([*lines, line, ""]))
