"""A live cluster's controller as a site's host: what Foretime writes stays within it."""

from __future__ import annotations

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.support.processes.site_host import SiteHost

# $1: the cluster's folder; $2: the release's root. /etc is the cluster's own already.
_MOUNTS = """\
set -e
folder=$1 root=${2%/}
mkdir "$folder/var-lib"
mount --bind "$folder/var-lib" /var/lib
if [ -n "$root" ]; then mount --bind "$folder/var-lib" "$root/var/lib"; fi
mount -t tmpfs -o mode=0755 run /run
"""


def slurm_site_host(cluster: SlurmCluster) -> SiteHost:
    """Give the host of a running cluster that has nothing of Foretime."""
    folder, root = str(cluster.folder), str(cluster.release.root)
    cluster.checked(["sh", "-c", _MOUNTS, "sh", folder, root])
    return SiteHost(
        cluster.namespace.inside,
        (str(cluster.commands),),
        ("/etc/slurm",),
        {"slurmctld.service": cluster.restart_slurmctld},
    )
