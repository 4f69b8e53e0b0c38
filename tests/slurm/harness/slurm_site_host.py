"""A live cluster's controller as a site's host: what Foretime writes to stays within the cluster.

/etc is the cluster's own already. This gives it /run, /var/lib, /opt with Foretime, and a stand-in
for systemd.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.support.processes.opt_foretime import install_as_wheel
from tests.support.processes.stand_in_systemd import StandInSystemd

# $1: the cluster's folder; $2: the release's root.
_MOUNTS = """\
set -e
folder=$1 root=${2%/}
mkdir "$folder/var-lib"
mount --bind "$folder/var-lib" /var/lib
if [ -n "$root" ]; then mount --bind "$folder/var-lib" "$root/var/lib"; fi
mount -t tmpfs -o mode=0755 run /run
"""


class SlurmSiteHost:
    """The host; `end` ends its systemd.

    Parameters
    ----------
    cluster
        A running cluster that has nothing of Foretime.

    Attributes
    ----------
    systemd
        Its systemd.
    """

    def __init__(self, cluster: SlurmCluster) -> None:
        self.cluster = cluster
        folder, root = str(cluster.folder), str(cluster.release.root)
        cluster.checked(["sh", "-c", _MOUNTS, "sh", folder, root])
        install_as_wheel(cluster.namespace.inside)
        self.systemd = StandInSystemd(
            cluster.namespace.inside,
            cluster.folder / "systemd",
            {"slurmctld.service": cluster.restart_slurmctld},
        )

    def end(self) -> None:
        """End its systemd."""
        self.systemd.end()

    @property
    def environment(self) -> Mapping[str, str]:
        """What root's shell has, with Slurm's commands and foretime on the PATH."""
        own = (self.systemd_bin, self.cluster.commands, "/opt/foretime/bin")
        path = ":".join([*map(str, own), "/usr/sbin:/usr/bin:/sbin:/bin"])
        return {"PATH": path, "HOME": "/root", "LC_ALL": "C"}

    @property
    def systemd_bin(self) -> Path:
        """The folder of its systemctl."""
        return self.cluster.folder / "systemd/bin"

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line as root's shell does."""
        return self.cluster.namespace.run(
            ["sh", "-ec", line], environment=self.environment, timeout_s=300
        )

    def checked(self, line: str) -> str:
        """Run a line that must succeed; gives what it printed."""
        reply = self.shell(line)
        if reply.returncode:
            log = self.systemd.log.read_text()[-4000:]
            raise RuntimeError(f"{line}: {reply.returncode}\n{reply.stdout}{reply.stderr}\n{log}")
        return reply.stdout

    def files(self) -> dict[str, str]:
        """Give what is in the folders that an installation writes to, with owners and modes."""
        words = ["/etc/slurm", "/etc/foretime", "/etc/systemd/system", "/etc/passwd", "/etc/group"]
        words += ["/var/lib/foretime"]
        found = "find " + " ".join(words) + " -type f -printf '%p %U:%G %m\\n' 2>/dev/null | sort"
        listed = self.cluster.run(["sh", "-c", found]).stdout.splitlines()
        return {
            line: self.cluster.run(["sha256sum", line.split()[0]]).stdout.split()[0]
            for line in listed
        }
