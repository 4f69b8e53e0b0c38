"""A batch script is read as sbatch reads it: the same limits, on live clusters."""

from __future__ import annotations

import time

import pytest
from foretime_sidecar.job_options.batch_script import read_script
from foretime_sidecar.job_options.job_request import asked_job
from foretime_sidecar.job_options.sbatch_values import node_range
from foretime_sidecar.wording.durations import parse_duration, whole_minutes

from tests.slurm.harness.slurm_cluster import SlurmCluster

SCRIPTS = [
    "#SBATCH -n 4 --time=90\n",
    "#SBATCH -N 2-3 --ntasks-per-node=2 -c 2 -t 1-12:30:10\n#SBATCH --mem=500M",
    "#SBATCH --comment='-n 3' -t 5#20\n#SBATCH-n2\n # remark\n\n#SBATCH --time-min 3 -t 10\n",
    " #SBATCH -n 3\n#SBATCH -sn2 --part=main\n#SBATCH -t '2:00:00'\ncd /tmp\n#SBATCH -n 4\n",
    "#SBATCH -t 7 -n 8\n#PBS -l walltime=0:05:00,nodes=2:ppn=2\n",
    "#PBS -l nodes=2:ppn=2 -l walltime=2:00:00\n#PBS -q main -N x\n",
    "#SBATCH -t 5 --begin=now+2hours --exclusive\n",
    "#SBATCH -t 5 -b 2037-12-24T18:00\n",
]


@pytest.mark.parametrize("text", SCRIPTS)
def test_the_same_limits_as_sbatch(text: str, slurm_of_module: SlurmCluster) -> None:
    script = f"#!/bin/sh\n{text}\nsleep 60\n"
    slurm = slurm_of_module
    path = slurm.jobs_folder / "job.sh"
    path.write_text(script)
    before = int(time.time())
    job = slurm.job(slurm.checked(["sbatch", "--parsable", "--hold", str(path)]).strip())
    asked = asked_job({}, {}, read_script(script, "job.sh"), before).parameters(before)

    assert parse_duration(job["TimeLimit"]) == 60 * whole_minutes(parse_duration(asked["time"]))
    tasks = int(asked.get("ntasks", 0))
    if "nodes" in asked:
        least, most = node_range(asked["nodes"])
        assert node_range(job["NumNodes"]) == (least, most)
        tasks = tasks or least * int(asked.get("ntasks_per_node", 1))
    assert int(job["NumTasks"]) == tasks
    assert int(job["NumCPUs"]) == tasks * int(asked.get("cpus_per_task", 1))
    assert job["Partition"] == asked.get("partition", "main")
    minimum = {"N/A": None}.get(job["TimeMin"], job["TimeMin"])
    assert minimum == asked.get("time_min")
    if "mem" in asked:
        assert job["MinMemoryNode"] == asked["mem"]
    if "begin" in asked:
        assert 0 <= int(job["EligibleTime"]) - int(asked["begin"]) <= 5
