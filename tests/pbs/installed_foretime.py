"""Foretime on a test server, by its own commands and with settings where they belong."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from foretime_sidecar.table.table import Mode, Table, TableRow, TableSettings, write_table

from tests.pbs.pbs_folder import FORETIME_UID, USERS
from tests.pbs.pbs_server import PbsServer

# Jobs are planned with a fifth of their walltime.
ROWS = tuple(TableRow("user", user, 0, 200_000) for user in USERS)
_SETTINGS = """\
[scheduler]
kind = "pbs"
poll_interval_s = 1
longest_poll_interval_s = 1
[store]
path = "{folder}/store"
[table]
path = "{table}"
publish_interval_s = 1
[hook]
mode = "enforce"
mechanism = "pbs-soft-walltime"
[api]
listen = "unix:{folder}/socket"
"""


class InstalledForetime:
    """Foretime's commands and table beside a server; `install` registers the hook.

    Parameters
    ----------
    server
        The server.

    Attributes
    ----------
    table
        The hook's table.
    disable_file
        The file that switches the hook off, as it is seen from outside.
    """

    def __init__(self, server: PbsServer) -> None:
        self.server = server
        self.folder = server.folder / "foretime"
        self.table = self.folder / "table/foretime.table"
        self.table.parent.mkdir(parents=True)
        for path in (self.folder, self.table.parent):
            os.chown(path, FORETIME_UID, FORETIME_UID)
        etc = server.folder / "etc/foretime"
        etc.mkdir()
        self.settings_file = etc / "foretime.toml"
        self.settings_file.write_text(_SETTINGS.format(folder=self.folder, table=self.table))
        self.disable_file = etc / "foretime.off"
        self._generation = 0

    def run(self, *words: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        """Run ``foretime`` on the server's host, whose user, folders and settings are there."""
        if words[0] in ("install", "uninstall"):
            words = (*words, "--hook-only")
        return self.server.run([str(Path(sys.executable).with_name("foretime")), *words], user)

    def checked(self, *words: str) -> str:
        """Run ``foretime`` as root, which must succeed; gives its output."""
        reply = self.run(*words)
        if reply.returncode:
            raise RuntimeError(f"foretime {' '.join(words)}: {reply.stdout}{reply.stderr}")
        return reply.stdout

    def install(self) -> None:
        """Register the hook with a table that plans all `USERS` of the tests."""
        self.publish(ROWS)
        self.checked("install", "pbs", "--yes")

    def uninstall(self) -> None:
        """Take it out."""
        self.checked("uninstall", "pbs", "--yes")

    def publish(
        self,
        rows: Sequence[TableRow] = ROWS,
        settings: TableSettings | None = None,
        written_at: int | None = None,
        valid_until: int | None = None,
    ) -> None:
        """Publish a table, of now and valid for a day unless other times are given."""
        self._generation += 1
        now = int(time.time())
        content = Table(
            self._generation,
            now if written_at is None else written_at,
            now + 86_400 if valid_until is None else valid_until,
            settings or self.table_settings(),
            rows=tuple(rows),
        )
        write_table(self.table, content)

    @staticmethod
    def table_settings(mode: Mode = Mode.ENFORCE) -> TableSettings:
        """Give settings under which a job is planned to the second, however short."""
        return TableSettings(
            mode=mode, minimum_adjustment=0.0, minimum_scheduled_time_s=1, rounding_s=1
        )


def daemon_on(server: PbsServer, log: Path, user: str = "foretime") -> subprocess.Popen[bytes]:
    """Run ``foretime serve`` on a server as a user; what it says is added to the log."""
    program = str(Path(sys.executable).with_name("foretime"))
    with log.open("ab") as said:
        return subprocess.Popen(
            server.namespaces.command([program, "serve"], user),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=server.namespaces.environment,
        )
