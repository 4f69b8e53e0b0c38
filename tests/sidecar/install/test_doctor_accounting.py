"""What the doctor says of slurmdbd and of its database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install.doctor.accounting import accounting
from foretime_sidecar.install.doctor.checkup import Finding, Health

OK, WARNING, PROBLEM = Health.OK, Health.WARNING, Health.PROBLEM
CONFIGURATION = {
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageHost": "dbhost",
    "ClusterName": "lab",
}
# As slurmdbd 26.05.5 and 22.05.8 wrote it.
STARTED = (
    "[2026-11-28T17:33:42.887] accounting_storage/as_mysql: _check_mysql_concat_is_sane: MySQL "
    "server version is: {}"
)
SNAPSHOTS = (
    "[2026-11-28T17:33:42.888] error: innodb_snapshot_isolation is enabled, which is not supported "
    "by Slurm and will cause slurmdbd to fatal when a write conflicts with a concurrent "
    "transaction.  Set innodb_snapshot_isolation=OFF."
)
SIZES = (
    "[2026-11-28T17:33:42.888] error: Database settings not recommended values: "
    "innodb_buffer_pool_size"
)
FATAL = "[2026-11-28T17:40:00.000] fatal: mysql gave ER_CHECKREAD, please restart slurmdbd"
OLD, NEW = "10.11.19-MariaDB-0+deb12u1", "11.8.3-MariaDB-0+deb13u1"


class Slurmdbd(SlurmController):
    """Knows these clusters; ``None``: it does not answer."""

    def __init__(self, clusters: Sequence[str] | None) -> None:
        self._clusters = clusters

    def accounted_clusters(self) -> Sequence[str]:
        if self._clusters is None:
            raise SchedulerError("sacctmgr: Connection refused; is slurmdbd up?")
        return self._clusters


def look(
    folder: Path,
    *log: str,
    clusters: Sequence[str] | None = ("lab",),
    release: tuple[int, ...] = (26, 5, 5),
    **configuration: str,
) -> Finding:
    if log:
        (folder / "slurmdbd.conf").write_text(f"DbdHost=x\n LogFile = {folder}/slurmdbd.log\n")
        (folder / "slurmdbd.log").write_text("\n".join(log) + "\n")
    return accounting(CONFIGURATION | configuration, Slurmdbd(clusters), folder, release)


def test_a_slurmdbd_that_answers_is_fine(tmp_path: Path) -> None:
    assert look(tmp_path) == Finding(OK, "slurmdbd on dbhost answers")
    found = look(tmp_path, STARTED.format(OLD), SIZES)
    assert found == Finding(OK, f"slurmdbd on dbhost answers, MariaDB {OLD}")


@pytest.mark.parametrize(
    ("log", "said", "remedy"),
    [
        ((), "sacctmgr: Connection refused", "start slurmdbd on dbhost"),
        ((STARTED.format(OLD), FATAL), "ER_CHECKREAD", "start slurmdbd on dbhost"),
        ((STARTED.format(NEW), SNAPSHOTS, FATAL), "ER_CHECKREAD", "snapshot_isolation=OFF"),
    ],
)
def test_a_slurmdbd_that_does_not_answer_is_a_problem(
    tmp_path: Path, log: tuple[str, ...], said: str, remedy: str
) -> None:
    found = look(tmp_path, *log, clusters=None)
    assert found.health is PROBLEM
    assert "slurmdbd on dbhost does not answer" in found.message
    assert said in found.message
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("log", "release", "health"),
    [
        ((STARTED.format(NEW), SNAPSHOTS, SIZES), (26, 5, 5), PROBLEM),
        ((STARTED.format(NEW), SNAPSHOTS, STARTED.format(NEW)), (26, 5, 5), OK),
        ((STARTED.format(NEW),), (26, 5, 5), OK),  # it would have said so
        ((STARTED.format(NEW),), (22, 5, 8), WARNING),
        ((STARTED.format("11.6.1-MariaDB"),), (22, 5, 8), OK),
        ((STARTED.format(OLD),), (22, 5, 8), OK),
        ((STARTED.format("8.0.36"),), (22, 5, 8), OK),  # MySQL's own has no such setting
    ],
)
def test_a_mariadb_too_new_for_slurmdbd_is_told_of(
    tmp_path: Path, log: tuple[str, ...], release: tuple[int, ...], health: Health
) -> None:
    found = look(tmp_path, *log, release=release)
    assert found.health is health, found
    assert ("innodb_snapshot_isolation=OFF" in found.remedy) is (health is not OK)


def test_without_accounting_nothing_is_learned(tmp_path: Path) -> None:
    found = look(tmp_path, AccountingStorageType="accounting_storage/none")
    assert (found.health, "nothing is learned" in found.message) == (WARNING, True)
    found = look(tmp_path, clusters=["other"])
    assert (found.health, found.remedy) == (PROBLEM, "sacctmgr add cluster lab")
