"""The folder of a test server, and what runs in it.

It holds the server's /etc, /run, /var/spool and /var/tmp, and its users' homes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.pbs.openpbs import ENVIRONMENT, PREFIX
from tests.support.processes.own_namespaces import OwnNamespaces

HOST = "pbs01"
FORETIME_UID, FIRST_USER_UID = 64050, 64051
USERS = ("alice", "bob", "carol", "manager", "dave", "erin")
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
_NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--ipc")
_SCRIPT = Path(__file__).with_name("pbs_namespaces.sh")


@contextmanager
def new_folder() -> Iterator[Path]:
    """Give a folder with all but PBS_HOME, removed if what is done with it fails."""
    folder = Path(tempfile.mkdtemp(prefix="foretime-pbs-", dir="/tmp"))
    try:
        _fill(folder)
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def enter(folder: Path) -> OwnNamespaces:
    """Make the namespaces of a server in a folder."""
    seen = [sys.base_prefix, str(Path(__file__).resolve().parents[2])]
    return OwnNamespaces(folder, _NAMESPACES, _SCRIPT, ENVIRONMENT, seen)


def run(namespaces: OwnNamespaces, argv: Sequence[str], stdin: str = "") -> str:
    """Run a command that must succeed; gives its output."""
    reply = namespaces.run(argv, stdin=stdin)
    if reply.returncode:
        said = reply.stdout + reply.stderr
        raise RuntimeError(f"{' '.join(argv)} answered {reply.returncode}: {said}")
    return reply.stdout


def start_daemon(namespaces: OwnNamespaces, folder: Path, daemon: str) -> None:
    """Start one, which puts itself in the background; what it prints goes to a file."""
    output = folder / f"{daemon}.out"
    reply = namespaces.run(["sh", "-c", f"exec {PREFIX}/sbin/{daemon} >>{output} 2>&1"])
    if reply.returncode:
        raise RuntimeError(f"{daemon} answered {reply.returncode}: {output.read_text()}")


def copy(source: Path, target: Path) -> None:
    """Copy a folder with its owners, modes and times."""
    subprocess.run(["cp", "--archive", str(source), str(target)], check=True)


def _fill(folder: Path) -> None:
    folder.chmod(0o755)
    # Of the machine's own, which nothing here ever writes, but for its own Foretime.
    own = shutil.ignore_patterns("foretime")
    shutil.copytree("/etc", folder / "etc", symlinks=True, ignore=own)
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
