"""The Slurm releases that tests run against: the installed one, and one in a Debian tree.

The tree is made by ``make_slurm_tree.sh`` and kept between runs in ``$FORETIME_SLURM_CACHE``
(default ``/var/cache/foretime-slurm``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("FORETIME_SLURM_CACHE", "/var/cache/foretime-slurm"))
TREE_SUITE = "forky"

# From this release on slurmd starts where there are no cgroups only if it is told so.
_WITHOUT_CGROUPS = (23, 11)
# time_min_as_soft_limit; backfill plans the queue's head with it from 25.05.4 on.
_SOFT_LIMIT = (23, 11)


@dataclass(frozen=True)
class SlurmRelease:
    """One Slurm: where its programs are, and what it can do.

    Attributes
    ----------
    name
        What a test's id shows: the version ("22.05"), or where none is installed, what is missing.
    root
        The folder that the programs take for ``/``.
    version
        Year, month and patch; ``None`` if not installed.
    missing
        What to install; empty if all is there.
    """

    name: str
    root: Path
    version: tuple[int, int, int] | None
    missing: str

    @property
    def soft_limit(self) -> bool:
        """Whether it knows ``SchedulerParameters=time_min_as_soft_limit``."""
        return self.version is not None and self.version >= _SOFT_LIMIT

    @property
    def cgroups_optional(self) -> bool:
        """Whether cgroup.conf knows ``CgroupPlugin=disabled``."""
        return self.version is not None and self.version >= _WITHOUT_CGROUPS

    def has(self, program: str) -> bool:
        """Say whether a program is installed."""
        folders = ("usr/sbin", "usr/bin", "sbin", "bin")
        return any((self.root / folder / program).exists() for folder in folders)

    def __str__(self) -> str:
        return self.name


def _installed(root: Path, kind: str, remedy: str) -> SlurmRelease:
    needed = ("slurmctld", "slurmd", "munged", "sbatch", "setpriv")
    blank = SlurmRelease(kind, root, None, remedy)
    lacking = [program for program in needed if not blank.has(program)]
    if lacking:
        return SlurmRelease(kind, root, None, f"no {', '.join(lacking)} in {root}: {remedy}")
    if os.geteuid() != 0:
        return SlurmRelease(kind, root, None, "a Slurm cluster is brought up by root alone")
    command = ["chroot", str(root), "slurmctld", "-V"]
    reply = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", reply)
    if not found:
        return SlurmRelease(kind, root, None, f"slurmctld -V in {root} doesn't run: {remedy}")
    version = (int(found[1]), int(found[2]), int(found[3]))
    return SlurmRelease(f"{found[1]}.{found[2]}", root, version, "")


def _find() -> tuple[SlurmRelease, ...]:
    packages = "slurm-wlm slurm-wlm-basic-plugins slurm-wlm-jwt-plugin slurmrestd slurmdbd munge"
    host = _installed(Path("/"), "installed", f"apt-get install {packages} mariadb-server")
    script = Path(__file__).with_name("make_slurm_tree.sh")
    tree = _installed(CACHE / TREE_SUITE, TREE_SUITE, f"run {script} {TREE_SUITE}")
    return host, tree


def why_no_cluster() -> str:
    """Say why no cluster at all can be brought up on this machine; empty if one can."""
    if os.geteuid() != 0:
        return "a Slurm cluster is brought up by root alone"
    lacking = [name for name in ("unshare", "nsenter", "setpriv", "bash") if not shutil.which(name)]
    if lacking:
        return f"no {', '.join(lacking)}: apt-get install util-linux bash"
    trial = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    reply = subprocess.run(trial, capture_output=True, text=True, check=False)
    if reply.returncode:
        return f"no namespaces of our own ({reply.stderr.strip()}): needs CAP_SYS_ADMIN"
    return ""


RELEASES = _find()
