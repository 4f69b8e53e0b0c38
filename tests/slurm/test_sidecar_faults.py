"""The daemon killed, its disk full, its disk hung: submissions go on, later jobs go as written."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.slurm.harness.live_sidecar import LiveSidecar
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

PROMPT_S = 5.0
VALID_S = 60  # table.valid_for_s of LiveSidecar
HUNG = Path(__file__).with_name("harness") / "hung_filesystem.py"


def submit(cluster: SlurmCluster) -> dict[str, str]:
    """Submit an hour; it must be accepted at once. Gives the job."""
    began = time.monotonic()
    job = cluster.job(cluster.sbatch("-t", "60", "--hold"))
    assert time.monotonic() - began < PROMPT_S
    return job


def planned(job: dict[str, str]) -> bool:
    return "foretime:treq=60" in job.get("AdminComment", "")


def as_written(job: dict[str, str]) -> bool:
    return not planned(job) and (job["TimeLimit"], job["TimeMin"]) == ("01:00:00", "N/A")


def killed(release: SlurmRelease) -> dict[str, bool]:
    """SIGKILL it, and start it again when its table has run out."""
    with SlurmCluster(release) as cluster:
        cluster.add_accounting()
        cluster.install_hook()
        cluster.table.unlink()
        with LiveSidecar(cluster) as sidecar:
            seen = {"planned before": planned(submit(cluster))}
            sidecar.kill()
            seen["accepted at once after"] = bool(submit(cluster))
            time.sleep(VALID_S + 2)
            seen["as written when the table has run out"] = as_written(submit(cluster))
            sidecar.start()
            seen["planned again"] = planned(submit(cluster))
            return seen


def disk_full(release: SlurmRelease) -> dict[str, bool]:
    """Fill the table's disk, and make a reservation, which asks for a new table."""
    with SlurmCluster(release) as cluster:
        cluster.add_accounting()
        folder = cluster.table.parent
        cluster.checked(["mount", "-t", "tmpfs", "-o", "size=64k,mode=2770", "full", str(folder)])
        cluster.checked(["chgrp", "slurm", str(folder)])
        publish = cluster.publish
        cluster.publish = lambda *_, **__: None  # type: ignore[method-assign]  # it can't see it
        cluster.install_hook()
        cluster.publish = publish  # type: ignore[method-assign]
        with LiveSidecar(cluster) as sidecar:
            seen = {"planned before": planned(submit(cluster))}
            filler = folder / "filler"
            full = cluster.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"])
            seen["disk is full"] = "No space left" in full.stderr
            table = sidecar.table_inode()
            cluster.checked(
                [
                    "scontrol",
                    "create",
                    "reservation",
                    "ReservationName=later",
                    "Nodes=n1",
                    "Users=root",
                    "StartTime=now+10days",
                    "Duration=60",
                ]
            )
            cluster.wait_for(lambda: "can't write the table" in sidecar.log.read_text(), "an error")
            seen["the table stays"] = sidecar.table_inode() == table
            seen["planned by it"] = planned(submit(cluster))
            cluster.checked(["rm", str(filler)])
            cluster.wait_for(lambda: sidecar.table_inode() != table, "a new table")
            seen["planned again"] = planned(submit(cluster))
            return seen


def disk_hung(release: SlurmRelease) -> dict[str, bool]:
    """Hang the disk of its store and start it again there: it stands still, nobody else does."""
    with SlurmCluster(release) as cluster:
        cluster.add_accounting()
        cluster.install_hook()
        cluster.table.unlink()
        with LiveSidecar(cluster) as sidecar:
            seen = {"planned before": planned(submit(cluster))}
            sidecar.kill()
            hung = cluster.namespace.start(
                [sys.executable, str(HUNG), str(sidecar.folder)],
                log=cluster.folder / "log/hung.out",
                in_root=False,
            )
            said = cluster.folder / "log/hung.out"
            cluster.wait_for(lambda: said.read_text() == "hung\n", "the hung disk")
            log, sidecar.log = sidecar.log, cluster.folder / "log/sidecar.out"
            daemon = sidecar.launch()
            time.sleep(2)
            seen["the daemon hangs"] = daemon.poll() is None and not sidecar.log.read_text()
            seen["accepted at once"] = bool(submit(cluster))
            seen["slurmctld answers"] = cluster.answers()
            time.sleep(VALID_S)
            seen["as written when the table has run out"] = as_written(submit(cluster))
            sidecar.log = log
            assert isinstance(hung, subprocess.Popen)
            return seen


FAULTS = {"killed": killed, "disk-full": disk_full, "disk-hung": disk_hung}


def EXPERIMENT(release: SlurmRelease) -> dict[str, dict[str, bool]]:  # noqa: N802
    return {name: fault(release) for name, fault in FAULTS.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_submissions_go_on(experiment: dict[str, dict[str, bool]], fault: str) -> None:
    assert experiment[fault], "nothing was seen"
    assert all(experiment[fault].values()), experiment[fault]
