"""A fake Slurm with a deep queue: commands that print files, in the words of a recorded 26.05."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parents[2] / "assets/slurm/26.05"
USERS = 200
COMMANDS = {
    "squeue": 'cat "$here/squeue.json"',
    "sprio": 'cat "$here/sprio.txt"',
    "sinfo": 'cat "$here/sinfo.txt"',
    "sacct": """echo '{"jobs": [], "errors": []}'""",
    "sacctmgr": 'cat "$here/$3.txt"',
    "sshare": 'cat "$here/sshare.txt"',
    "sdiag": 'cat "$here/sdiag.txt"',
    "scontrol": """if [ $# = 0 ]; then cat >> "$here/changes"; else cat "$here/$2.txt"; fi""",
}


class PrintedSlurm:
    """A folder of Slurm's commands, and what they print.

    Jobs run on all nodes but 25, and others wait, for one of so many processors.
    """

    def __init__(
        self,
        folder: Path,
        now: int,
        *,
        nodes: int,
        cpus: int,
        waiting: int,
        running: int,
        widths: Sequence[int] = (1, 32, 64, 512, 4_096),
    ) -> None:
        self.folder, self.now = folder, now
        self.nodes, self.cpus, self.widths = nodes, cpus, widths
        self.random = random.Random(1)
        for name, line in COMMANDS.items():
            script = folder / name
            script.write_text(f'#!/bin/sh\nhere="{folder}"\n{line}\n', encoding="utf-8")
            script.chmod(0o755)
        config = (ASSETS / "scontrol-config.txt").read_text(encoding="utf-8")
        # As a site has it, not the test cluster that was recorded: priorities by age, no hurry.
        config = config.replace("PriorityWeightAge       = 0", "PriorityWeightAge       = 1000")
        parameters = next(line for line in config.splitlines() if "SchedulerParameters" in line)
        config = config.replace(parameters, "SchedulerParameters     = bf_continue")
        self.write("config.txt", config)
        self.write("sinfo.txt", f"{(nodes - 25) * cpus}/{25 * cpus}/0/{nodes * cpus}\n")
        self.write("federation.txt", "")
        for name, text in self.accounting().items():
            self.write(name, text)
        for name in ("sdiag.txt", "licenses.txt"):
            self.write(name, (ASSETS / "site" / name).read_text(encoding="utf-8"))
        self.write("reservation.txt", "No reservations in the system\n")
        part = (ASSETS / "scontrol-partition.txt").read_text(encoding="utf-8").splitlines()[0]
        halves = {"main": f"n[1-{nodes}]", "short": f"n[1-{nodes // 2}]"}
        lines = [
            part.replace("PartitionName=main", f"PartitionName={name}")
            .replace("Default=YES", f"Default={'YES' if name == 'main' else 'NO'}")
            .replace("Nodes=n[1-4]", f"Nodes={names}")
            for name, names in halves.items()
        ]
        self.write("partition.txt", "\n".join(lines))
        recorded = json.loads((ASSETS / "squeue.json").read_text(encoding="utf-8"))
        self.reply = {**recorded, "jobs": []}
        self.jobs: list[dict[str, Any]] = self.reply["jobs"]
        self.patterns = {
            state: next(job for job in recorded["jobs"] if job["job_state"] == [state])
            for state in ("PENDING", "RUNNING")
        }
        self.next_id = 1
        first = 1
        for left in range(running, 0, -1):
            share = (nodes - 25 - first + 1) // left
            self.run(first, share)
            first += share
        for _ in range(waiting):
            self.wait()

    def write(self, name: str, text: str) -> None:
        """Write a file at once, as a command may read it meanwhile."""
        whole = self.folder / "being-written"
        whole.write_text(text, encoding="utf-8")
        whole.replace(self.folder / name)

    def accounting(self) -> dict[str, str]:
        """What accounting tells: one account, of which all users are."""
        recorded = {
            name: (ASSETS / "site" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
            for name in ("qos", "users", "sshare")
        }
        users = [f"user{each}" for each in range(USERS)]
        head = "Cluster|Account|User|ParentName|Share|QOS"
        associations = [
            "lab|root|||1|normal",
            "lab|root|root||1|normal",
            "lab|physics||root|1|normal",
            *(f"lab|physics|{user}||1|normal" for user in users),
        ]
        texts = {
            "assoc": [head, *associations],
            "qos": recorded["qos"][:2],
            "user": [recorded["users"][0], *(f"{user}|physics|None" for user in users)],
            "sshare": recorded["sshare"][:3],
        }
        return {f"{name}.txt": "\n".join(lines) + "\n" for name, lines in texts.items()}

    def add(self, state: str, processors: int, limit_min: int, since: int, **more: Any) -> None:
        """Add a job with an identity of its own."""
        job = {
            **self.patterns[state],
            "job_id": self.next_id,
            "user_name": f"user{self.next_id % USERS}",
            "cpus": number(processors),
            "tasks": number(processors),
            "time_limit": number(limit_min),
            "submit_time": number(since),
            "eligible_time": number(since),
            "accrue_time": number(since),
            "array_job_id": number(0),
            "array_task_id": number(None),
            **more,
        }
        self.jobs.append(job)
        self.next_id += 1

    def run(self, first: int, nodes: int) -> None:
        names = [f"n{number}" for number in range(first, first + nodes)]
        cores = self.patterns["RUNNING"]["job_resources"]["nodes"]["allocation"][0]["sockets"][0]
        socket = {**cores, "cores": cores["cores"] * self.cpus}
        allocation = [
            {
                "name": name,
                "cpus": {"count": self.cpus, "used": 0},
                "memory": {"used": 0, "allocated": 0},
                "sockets": [socket],
            }
            for name in names
        ]
        since = self.now - self.random.randint(100, 3_000)
        self.add(
            "RUNNING",
            nodes * self.cpus,
            self.random.choice([60, 240, 1440]),
            since,
            start_time=number(since),
            job_resources={
                "nodes": {"count": nodes, "list": ",".join(names), "allocation": allocation}
            },
        )

    def wait(self) -> None:
        self.add(
            "PENDING",
            self.random.choice(self.widths),
            self.random.choice([10, 60, 240, 1440]),
            self.now - self.random.randint(0, 80_000),
            partition=self.random.choice(["main", "main", "short"]),
            priority=number(self.random.randint(1, 100_000)),
            start_time=number(0),
            required_nodes="",
            excluded_nodes="",
            dependency="",
            hold=False,
            state_reason="Priority",
            node_count=number(1),
            max_nodes=number(0),
            features="",
            tres_per_node="",
            tres_per_job="",
            tres_per_task="",
            comment="",
            admin_comment="",
        )

    def publish(self) -> None:
        """Let the commands print it; of the nodes the load has changed."""
        waiting = [job for job in self.jobs if job["job_state"] == ["PENDING"]]
        self.write("squeue.json", json.dumps(self.reply, indent=1))
        self.write("sprio.txt", "".join(f"{job['job_id']}|0|1|0 0 0 0 0 0 0 \n" for job in waiting))
        recorded = (ASSETS / "site/nodes-lines.txt").read_text(encoding="utf-8").split("\n\n")[0]
        fields = dict(part.split("=", 1) for part in recorded.split() if "=" in part)
        every = {
            "NodeHostName": "n",
            "CPUAlloc": self.cpus,
            "CPUEfctv": self.cpus,
            "CPUTot": self.cpus,
            "Sockets": self.cpus,
            "State": "MIXED",
            "Partitions": "main,short",
            "CfgTRES": f"cpu={self.cpus},mem=500G,billing={self.cpus}",
            "AllocTRES": f"cpu={self.cpus}",
        }
        lines = []
        for node in range(1, self.nodes + 1):
            own = {
                "NodeName": f"n{node}",
                "CPULoad": f"{self.random.random():.2f}",
                "Partitions": "main,short" if node <= self.nodes // 2 else "main",
            }
            words = fields | every | own
            lines.append(" ".join(f"{key}={value}" for key, value in words.items()))
        self.write("node.txt", "\n".join(lines))

    def pass_time(self) -> None:
        """Let 30 s pass: some jobs come and go, backfill plans 500 anew."""
        waiting = [job for job in self.jobs if job["job_state"] == ["PENDING"]]
        for job in self.random.sample(waiting, 20):
            self.jobs.remove(job)
        for _ in range(20):
            self.wait()
        for job in self.random.sample(waiting, 500):
            job["start_time"] = number(self.now + self.random.randint(60, 80_000))

    def forget(self) -> None:
        """Keep what is published alone: no daemon has a hundred megabytes of JSON as objects."""
        self.jobs.clear()

    def weigh(self) -> None:
        """Let Slurm work out every priority anew, as each PriorityCalcPeriod."""
        for job in self.jobs:
            job["priority"] = number(job["priority"]["number"] + 1)


def number(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}
