"""What Slurm lets a user and an operator change, of others' jobs and of Slurm itself.

docs/slurm_clients.md and docs/threat_model.md print these tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

# What else may dave do, and erin? The last two end the job that runs.
REACH = {
    "scontrol reconfigure": (False, False),
    "scontrol shutdown slurmctld": (False, False),
    "scontrol update NodeName=n1 State=DRAIN Reason=tried": (False, False),
    "scontrol update PartitionName=main State=DOWN": (False, False),
    "sacctmgr -i modify user erin set adminlevel=administrator": (False, False),
    "sacctmgr -i modify account physics set fairshare=7": (False, True),
    "scontrol create reservation ReservationName=tried StartTime=now+864000 Duration=10 Nodes=n1"
    " Users=alice": (False, True),
    "scontrol requeue JOB": (False, True),
    "scancel JOB": (False, True),
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


def test_an_operator_reaches_accounts_and_jobs_but_not_slurm_itself(slurm: SlurmCluster) -> None:
    job_id = next(job["JobId"] for job in slurm.jobs() if job["JobState"] == "RUNNING")
    done = {
        words: tuple(
            slurm.run(words.replace("JOB", job_id).split(), user=user).returncode == 0
            for user in ("dave", "erin")
        )
        for words in REACH
    }
    assert done == REACH


@pytest.mark.parametrize(
    ("page", "table"), [("slurm_clients.md", TABLE), ("threat_model.md", REACH)]
)
def test_the_documentation_says_so(
    page: str, table: Mapping[str, tuple[bool, ...]], repository: Path
) -> None:
    text = (repository / "docs" / page).read_text(encoding="utf-8")
    for change, rights in table.items():
        cells = " | ".join("yes" if allowed else "no" for allowed in rights)
        assert f"| `{change}` | {cells} |" in text
