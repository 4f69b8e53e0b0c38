"""A live PBS server's host as a site's: what Foretime writes stays within the server's folder."""

from __future__ import annotations

from tests.pbs.openpbs import PREFIX
from tests.pbs.pbs_folder import PBS_HOME
from tests.pbs.pbs_server import PbsServer
from tests.support.processes.site_host import SiteHost

# $1: the server's folder. /etc, /run and /var/spool are the server's own already, and its user
# foretime is for tests that need no installation of the host.
_BEGIN = """\
set -e
mkdir "$1/var-lib"
mount --bind "$1/var-lib" /var/lib
userdel foretime
"""


def pbs_site_host(server: PbsServer) -> SiteHost:
    """Give the host of a running server that has nothing of Foretime."""
    server.checked(["sh", "-c", _BEGIN, "sh", str(server.folder)])
    return SiteHost(
        server.namespaces,
        (f"{PREFIX}/bin", f"{PREFIX}/sbin"),
        (f"{PBS_HOME}/sched_priv/sched_config", "/etc/pbs.conf"),
    )
