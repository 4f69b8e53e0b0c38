"""Record what a live Slurm answers of its site, for tests/assets/slurm/<release>/site.

``python -m tests.slurm.harness.record_site [RELEASE]...`` (as root, from the repository) brings up
the varied cluster of each release, lets it be used for a minute, and writes what the commands of
``foretime site import`` answer, each in a file. With ``--like FOLDER NAME`` it does so for a
cluster in the shape of a folder's slurm.conf and sacctmgr.script, into
tests/assets/slurm/<release>/NAME.
"""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.slurm.harness.site_clusters import bring_up_from, bring_up_varied
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease

ASSETS = Path(__file__).resolve().parents[2] / "assets/slurm"
COMMANDS = {
    "config.txt": "scontrol show config",
    "nodes.txt": "scontrol show node --all --future --oneliner",
    "nodes-lines.txt": "scontrol show node --all --future",
    "partitions.txt": "scontrol show partition --all --oneliner",
    "partitions-lines.txt": "scontrol show partition --all",
    "reservations.txt": "scontrol show reservation --oneliner",
    "reservations-lines.txt": "scontrol show reservation",
    "licenses.txt": "scontrol show licenses",
    "topology.txt": "scontrol show topology",
    "assoc.txt": "sacctmgr show assoc -P",
    "qos.txt": "sacctmgr show qos -P",
    "users.txt": "sacctmgr show user -P",
    "sshare.txt": "sshare -a -l -P",
    "sprio.txt": "sprio -w",
    "sdiag.txt": "sdiag",
}


def use(slurm: SlurmCluster) -> None:
    """Have jobs use the varied cluster, and wait for some, until usage has been charged."""
    slurm.sbatch("-n8", "-t60", "--account=physics", "--partition=main", user="alice")
    slurm.sbatch("-n4", "-t60", "--account=chemistry", "--partition=main", user="carol")
    slurm.sbatch(
        "-n2", "-t60", "--account=physics", "-pgpu", "--gpus-per-node=1", "-N1", user="bob"
    )
    for number in range(6):
        slurm.sbatch("-n8", f"-t{60 + number}", "-Abiology", "-pmain", user="dave")
    for name, words in (
        ("upkeep", ["flags=MAINT,IGNORE_JOBS", "nodes=ALL", "users=root"]),
        ("course", ["nodes=n[1-2]", "accounts=physics", "partitionname=main"]),
    ):
        slurm.checked(
            [
                *("scontrol", "create", "reservation", f"reservationname={name}"),
                *("starttime=now+1days", "duration=120", *words),
            ]
        )
        slurm.checked(["scontrol", "update", f"reservationname={name}", "starttime=now+2days"])
    slurm.scontrol("update", "NodeName=n3", "State=DRAIN", "Reason=recorded with Name=Value")

    def charged() -> bool:
        text = slurm.checked(["sshare", "-a", "-l", "-P", "-n"])
        return any(re.match(r"\s*physics\|alice\|.*", line) for line in text.splitlines()) and (
            "|0|" not in next(line for line in text.splitlines() if line.startswith("root"))
        )

    time.sleep(65)
    slurm.wait_for(charged, "usage to be charged", 90)


def record(
    slurm: SlurmCluster, folder: Path, happen: Callable[[SlurmCluster], None] | None
) -> None:
    """Write what the commands answer into a folder."""
    try:
        if happen:
            happen(slurm)
        folder.mkdir(parents=True, exist_ok=True)
        for name, command in COMMANDS.items():
            if happen is None and name.endswith("-lines.txt"):
                continue
            # The varied cluster has no switches.
            if happen is not None and name == "topology.txt":
                continue
            text = slurm.checked(command.split())
            text = text.replace(str(slurm.folder), "/lab")
            text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "head", text)
            text = re.sub(r"OS=Linux \S+ #\d+ .*?(?= RealMemory=|\s*\n)", "OS=Linux ", text)
            (folder / name).write_text(text, encoding="utf-8")
        slurm.checked(["sacctmgr", "-i", "dump", "lab", f"file={slurm.jobs_folder}/dump.cfg"])
        (folder / "dump.txt").write_text((slurm.jobs_folder / "dump.cfg").read_text())
    finally:
        slurm.stop()


def main(words: list[str]) -> None:
    """Record the releases that are named, or all."""
    like: tuple[Path, str] | None = None
    if "--like" in words:
        at = words.index("--like")
        like = Path(words[at + 1]), words[at + 2]
        del words[at : at + 3]
    for release in RELEASES:
        if words and release.name not in words:
            continue
        if release.missing:
            sys.exit(f"no Slurm to record: {release.missing}")
        _record(release, like)


def _record(release: SlurmRelease, like: tuple[Path, str] | None) -> None:
    if like is None:
        record(bring_up_varied(release), ASSETS / release.name / "site", use)
    else:
        record(bring_up_from(release, like[0]), ASSETS / release.name / like[1], None)


if __name__ == "__main__":
    main(sys.argv[1:])
