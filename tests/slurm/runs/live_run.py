"""One live run: a cluster is brought up, gets its jobs at their seconds, and is drained."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

from tests.slurm.harness.cluster_answers import LostClusterError, ask, state_of
from tests.slurm.harness.slurm_cluster import SlurmCluster, records_of
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.runs.run_configurations import RunConfiguration
from tests.slurm.runs.run_job import RunJob, parts_of
from tests.slurm.runs.site_files import files_of
from tests.slurm.runs.slurmctld_log import loops_of

SAMPLE_S = 60
LONGEST_S = 75 * 60
_SETTLE_S = 8
_PATIENCE_S = 600
_SQUEUE = "%i|%Q|%t|%r|%S|%P|%a|%q"
_SHOWN = (
    *(["scontrol", "show", kind] for kind in ("config", "partition", "node", "reservation")),
    ["sacctmgr", "-P", "show", "assoc", "tree"],
    ["sacctmgr", "-P", "show", "qos"],
    ["sshare", "-a", "-l", "-P"],
)


def cluster_of(configuration: RunConfiguration, release: SlurmRelease) -> SlurmCluster:
    """Bring up the cluster of a configuration, with its accounts.

    Raises
    ------
    RuntimeError
        If Slurm refuses what it says.
    """
    files = files_of(configuration.site)
    etc_files = {"gres.conf": files.gres_conf, "topology.conf": files.topology_conf}
    # Jobs are told of until the end of the run.
    logging = {"SlurmctldDebug": "debug", "DebugFlags": "Backfill", "MinJobAge": "86400"}
    cluster = SlurmCluster(
        release,
        conf={**files.values, **logging},
        quick=False,
        scheduler_parameters=files.scheduler_parameters,
        slurm_partitions=files.slurm_partitions,
        node_settings={f"n{at}": said for at, said in enumerate(files.node_settings, 1)},
        files={name: text for name, text in etc_files.items() if text},
    )
    try:
        if files.sacctmgr:
            cluster.conf.values |= files.accounting_values
            cluster.add_accounting()
            for words in files.sacctmgr:
                cluster.sacctmgr(*words)
            cluster.wait_for(cluster.answers, "slurmctld to answer")
    except BaseException:
        cluster.stop()
        raise
    return cluster


class LiveRun:
    """A run of one configuration on one release.

    Parameters
    ----------
    configuration, release
        What, and on which Slurm.
    log_folder
        Where slurmctld's log is kept.
    """

    def __init__(
        self, configuration: RunConfiguration, release: SlurmRelease, log_folder: Path
    ) -> None:
        self.configuration, self.release = configuration, release
        self.log_folder = log_folder
        self.jobs = configuration.jobs()
        self._samples: list[dict[str, Any]] = []
        self._refused: dict[int, str] = {}
        self._late: list[float] = []
        self._slurm_ids: dict[int, str] = {}
        self._sample_s = SAMPLE_S

    def run(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the outcome, and what was sampled while it went on.

        Raises
        ------
        LostClusterError
            As soon as the cluster does not answer, or does not tell of a job that it took.
        """
        self.cluster = cluster_of(self.configuration, self.release)
        try:
            time.sleep(_SETTLE_S)
            self._zero = int(time.time()) + 2
            self._reserve()
            shown = self._shown()
            time.sleep(max(self._zero - time.time(), 0))
            self._zero = int(time.time())
            self._submit_all()
            self._drain()
            time.sleep(2)
            self._sample()
            return self._outcome(), {"samples": self._samples, "site": shown}
        finally:
            log = self.cluster.folder / "log/slurmctld.log"
            if log.exists():
                self.log_folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(log, self.log_folder / "slurmctld.log")
            self.cluster.stop()

    def _reserve(self) -> None:
        site = self.configuration.site
        firsts = dict(
            zip(
                (group.name for group in site.machine.node_groups),
                site.machine.first_nodes,
                strict=True,
            )
        )
        for reservation in site.reservations:
            groups = [g for g in site.machine.node_groups if g.name in reservation.node_groups]
            nodes = ",".join(
                f"n{firsts[group.name] + number + 1}"
                for group in groups
                for number in range(group.nodes)
            )
            begin = time.strftime(
                "%Y-%m-%dT%H:%M:%S", time.localtime(self._zero + reservation.start)
            )
            self.cluster.checked(
                [
                    *("scontrol", "create", "reservation", f"ReservationName={reservation.name}"),
                    *(f"StartTime={begin}", f"Duration={reservation.duration // 60}"),
                    *(f"Nodes={nodes}", "Users=root", "Flags=MAINT"),
                ]
            )

    def _shown(self) -> dict[str, str]:
        commands = _SHOWN if self.configuration.site.associations else _SHOWN[:4]
        return {" ".join(words): self.cluster.run(words).stdout for words in commands}

    # Submitting -----------------------------------------------------------------------------------

    def _submit_all(self) -> None:
        for number, job in enumerate(self.jobs):
            self._sample_until(self._zero + job.submit_s)
            self._submit(number, job)

    def _submit(self, number: int, job: RunJob) -> None:
        self._late.append(time.time() - self._zero - job.submit_s)
        reply = self.cluster.try_sbatch(
            f"--job-name=j{number}",
            *job.sbatch_options(),
            user=job.user,
            script=f"exec sleep {job.runtime_s}",
            timeout_s=_PATIENCE_S,
        )
        if reply.returncode:
            self._ask("squeue", "-h", "-o", "%i")  # for a cluster that is lost refuses nothing
            self._refused[number] = reply.stderr.strip()
        else:
            self._slurm_ids[number] = reply.stdout.strip().split(";")[0]

    def _ask(self, *words: str, epoch: bool = False) -> str:
        """Give what a command answers, however slow the machine is."""
        environment = {"SLURM_TIME_FORMAT": "%s"} if epoch else {}
        return ask(self.cluster, words, environment=environment, timeout_s=_PATIENCE_S)

    def _drain(self) -> None:
        until = time.time() + LONGEST_S
        while self._ask("squeue", "-h", "-o", "%i").strip():
            if time.time() > until:
                raise TimeoutError(f"{self.configuration.name}: jobs are left after {LONGEST_S} s")
            self._sample_until(time.time() + 5)

    # Looking --------------------------------------------------------------------------------------

    def _sample_until(self, moment: float) -> None:
        while True:
            next_sample = self._zero + self._sample_s * (len(self._samples) + 1)
            if next_sample > moment:
                time.sleep(max(moment - time.time(), 0))
                return
            time.sleep(max(next_sample - time.time(), 0))
            self._sample()

    def _sample(self) -> None:
        sample: dict[str, Any] = {"at": round(time.time() - self._zero, 2)}
        sample["load"] = os.getloadavg()[0]
        # By priority as Slurm has it, and with the plans of backfill where it has any.
        words = ["squeue", "-h", "-t", "PD,R", "-r", "-S", "t,-p,i", "-o", _SQUEUE]
        sample["squeue"] = self._ask(*words, epoch=True).splitlines()
        sample["cpus"] = self._cpus_by_node()
        site = self.configuration.site
        if site.priority.multifactor:
            sample["sprio"] = self._ask("sprio", "-l").splitlines()
        if site.associations:
            sample["sshare"] = self._ask("sshare", "-a", "-l", "-P").splitlines()
        self._samples.append(sample)

    def _cpus_by_node(self) -> dict[str, list[list[str]]]:
        """Give the nodes, CPUs, memory and GRES of running jobs by Slurm's id."""
        found = {}
        for line in self._told_of_jobs("-d").splitlines():
            if "JobState=RUNNING" in line and (job := re.match(r"JobId=(\d+)", line)):
                places = re.findall(r" Nodes=(\S+) CPU_IDs=(\S+) Mem=(\S*) GRES=(\S*)", line)
                found[job[1]] = [list(place) for place in places]
        return found

    def _told_of_jobs(self, *options: str) -> str:
        """Give what scontrol says of the jobs, which must be all that were taken."""
        words = ("scontrol", *options, "--oneliner", "show", "job")
        text = self._ask(*words, epoch=True)
        told = set(re.findall(r"\b(?:Array)?JobId=(\d+)", text))
        lost = [each for each in self._slurm_ids.values() if each not in told]
        if lost:
            raise LostClusterError(
                f"{self.configuration.name}: Slurm took jobs {lost[:10]}, {len(lost)} of "
                f"{len(self._slurm_ids)}, and tells of them no more.\n{state_of(self.cluster)}"
            )
        return text

    # What came of it ------------------------------------------------------------------------------

    def _outcome(self) -> dict[str, Any]:
        records = {record["JobId"]: record for record in records_of(self._told_of_jobs())}
        by_part = {}
        for record in records.values():
            number = int(record["JobName"].removeprefix("j"))
            task = record.get("ArrayTaskId")
            by_part[number, int(task) if task else None] = record
        jobs = [
            self._job(by_part.get(part), self._refused.get(part[0])) for part in parts_of(self.jobs)
        ]
        log = (self.cluster.folder / "log/slurmctld.log").read_text(errors="replace")
        version = self.release.version or (0, 0, 0)
        return {
            "configuration": self.configuration.name,
            "version": ".".join(map(str, version)),
            "zero": self._zero,
            "loads": [round(sample["load"], 2) for sample in self._samples],
            "latest_submission_s": round(max(self._late), 2),
            "columns": list(JOB_COLUMNS),
            "jobs": jobs,
            **loops_of(log, self._zero),
            "sdiag": self._ask("sdiag").splitlines(),
        }

    def _job(self, record: dict[str, str] | None, refused: str | None) -> list[Any]:
        if record is None:
            return [None] * (len(JOB_COLUMNS) - 1) + [refused or "lost"]

        def seconds(key: str) -> int | None:
            text = record.get(key, "Unknown")
            return int(text) - self._zero if re.fullmatch(r"\d+", text) else None

        return [
            int(record["JobId"]),
            seconds("SubmitTime"),
            seconds("EligibleTime"),
            seconds("StartTime"),
            seconds("EndTime"),
            record.get("Scheduler"),
            record.get("Partition"),
            record.get("NodeList"),
            record.get("JobState"),
        ]


JOB_COLUMNS = (
    *("slurm_id", "submit", "eligible", "start", "end", "scheduler", "partition", "nodes", "state"),
)
