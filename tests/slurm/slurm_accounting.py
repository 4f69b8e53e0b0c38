"""Accounting for a test cluster: MariaDB and slurmdbd."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.slurm.slurm_conf import SLURM_UID, free_ports
from tests.slurm.slurm_namespace import SlurmNamespace

READY_S = 60

# The data are gone with the test, so nothing is synced to the disk.
_DATABASE_OPTIONS = (
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--innodb-doublewrite=0",
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=64M",
    "--innodb-lock-wait-timeout=900",
)


def why_no_accounting() -> str:
    """Say what is missing on this machine; empty if accounting can be had."""
    for program in ("mariadbd", "mariadb-install-db"):
        if not shutil.which(program, path="/usr/sbin:/usr/bin"):
            return f"no {program}: apt-get install mariadb-server"
    return ""


def start_accounting(
    folder: Path, namespace: SlurmNamespace, wait_for: Callable[..., None]
) -> dict[str, str]:
    """Start MariaDB and slurmdbd; gives what slurm.conf must say of them.

    Raises
    ------
    RuntimeError
        If MariaDB can't be set up.
    """
    database, log = folder / "database", folder / "log"
    database.mkdir()
    os.chown(database, SLURM_UID, SLURM_UID)
    made = namespace.run(
        ["mariadb-install-db", "--no-defaults", f"--datadir={database}/data", "--user=slurm"]
        + ["--skip-test-db", "--auth-root-authentication-method=normal", *_DATABASE_OPTIONS]
    )
    if made.returncode:
        raise RuntimeError(f"mariadb-install-db: {made.stdout}{made.stderr}")
    port = free_ports(2)
    namespace.start(
        ["mariadbd", "--no-defaults", f"--datadir={database}/data", "--user=slurm"]
        + [f"--socket={database}/socket", f"--pid-file={database}/pid", f"--port={port}"]
        + ["--bind-address=127.0.0.1", "--skip-grant-tables", "--skip-name-resolve"]
        + [f"--log-error={log}/mariadb.log", *_DATABASE_OPTIONS],
        log=log / "mariadb.out",
        in_root=False,
    )
    wait_for((database / "socket").exists, "MariaDB", READY_S)
    conf = folder / "etc" / "slurmdbd.conf"
    values = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge/socket",
        "DbdHost": "localhost",
        "DbdAddr": "127.0.0.1",
        "DbdPort": port + 1,
        "SlurmUser": "slurm",
        "LogFile": log / "slurmdbd.log",
        "PidFile": folder / "run/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "127.0.0.1",
        "StoragePort": port,
        "StorageUser": "slurm",
        "StorageLoc": "slurm_acct_db",
    }
    conf.write_text("".join(f"{key}={value}\n" for key, value in values.items()), encoding="utf-8")
    conf.chmod(0o600)
    os.chown(conf, SLURM_UID, SLURM_UID)
    namespace.start(["slurmdbd", "-D"], log=log / "slurmdbd.out")
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "localhost",
        "AccountingStoragePort": str(port + 1),
        "AccountingStoreFlags": "job_comment",
    }
