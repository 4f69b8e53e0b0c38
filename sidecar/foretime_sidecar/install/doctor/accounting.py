"""Checks of Slurm's accounting: slurmdbd, and the database that it writes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install.doctor.checkup import Finding, ok, problem, warning

_SLURMDBD = "accounting_storage/slurmdbd"
# Since then innodb_snapshot_isolation is on unless it is set off (MDEV-35124).
_SNAPSHOT_SINCE = (11, 6, 2)
# Since then slurmdbd looks for it at its start (seen on 26.05.5; 22.05.8 does not).
_TOLD_SINCE = (26, 5)
_VERSION = re.compile(r"MySQL server version is: ((\d+)\.(\d+)\.(\d+)-MariaDB\S*)")
_SNAPSHOT_IS_ON = "innodb_snapshot_isolation is enabled"
_TURN_IT_OFF = (
    "write innodb_snapshot_isolation=OFF below [mysqld] in MariaDB's configuration, restart "
    "MariaDB, then slurmdbd"
)
_LOG_BYTES = 1 << 20
_FAULT = re.compile(r"^\[\S+\] ((?:error|fatal): .*)$")
_NO_FAULT = "Database settings not recommended"


@dataclass(frozen=True, slots=True)
class DatabaseSaid:
    """What slurmdbd's log tells since its last start.

    Attributes
    ----------
    version
        MariaDB's, in its own words; "" if none is told, or the database is another.
    release
        The same as numbers.
    snapshots
        Whether slurmdbd says that innodb_snapshot_isolation is on.
    fault
        The last error; "" if there is none.
    """

    version: str = ""
    release: tuple[int, ...] = ()
    snapshots: bool = False
    fault: str = ""


def slurmdbd_said(folder: Path) -> DatabaseSaid:
    """Read the log that slurmdbd.conf names; nothing if it is not here, or not ours to read."""
    try:
        conf = (folder / "slurmdbd.conf").read_text("utf-8", "replace")
        named = re.search(r"(?im)^\s*LogFile\s*=\s*(\S+)", conf)
        if named is None:
            return DatabaseSaid()
        with Path(named[1]).open("rb") as log:
            log.seek(max(log.seek(0, 2) - _LOG_BYTES, 0))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return DatabaseSaid()
    said = DatabaseSaid()
    for line in lines:
        version, fault = _VERSION.search(line), _FAULT.match(line)
        if version is not None:  # slurmdbd has started
            release = tuple(int(number) for number in version.groups()[1:])
            said = DatabaseSaid(version[1], release)
        elif _SNAPSHOT_IS_ON in line:
            said = DatabaseSaid(said.version, said.release, True, said.fault)
        elif fault is not None and _NO_FAULT not in line:
            said = DatabaseSaid(said.version, said.release, said.snapshots, fault[1])
    return said


def accounting(
    configuration: Mapping[str, str],
    controller: SlurmController,
    folder: Path,
    slurm_release: tuple[int, ...],
) -> Finding:
    """Look whether slurmdbd answers, and whether it can work with its database.

    Parameters
    ----------
    configuration
        What ``scontrol show config`` says.
    controller
        Asks slurmdbd.
    folder
        Where slurm.conf is, and slurmdbd.conf if slurmdbd runs here.
    slurm_release
        Slurm's.
    """
    kind = configuration.get("AccountingStorageType", "")
    if kind != _SLURMDBD:
        return warning(
            f"AccountingStorageType is {kind or 'not set'}: of jobs that end nothing is learned",
            f"set up slurmdbd, and AccountingStorageType={_SLURMDBD}",
        )
    said = slurmdbd_said(folder)
    where = configuration.get("AccountingStorageHost", "its host")
    try:
        clusters = controller.accounted_clusters()
    except SchedulerError as error:
        last = said.fault or str(error).partition("; ")[0]
        return problem(
            f"slurmdbd on {where} does not answer, so of jobs that end nothing is learned: {last}",
            _TURN_IT_OFF if said.snapshots else f"start slurmdbd on {where}, else see its log",
        )
    if said.snapshots:
        return problem(
            f"MariaDB {said.version} has innodb_snapshot_isolation on, with which slurmdbd ends "
            "when two write at once",
            _TURN_IT_OFF,
        )
    if said.release >= _SNAPSHOT_SINCE and slurm_release < _TOLD_SINCE:
        return warning(
            f"MariaDB {said.version} has innodb_snapshot_isolation on unless it is set off, and "
            "slurmdbd can't work with it",
            _TURN_IT_OFF,
        )
    name = configuration.get("ClusterName", "").lower()  # as slurmdbd has it
    if name not in clusters:
        return problem(
            f"slurmdbd on {where} knows no cluster {name}: of jobs that end nothing is learned",
            f"sacctmgr add cluster {name}",
        )
    return ok(f"slurmdbd on {where} answers" + (f", MariaDB {said.version}" * bool(said.version)))
