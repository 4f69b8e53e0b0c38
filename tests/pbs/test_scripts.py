"""`foretime wait` reads ``#PBS`` lines of a script as this OpenPBS's qsub does."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.job_options.batch_script import read_script
from foretime_sidecar.job_options.job_request import asked_job

from tests.pbs.pbs_server import PbsServer

# Scripts that qsub takes; those without a walltime have none that it reads.
TAKEN = (
    "#PBS -l walltime=60\nsleep 1\n",
    "\n\n#PBS -l walltime=60\nsleep 1\n",
    "#!/bin/sh\n   #PBS -l walltime=60\nsleep 1\n",
    "\t#PBS -l walltime=60\nsleep 1\n",
    "# text\n#PBS -q night\n# more\n\n#PBS -l walltime=60\nsleep 1\n",
    "#PBS -q night\necho\n#PBS -l walltime=60\n",
    ":\n#PBS -l walltime=60\nsleep 1\n",
    ": x\n#PBS -l walltime=60\nsleep 1\n",
    "#PBS-l walltime=60\nsleep 1\n",
    "#PBS -q night\n#pbs -l walltime=60\nsleep 1\n",
    "#PBS -q night\nfoo #PBS -l walltime=60\nsleep 1\n",
    "#PBS\n#PBS -l walltime=60\nsleep 1\n",
    "#PBS -l \"walltime=60\" -q 'night'\nsleep 1\n",
    "#PBS -l walltime=60 -l ncpus=2\nsleep 1\n",
    "#PBS -l walltime=60\n#PBS -l walltime=70\nsleep 1\n",
    "#PBS -l walltime=60,walltime=70\nsleep 1\n",
    "#PBS -l select=2:ncpus=2\n#PBS -l select=1:ncpus=1,walltime=60\nsleep 1\n",
    "#PBS -q workq\n#PBS -q night\nsleep 1\n",
)
REFUSED = (
    "#PBS -l walltime=60 # an hour\nsleep 1\n",
    "#PBS -l walltime=60 word\nsleep 1\n",
    "#PBSX -l walltime=60\nsleep 1\n",
    "#PBS -l walltime=60\r\nsleep 1\r\n",
)


@pytest.fixture(scope="module")
def server(pbs_of_module: PbsServer) -> PbsServer:
    night = "create queue night queue_type=execution,enabled=true,started=true"
    pbs_of_module.qmgr("set server scheduling = false", night)
    return pbs_of_module


def submit(server: PbsServer, script: str) -> str | None:
    """Submit a script; gives the job's id, ``None`` if it is refused."""
    path = server.folder / "home/alice/job.pbs"
    path.write_bytes(script.encode())
    reply = server.run(["qsub", str(path)], "alice")
    return None if reply.returncode else reply.stdout.strip()


@pytest.mark.parametrize("script", TAKEN)
def test_what_qsub_takes_is_read_alike(server: PbsServer, script: str) -> None:
    job_id = submit(server, script)
    assert job_id is not None
    options = asked_job({}, {}, read_script(script, "job.pbs"), 0.0).options
    job = server.job(job_id)
    resources = job["Resource_List"]
    assert options.get("time") == resources.get("walltime")
    assert options.get("partition", "workq") == job["queue"]
    assert int(options.get("ntasks", "1")) == int(resources["ncpus"])


@pytest.mark.parametrize("script", REFUSED)
def test_what_qsub_refuses_is_refused(server: PbsServer, script: str) -> None:
    assert submit(server, script) is None
    with pytest.raises(InputError):
        asked_job({}, {}, read_script(script, "job.pbs"), 0.0)
