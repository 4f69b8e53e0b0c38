"""The OpenPBS that tests run against: built by ``make_openpbs.sh``, kept between runs.

It is in ``$FORETIME_PBS_CACHE`` (default ``/var/cache/foretime-pbs``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("FORETIME_PBS_CACHE", "/var/cache/foretime-pbs"))
PREFIX = CACHE / "openpbs"
SCRIPT = Path(__file__).with_name("make_openpbs.sh")
# Of all processes of a server.
ENVIRONMENT = {
    "PATH": f"{PREFIX}/bin:{PREFIX}/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "HOME": "/root",
}


def version() -> str:
    """Tell one build from the next; empty without one that is whole."""
    whole = PREFIX / "whole"
    return whole.read_text().strip() if whole.exists() else ""


def why_no_server() -> str:
    """Say why no server can be brought up on this machine; empty if one can."""
    if os.geteuid() != 0:
        return "a PBS server is brought up by root alone"
    if not version():
        return f"no OpenPBS in {PREFIX}: run {SCRIPT}"
    needed = ("unshare", "nsenter", "setpriv", "bash", "ip", "psql", "pg_config")
    lacking = [name for name in needed if not shutil.which(name)]
    if lacking:
        return f"no {', '.join(lacking)}: run {SCRIPT}"
    trial = ["unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--mount-proc", "true"]
    reply = subprocess.run(trial, capture_output=True, text=True, check=False)
    if reply.returncode:
        return f"no namespaces of our own ({reply.stderr.strip()}): needs CAP_SYS_ADMIN"
    return ""
