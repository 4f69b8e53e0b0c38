"""Record what a live Slurm answers, for tests/assets/slurm/<release>.

``python -m tests.slurm.harness.record_replies [RELEASE]...`` (as root, from the repository) brings
up each release of this machine with accounting and slurmrestd, lets jobs of every kind happen to
it, and writes what its commands and slurmrestd answer. Replies in JSON are written a job a line;
names of this machine are replaced. It takes about two minutes a release, as limits are kept by the
minute.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import requests
from foretime_sidecar.clients.client import Cursor
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease
from tests.slurm.harness.slurm_rest import SlurmRest

ASSETS = Path(__file__).resolve().parents[2] / "assets/slurm"
# APIs of a release: of 22.05 the newest, of 26.05 the oldest and the newest.
REST = {(22, 5): ("v0.0.38",), (26, 5): ("v0.0.42", "v0.0.45")}
REST_REPLIES = {
    "jobs": "slurm/{api}/jobs",
    "nodes": "slurm/{api}/nodes",
    "reservations": "slurm/{api}/reservations",
    "diag": "slurm/{api}/diag",
    "conf": "slurm/{api}/conf",
    "ping": "slurm/{api}/ping",
    "finished": "slurmdb/{api}/jobs",
}


def let_jobs_happen(slurm: SlurmCluster) -> None:
    """Have jobs of every kind: 16 processors, of which a job under way holds 13."""
    slurm.sacctmgr("add", "account", "physics")
    slurm.sacctmgr("add", "user", "alice,bob,carol", "account=physics")
    slurm.sacctmgr("add", "qos", "high", "priority=100")
    slurm.set_conf(
        {"PriorityType": "priority/multifactor", "PriorityWeightQOS": "10000"}, restart=True
    )
    ended = {
        "completed": slurm.sbatch("-t5", script="sleep 2"),
        "failed": slurm.sbatch("-t5", user="bob", script="exit 3"),
        "timed-out": slurm.sbatch("-t1", user="carol"),
        "unlimited": slurm.sbatch("-tUNLIMITED", script="sleep 1"),
        "array": slurm.sbatch("-t5", "--array=1-3", user="bob", script="sleep 1"),
    }
    # Tasks take job ids when they start: let all ids be the same at every recording.
    slurm.wait_for(lambda: not slurm.run(["squeue", "-h", f"-j{ended['array']}"]).stdout, "array")
    cut = {
        "cancelled": slurm.sbatch("-t30"),
        "suspended": slurm.sbatch("-t40", user="bob"),
        "node-failed": slurm.sbatch("-t50", "--no-requeue", "-wn4", user="carol"),
        "requeued": slurm.sbatch("-t60", "--requeue", "-xn4"),
        "never-started": slurm.sbatch("-t70", "--hold"),
    }
    for name in ("cancelled", "suspended", "node-failed", "requeued"):
        slurm.wait_for_state(cut[name], "RUNNING")
    slurm.checked(["scontrol", "suspend", cut["suspended"]])
    time.sleep(3)
    slurm.checked(["scontrol", "resume", cut["suspended"]])
    time.sleep(2)
    slurm.checked(["scancel", cut["cancelled"], cut["suspended"], cut["never-started"]])
    slurm.checked(["scontrol", "requeue", cut["requeued"]])
    slurm.checked(["scontrol", "update", "NodeName=n4", "State=DOWN", "Reason=recorded"])
    slurm.wait_for_state(cut["node-failed"], "NODE_FAIL")
    # It may have come back by itself.
    slurm.run(["scontrol", "update", "NodeName=n4", "State=RESUME"])
    for job_id in ended.values():
        slurm.wait_for_end(job_id, timeout_s=150)
    slurm.wait_for_state(cut["requeued"], "PENDING")
    slurm.wait_for(lambda: slurm.run(["sinfo", "-h", "-o%T"]).stdout.strip() == "idle", "n4")

    running = slurm.sbatch("-n12", "-t120")
    paused = slurm.sbatch("-n1", "-t120", user="bob")
    for job_id in (running, paused):
        slurm.wait_for_state(job_id, "RUNNING")
    slurm.checked(["scontrol", "suspend", paused])
    waiting = slurm.sbatch("-n16", "-t180", "--time-min=30", "--comment=first", user="carol")
    array = slurm.sbatch("-n16", "-t60", "--array=1-9,20-24:2%2", user="bob")
    slurm.sbatch("-n16", "-t60", "--hold")
    slurm.sbatch("-n16", "-t60", f"--dependency=afterok:{running}")
    slurm.sbatch("-n16", "-t60", "--begin=now+1hour")
    slurm.sbatch("-n16", "-t60", "--deadline=now+2days", user="bob")
    slurm.sbatch("-n8", "-t60", ":", "-n8", user="carol")
    slurm.sbatch("-n16", "-tUNLIMITED", user="carol")
    for job_id, factor in ((waiting, 5), (array, -7)):
        slurm.checked(["scontrol", "update", f"JobId={job_id}", f"SiteFactor={factor}"])
    slurm.checked(["scontrol", "update", f"JobId={waiting}", "AdminComment=noted by another tool"])
    for name, start, more in (
        ("maintenance", 600, ["flags=MAINT,IGNORE_JOBS", "nodes=ALL", "users=root"]),
        ("course", 700, ["nodecnt=1", "accounts=physics", "partitionname=main"]),
    ):
        slurm.checked(
            [
                *("scontrol", "create", "reservation", f"reservationname={name}"),
                *(f"starttime=now+{start}minutes", "duration=60", *more),
            ]
        )
    slurm.wait_for(lambda: len(accounted(slurm)) >= 11, "accounting to know the jobs that ended")
    # Priorities, and the plan that squeue shows, are worked out a moment later.
    time.sleep(3)


def accounted(slurm: SlurmCluster) -> list[str]:
    """Give the jobs that accounting knows to have ended."""
    rows = slurm.sacct("JobID", "End")
    return [row["JobID"] for row in rows if row["End"] != "Unknown"]


class Recorder(SubprocessRunner):
    """Runs Slurm's commands and keeps what they print by file name."""

    def __init__(self, commands_dir: Path) -> None:
        super().__init__(str(commands_dir))
        self.printed: dict[str, str] = {}

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        """Run a command; see `CommandRunner`."""
        reply = super().__call__(argv, stdin)
        name = argv[0] if argv[0] != "scontrol" else f"scontrol-{argv[2]}"
        if isinstance(reply, str):
            self.printed[f"{name}.txt"] = reply
        elif isinstance(reply, bytes):
            self.printed[f"{name}.json"] = reply.decode()
        return reply


