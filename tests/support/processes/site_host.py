"""A scheduler's host in a test's own namespaces, with Foretime in /opt and a stand-in for systemd.

/etc, /run and /var/lib must be the namespaces' own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from tests.support.processes.opt_foretime import PREFIX, install_as_wheel
from tests.support.processes.own_namespaces import OwnNamespaces
from tests.support.processes.stand_in_systemd import StandInSystemd

_TIMEOUT_S = 300
_WRITTEN = (
    "/etc/foretime",
    "/etc/systemd/system",
    "/etc/passwd",
    "/etc/group",
    "/var/lib/foretime",
)


class SiteHost:
    """The host; ends its systemd as a context does.

    Parameters
    ----------
    namespaces
        Where it is.
    commands
        Folders of the scheduler's commands.
    configuration
        Files and folders of the scheduler that an installation writes to.
    others
        Units that are not Foretime's, by name, and what restarts each.

    Attributes
    ----------
    systemd
        Its systemd.
    """

    def __init__(
        self,
        namespaces: OwnNamespaces,
        commands: Sequence[str],
        configuration: Sequence[str],
        others: Mapping[str, Callable[[], object]] | None = None,
    ) -> None:
        self._namespaces, self._configuration = namespaces, configuration
        install_as_wheel(namespaces)
        self.systemd = StandInSystemd(namespaces, namespaces.folder / "systemd", others)
        folders = [f"{namespaces.folder}/systemd/bin", *commands, f"{PREFIX}/bin"]
        self._environment = {
            "PATH": ":".join([*folders, "/usr/sbin:/usr/bin:/sbin:/bin"]),
            "HOME": "/root",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.systemd.end()

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line as root's shell does."""
        return self._namespaces.run(
            ["sh", "-ec", line], environment=self._environment, timeout_s=_TIMEOUT_S
        )

    def checked(self, line: str) -> str:
        """Run a line that must succeed; gives what it printed."""
        reply = self.shell(line)
        if reply.returncode:
            log = self.systemd.log.read_text()[-4000:]
            raise RuntimeError(f"{line}: {reply.returncode}\n{reply.stdout}{reply.stderr}\n{log}")
        return reply.stdout

    @contextmanager
    def read_only(self, folder: str) -> Iterator[None]:
        """Have nothing written into a folder."""
        self.checked(f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}")
        try:
            yield
        finally:
            self.checked(f"umount -l {folder}")

    @contextmanager
    def refusing(self, request: str) -> Iterator[None]:
        """Have systemd refuse a request."""
        self.systemd.fails.add(request)
        try:
            yield
        finally:
            self.systemd.fails.clear()

    def files(self) -> set[str]:
        """Give what is where an installation writes: owners, modes, digests, rights of its user."""
        places = " ".join((*self._configuration, *_WRITTEN))
        told = (
            f"find {places} -printf '%p %U:%G %m\\n' 2>&-",
            f"find {places} -type f -exec sha256sum {{}} + 2>&-",
            "getfacl -pRs /var/spool/pbs 2>&- | grep user:foretime",
        )
        return {
            line for command in told for line in self.shell(f"{command} || true").stdout.split("\n")
        }
