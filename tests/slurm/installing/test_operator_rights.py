"""What Slurm lets a user, an operator and an administrator change of others' jobs.

docs/slurm_clients.md prints this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

# Of a job of alice's: may dave, who is nobody, change it while it waits; may erin, who is an
# operator, while it waits, and while it runs. Slurm takes a TimeMin of a running job, and does
# nothing.
TABLE = {
    "TimeMin=1": (False, True, False),
    "TimeMin=0": (False, True, False),
    "TimeLimit=20": (False, True, True),
    "TimeLimit=200": (False, True, True),
    "SiteFactor=5": (False, True, True),
    "Priority=7": (False, True, True),
    "Nice=-5": (False, True, True),
    "Comment=said": (False, True, True),
    "AdminComment=noted": (False, False, False),
}


@pytest.fixture(scope="module")
def slurm(release: SlurmRelease) -> Iterator[SlurmCluster]:
    """A cluster with accounting and an operator; one job of alice's runs, one waits."""
    cluster = SlurmCluster(release, conf={"PriorityType": "priority/multifactor"})
    try:
        cluster.add_accounting()
        cluster.sacctmgr("add", "account", "physics")
        cluster.sacctmgr("add", "user", "alice,dave", "account=physics")
        cluster.sacctmgr("add", "user", "erin", "account=physics", "adminlevel=operator")
        cluster.wait_for_state(cluster.sbatch("-n16", "-t60", "--time-min=10"), "RUNNING")
        cluster.sbatch("-n16", "-t60", "--time-min=10")
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize("change", TABLE)
def test_each_right_is_what_the_page_says(change: str, slurm: SlurmCluster) -> None:
    running, pending = (
        next(job["JobId"] for job in slurm.jobs() if job["JobState"] == state)
        for state in ("RUNNING", "PENDING")
    )
    tried = ((pending, "dave"), (pending, "erin"), (running, "erin"))
    done = []
    for job_id, user in tried:
        before = slurm.job(job_id)
        reply = slurm.scontrol("update", f"JobId={job_id}", change, user=user)
        ignored = change.startswith("TimeMin") and slurm.job(job_id)["TimeMin"] == before["TimeMin"]
        done.append(reply.returncode == 0 and not ignored)
    assert tuple(done) == TABLE[change]


def test_the_documentation_says_so(repository: Path) -> None:
    page = (repository / "docs/slurm_clients.md").read_text()
    for change, rights in TABLE.items():
        cells = " | ".join("yes" if allowed else "no" for allowed in rights)
        assert f"| `{change}` | {cells} |" in page