def commands(slurm: SlurmCluster) -> Iterator[tuple[str, str]]:
    """Give file names and what Slurm's commands print, asked by the client itself."""
    recorder = Recorder(slurm.commands)
    client = SlurmCommands(recorder)
    client.finished_since(Cursor(int(time.time()) - 3600))
    for ask in (client.queue, client.reservations, client.load):
        ask()
    client.limits(client.configuration())
    client.site_factors()
    client.qos_priorities()
    yield from recorder.printed.items()


def rest(slurm: SlurmCluster, address: SlurmRest) -> Iterator[tuple[str, str]]:
    """Give file names and what slurmrestd answers; a path that an API lacks is left out."""
    headers = {"X-SLURM-USER-NAME": "slurm", "X-SLURM-USER-TOKEN": slurm.token()}
    assert slurm.release.version is not None
    for api in REST[slurm.release.version[:2]]:
        for name, path in REST_REPLIES.items():
            url = f"{address.url}/{path.format(api=api)}"
            reply = requests.get(url, headers=headers, timeout=60)
            if reply.status_code != requests.codes.not_found:
                yield f"rest/{api}/{name}.json", reply.text


def tidy(text: str, folder: Path) -> str:
    """Take names of this machine out, and write a JSON reply's jobs a line each."""
    text = text.replace(str(folder), "/lab").replace(str(folder).replace("/", "\\/"), "/lab")
    text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "head", text)
    if not text.startswith("{"):
        return text
    reply = json.loads(text)
    fields = [f"{json.dumps(key)}: {_lines(value)}" for key, value in reply.items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _lines(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(json.dumps(each) for each in value) + "\n]"
    return json.dumps(value)


def record(release: SlurmRelease) -> None:
    """Record one release."""
    slurm = SlurmCluster(release, scheduler_parameters={"max_rpc_cnt": "150"})
    try:
        slurm.add_accounting()
        address = slurm.add_rest()
        let_jobs_happen(slurm)
        for name, text in (*commands(slurm), *rest(slurm, address)):
            path = ASSETS / release.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(tidy(text, slurm.folder), encoding="utf-8")
    finally:
        slurm.stop()


if __name__ == "__main__":
    for each in RELEASES:
        if sys.argv[1:] and each.name not in sys.argv[1:]:
            continue
        if each.missing:
            sys.exit(f"no Slurm to record: {each.missing}")
        record(each)
