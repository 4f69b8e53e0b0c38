"""Accounting for a test cluster: MariaDB and slurmdbd."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.slurm.harness.slurm_conf import SLURM_UID
from tests.slurm.harness.slurm_namespace import SlurmNamespace
from tests.slurm.harness.slurm_rest import why_no_rest, write_jwt_key

READY_S = 60

_DATABASE_OPTIONS = (
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
    folder: Path,
    namespace: SlurmNamespace,
    wait_for: Callable[..., None],
    port: int,
    *mariadb_options: str,
) -> dict[str, str]:
    """Start MariaDB and slurmdbd; gives what slurm.conf must say of them.

    Parameters
    ----------
    folder, namespace, wait_for
        The cluster's.
    port
        Of slurmdbd.
    *mariadb_options
        More for mariadbd.

    Raises
    ------
    RuntimeError
        If MariaDB can't be set up.
    """
    database, log = folder / "database", folder / "log"
    database.mkdir()
    # In memory: setting up is all syncing.
    namespace.run(["mount", "-t", "tmpfs", "-o", f"uid={SLURM_UID}", "database", str(database)])
    # A server removes what others left in its tmpdir, and names its temporary tables by its process
    # id, which a namespace gives again: two clusters that share /tmp take away each other's tables.
    temporary = f"--tmpdir={database}"
    made = namespace.run(
        [
            *("mariadb-install-db", "--no-defaults", f"--datadir={database}/data", "--user=slurm"),
            *("--skip-test-db", "--auth-root-authentication-method=normal", temporary),
            *_DATABASE_OPTIONS,
        ]
    )
    if made.returncode:
        raise RuntimeError(f"mariadb-install-db: {made.stdout}{made.stderr}")
    namespace.start(
        [
            *("mariadbd", "--no-defaults", f"--datadir={database}/data", "--user=slurm"),
            *(f"--socket={database}/socket", f"--pid-file={database}/pid", "--skip-networking"),
            *("--skip-grant-tables", f"--log-error={log}/mariadb.log", temporary),
            *_DATABASE_OPTIONS,
            *mariadb_options,
        ],
        log=log / "mariadb.out",
        in_root=False,
    )
    in_place = ["test", "-S", f"{database}/socket"]
    wait_for(lambda: namespace.run(in_place).returncode == 0, "MariaDB", READY_S)
    conf = folder / "etc" / "slurmdbd.conf"
    values = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge/socket",
        "DbdHost": "localhost",
        "DbdAddr": "127.0.0.1",
        "DbdPort": port,
        "SlurmUser": "slurm",
        "LogFile": log / "slurmdbd.log",
        "PidFile": folder / "run/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": "slurm",
        "StorageLoc": "slurm_acct_db",
    }
    if not why_no_rest(namespace.release):
        values |= write_jwt_key(folder)  # slurmrestd hands its callers' tokens on to slurmdbd
    conf.write_text("".join(f"{key}={value}\n" for key, value in values.items()), encoding="utf-8")
    conf.chmod(0o600)
    os.chown(conf, SLURM_UID, SLURM_UID)
    namespace.start(
        ["slurmdbd", "-D"],
        log=log / "slurmdbd.out",
        environment={"MYSQL_UNIX_PORT": f"{database}/socket"},
    )
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStoragePass": f"{folder}/munge/socket",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": str(port),
        "AccountingStoreFlags": "job_comment",
    }
