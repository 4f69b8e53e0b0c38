"""The Slurm releases that tests run against: installed, in Debian trees, and built.

Trees are made by ``make_slurm_tree.sh``, the build by ``make_slurm_build.sh``. They are kept
between runs in ``$FORETIME_SLURM_CACHE`` (default ``/var/cache/foretime-slurm``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("FORETIME_SLURM_CACHE", "/var/cache/foretime-slurm"))
# All tests run on the installed release and on the newest. On the others those run that are marked
# `every_release`, unless this is "all".
SELECTION = os.environ.get("FORETIME_SLURM_RELEASES", "")
NEWEST_SUITE, FURTHER_SUITES, BUILD = "forky", ("trixie",), "25.11"

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
    prefix
        Where Slurm is installed, as a program in ``root`` sees it.
    version
        Year, month and patch; ``None`` if not installed.
    missing
        What to install; empty if all is there.
    sampled
        Whether only tests with the marker ``every_release`` run on it.
    """

    name: str
    root: Path
    version: tuple[int, int, int] | None
    missing: str
    prefix: Path = Path("/usr")
    sampled: bool = False

    @property
    def soft_limit(self) -> bool:
        """Whether it knows ``SchedulerParameters=time_min_as_soft_limit``."""
        return self.version is not None and self.version >= _SOFT_LIMIT

    @property
    def cgroups_optional(self) -> bool:
        """Whether cgroup.conf knows ``CgroupPlugin=disabled``."""
        return self.version is not None and self.version >= _WITHOUT_CGROUPS

    @property
    def search_path(self) -> str:
        """The PATH of a program in ``root`` that finds this Slurm."""
        return f"{self.prefix}/sbin:{self.prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    @property
    def folder(self) -> Path:
        """The prefix, as seen from outside ``root``."""
        return self.root / self.prefix.relative_to("/")

    def files(self, pattern: str) -> list[Path]:
        """Give files and folders below the prefix, as seen from outside ``root``."""
        return sorted(self.folder.glob(pattern))

    @property
    def plugins(self) -> Path | None:
        """The folder of Slurm's plugins, as seen from outside ``root``."""
        found = [*self.files("lib/*-linux-gnu*/slurm-wlm"), *self.files("lib/slurm")]
        return found[0] if found else None

    def has(self, program: str) -> bool:
        """Say whether a program is installed below the prefix."""
        return bool(self.files(f"*bin/{program}"))

    def __str__(self) -> str:
        return self.name


def _examined(release: SlurmRelease) -> SlurmRelease:
    """Give a release with its version as its name, or with what is missing of it."""
    system = replace(release, prefix=Path("/usr"))
    lacking = [program for program in ("slurmctld", "slurmd", "sbatch") if not release.has(program)]
    lacking += [program for program in ("munged", "setpriv") if not system.has(program)]
    if lacking:
        what = f"no {', '.join(lacking)} in {release.folder}"
        return replace(release, missing=f"{what}: {release.missing}")
    if os.geteuid() != 0:
        return replace(release, missing="a Slurm cluster is brought up by root alone")
    command = ["chroot", str(release.root), "env", f"PATH={release.search_path}", "slurmctld", "-V"]
    reply = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", reply)
    if not found:
        what = f"slurmctld -V in {release.folder} doesn't run"
        return replace(release, missing=f"{what}: {release.missing}")
    version = (int(found[1]), int(found[2]), int(found[3]))
    return replace(release, name=f"{found[1]}.{found[2]}", version=version, missing="")


def _find() -> tuple[SlurmRelease, ...]:
    packages = "slurm-wlm slurm-wlm-basic-plugins slurm-wlm-jwt-plugin slurmrestd slurmdbd munge"
    tree, build = (HERE / f"make_slurm_{what}.sh" for what in ("tree", "build"))
    host = SlurmRelease("installed", Path("/"), None, f"apt-get install {packages} mariadb-server")
    trees = [
        SlurmRelease(suite, CACHE / suite, None, f"run {tree} {suite}")
        for suite in (NEWEST_SUITE, *FURTHER_SUITES)
    ]
    built = SlurmRelease(BUILD, Path("/"), None, f"run {build}", CACHE / BUILD)
    found: dict[str, SlurmRelease] = {}
    for number, release in enumerate(map(_examined, [host, *trees, built])):
        sampled = number >= 2 and SELECTION != "all"
        found.setdefault(release.name, replace(release, sampled=sampled))
    return tuple(found.values())


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
