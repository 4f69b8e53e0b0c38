"""The PBS_HOME that every test server begins with a copy of.

It is made once for each build of OpenPBS, as to set up a database takes half a minute, and kept in
the cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.pbs import pbs_folder
from tests.pbs.openpbs import CACHE, PREFIX, version
from tests.pbs.pbs_folder import PBS_HOME, copy, enter, new_folder, run, start_daemon
from tests.support.processes.own_namespaces import OwnNamespaces

READY_S = 180
_POLL_S = 0.1
_UNUSED_S = 7 * 86_400
# MoM looks every second whether a job has outlived its walltime, not every ten.
_MOM_CONFIG = "$min_check_poll 1\n$max_check_poll 1\n"
_SETTINGS = (
    "set server job_history_enable = true",
    "set server query_other_jobs = true",
    "set server flatuid = true",
    "set server managers += manager@*",
)


def first_home() -> Path:
    """Give it; made if there is none for this build, or one that was made in another way."""
    made_by = [Path(__file__), Path(pbs_folder.__file__)]
    key = hashlib.sha256(version().encode() + b"".join(path.read_bytes() for path in made_by))
    key.update(subprocess.run(["psql", "--version"], capture_output=True, check=True).stdout)
    home = CACHE / f"home-{key.hexdigest()[:16]}"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            _make(home)
        os.utime(home)
        for old in CACHE.glob("home-*"):
            if time.time() - old.stat().st_mtime > _UNUSED_S:  # another branch's may be in use
                shutil.rmtree(old)
    return home


def _make(target: Path) -> None:
    with new_folder() as folder:
        namespaces = enter(folder)
        try:
            libexec = PREFIX / "libexec"
            release = run(namespaces, ["qstat", "--version"]).split()[-1]
            install = ["server", release, str(PREFIX), str(PBS_HOME), "", "sameconf"]
            run(namespaces, [str(libexec / "pbs_postinstall"), *install])
            run(namespaces, [str(libexec / "pbs_habitat")])
            home = folder / "spool/pbs"
            (home / "mom_priv/config").write_text(_MOM_CONFIG)
            start_daemon(namespaces, folder, "pbs_server")
            _wait_for(lambda: namespaces.run(["qstat", "-B"]).returncode == 0, "the first server")
            run(namespaces, ["qmgr"], "\n".join([*_SETTINGS, ""]))
            run(namespaces, ["qterm", "-t", "quick"])
            _wait_for(lambda: not _alive(namespaces), "the first server's database to end")
            copy(home, target.with_suffix(".new"))
            target.with_suffix(".new").rename(target)
        finally:
            namespaces.end()


def _alive(namespaces: OwnNamespaces) -> bool:
    return bool(namespaces.run(["pgrep", "--exact", "pbs_server.bin|postgres"]).stdout)


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + READY_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {READY_S} s for {what}")
        time.sleep(_POLL_S)
