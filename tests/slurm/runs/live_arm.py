"""One run of ``foretime study live-slurm``: a workload on a live Slurm, with Foretime or without.

``python -m tests.slurm.runs.live_arm WORKLOAD RELEASE ARM RESULT.csv`` as root, from the
repository's root, writes the result. ``--releases`` says of each release what is missing for it.
The run goes before other work on the machine, as Slurm's times are what it measures.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.store.store import Store
from foretime_studies.live_slurm.arms import (
    ACCOUNT,
    ARMS,
    LEAST_SCHEDULED_S,
    LOOK_S,
    SLURM_PARTITION,
    Arm,
    site_of,
)
from foretime_studies.live_slurm.runs import Circumstances, RunName
from foretime_studies.live_slurm.runs import LiveRun as StudyRun
from foretime_studies.live_slurm.workloads import LiveJob, LiveWorkload

from tests.slurm.harness.live_sidecar import LiveSidecar
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease
from tests.slurm.runs.live_run import LiveRun
from tests.slurm.runs.run_configurations import RunConfiguration
from tests.slurm.runs.run_job import RunJob

_DAYS_AGO_S = 3 * 86_400
_BEFORE_OTHERS = -5
_COUNTED = ("foretime_jobs_raised_total", "foretime_jobs_raised_missed_total")


def submitted(job: LiveJob) -> RunJob:
    """Give a job as it is submitted."""
    return RunJob(
        *(job.submit_s, job.user, job.time_limit_min, job.runtime_s, job.tasks), account=ACCOUNT
    )


class ArmSidecar(LiveSidecar):
    """The daemon of an arm, which has seen its users' jobs of before.

    Parameters
    ----------
    cluster
        As of `LiveSidecar`.
    arm
        What it does.
    before
        Jobs of before.
    """

    def __init__(self, cluster: SlurmCluster, arm: Arm, before: tuple[LiveJob, ...]) -> None:
        self._before = before
        settings: dict[str, dict[str, object]] = {
            "scheduler": {"poll_interval_s": LOOK_S, "longest_poll_interval_s": LOOK_S},
            "accuracy": {"scheme": "learned"},
            # Nobody asks for forecasts.
            "forecast": {"most_jobs": 1, "cpu_percent": 1},
            "estimators": {"shadow": False},
            "hook": {"mode": "enforce"},
            "queue_order": {"order": "start-now" if arm.way == "start-now" else "none"},
            "beside": arm.beside.model_dump(),
        }
        if arm.way == "soft-limit":
            settings["accuracy"]["minimum_scheduled_time_s"] = LEAST_SCHEDULED_S
        super().__init__(cluster, (), settings)

    def _learn(self, users: tuple[str, ...]) -> None:
        del users
        now, records = int(time.time()), []
        for number, job in enumerate(self._before):
            submit = now + job.submit_s
            request = JobRequest(
                *(f"{10_000_000 + number}", job.user, ACCOUNT, job.tasks),
                *(job.time_limit_min * 60, submit, SLURM_PARTITION),
            )
            end = submit + job.runtime_s
            done = FinishedJob(request, submit, end, job.runtime_s, Ending.COMPLETED)
            records.append(FinishedRecord(done, submit, "COMPLETED"))
        store = Store(self.folder / "store")
        store.add_finished(records, Cursor(now - 60))
        store.close()

    def counted(self) -> list[int]:
        """Give how often a job was raised, and how often it was missed."""
        command = ["curl", "-sS", "--unix-socket", f"{self.folder}/socket", "http://localhost"]
        told = self.cluster.checked([*command[:-1], f"{command[-1]}/metrics"])
        found = [re.search(rf"^{name} (\d+)", told, re.MULTILINE) for name in _COUNTED]
        return [int(each[1]) if each else 0 for each in found]


class ArmRun(LiveRun):
    """A live run beside which Foretime may be.

    Parameters
    ----------
    workload, arm
        What is run, and how.
    release, log_folder
        As of `LiveRun`.
    """

    def __init__(
        self, workload: LiveWorkload, arm: Arm, release: SlurmRelease, log_folder: Path
    ) -> None:
        version = release.version or (0, 0)
        site = site_of(arm, workload.users, f"{version[0]}.{version[1]:02}")
        jobs = [submitted(job) for job in workload.jobs]
        about = "The same jobs with and without Foretime."
        configuration = RunConfiguration(f"arm-{arm.name}", about, site, lambda: jobs)
        super().__init__(configuration, release, log_folder)
        self._workload, self._arm = workload, arm
        self._daemon: ArmSidecar | None = None

    def _submit_all(self) -> None:
        if self._arm.way == "soft-limit":
            self.cluster.install_hook()
        if self._arm.way != "none":
            self._daemon = ArmSidecar(self.cluster, self._arm, self._workload.before)
        self._zero = int(time.time())
        super()._submit_all()

    def _submit(self, number: int, job: RunJob) -> None:
        super()._submit(number, job)
        if number in self._refused:
            raise RuntimeError(f"job {number} was refused: {self._refused[number]}")

    def _outcome(self) -> dict[str, Any]:
        raised, missed = 0, 0
        if self._daemon is not None:
            raised, missed = self._daemon.counted()
            self._daemon.kill()
        return {**super()._outcome(), "raised": raised, "missed": missed}


def result_of(name: RunName, jobs: list[RunJob], outcome: Mapping[str, Any]) -> StudyRun:
    """Give what is kept of a run; every job must have completed."""
    at = {column: place for place, column in enumerate(outcome["columns"])}
    rows = outcome["jobs"]
    lost = [number for number, row in enumerate(rows) if row[at["state"]] != "COMPLETED"]
    if lost:
        raise RuntimeError(f"{name}: jobs {lost[:10]} did not complete: {rows[lost[0]]}")
    submit, start, end = (
        np.array([row[at[column]] for row in rows], dtype=np.int64)
        for column in ("submit", "start", "end")
    )
    runtimes = np.array([job.runtime_s for job in jobs])
    circumstances = Circumstances(
        version=f"{name.release}.{outcome['version'].rsplit('.', 1)[1]}",
        latest_s=outcome["latest_submission_s"],
        longest_over_s=int((end - start - runtimes).max()),
        load=round(float(np.mean(outcome["loads"] or [0])), 1),
        raised=outcome.get("raised", 0),
        missed=outcome.get("missed", 0),
    )
    return StudyRun(name, submit, start, end, circumstances)


def main(words: list[str]) -> None:
    """Make one run, or say what is missing."""
    if words == ["--releases"]:
        print(json.dumps({release.name: release.missing for release in RELEASES}))
        return
    workload, release_name, arm = LiveWorkload.named(words[0]), words[1], ARMS[words[2]]
    path = Path(words[3])
    release = next(each for each in RELEASES if not each.missing and each.name == release_name)
    os.nice(_BEFORE_OTHERS)
    with TemporaryDirectory(prefix="foretime-live-") as temporary:
        # slurmctld's log is some MB, and is kept if it is asked for.
        logs = Path(os.environ.get("FORETIME_RUN_LOGS", temporary)) / path.parent.name / path.stem
        run = ArmRun(workload, arm, release, logs)
        outcome, _ = run.run()
    result = result_of(RunName.of(path), run.jobs, outcome)
    result.write(path)
    print(f"mean wait {result.wait.mean():.1f} s, longest {result.wait.max()} s")


if __name__ == "__main__":
    main(sys.argv[1:])
