"""One arm of a live run: the same jobs on an OpenPBS by itself, and beside what helps it.

``python -m tests.pbs.live_arms FOLDER SEED ARM [JOBS [BEGIN]]`` as root, from the repository's
root, writes FOLDER/SEED-ARM-NUMBER.json, NUMBER counting the runs. ARM is one of `ARMS`, with
``-off`` behind it where strict_ordering is off, as OpenPBS has it by default. Arms run side by
side, each on a server of its own, and the first job comes at BEGIN (epoch seconds). What an arm
knows before are 500 other jobs of the same users.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from foretime_estimators.estimators.recent_jobs import RecentJobs
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.pbs.start_rank import FORMULA_DIRECTIVE, RESOURCE_DIRECTIVE
from foretime_sidecar.store.store import Store

from tests.pbs.installed_foretime import InstalledForetime, daemon_on
from tests.pbs.pbs_server import PbsServer
from tests.slurm.runs.job_generator import JobRecipe, jobs_of
from tests.slurm.runs.run_job import RunJob

CPUS = 100
LOOK_S, LOAD = 5, 1.3
ARMS = ("plain", "soft", "cesnet", "start")
HISTORY = 500
MARGIN_S = 15
"""What CESNET's rule adds: their quarter of an hour, as jobs here are of minutes, not of hours."""

_SETTINGS = """
[accuracy]
scheme = "learned"
minimum_scheduled_time_s = 10
[queue_order]
order = "{order}"
"""
_SOFT_OF_NAME = """
import pbs
job = pbs.event().job
if str(job.Job_Name)[1:] != "0":
    job.Resource_List["soft_walltime"] = pbs.duration(int(str(job.Job_Name)[1:]))
"""


def recipe_of(jobs: int) -> JobRecipe:
    """Give how jobs are drawn: of minutes, and asking for up to ten times as much."""
    return JobRecipe(
        jobs=jobs, load=LOAD, median_runtime_s=75.0, longest_runtime_s=600, longest_limit_min=60
    )


def history_of(jobs: int, seed: int) -> list[RunJob]:
    """Give other jobs of the same users, who are drawn with the seed, too."""
    return jobs_of(recipe_of(jobs + HISTORY), CPUS, seed)[jobs:]


def finished_of(jobs: list[RunJob], first: int) -> list[FinishedJob]:
    """Give jobs of before, the first submitted at a time (epoch seconds)."""
    found = []
    for number, job in enumerate(jobs):
        at = first + job.submit_s
        name, limit_s = f"{9_000_000 + number}.pbs01", 60 * job.time_limit_min
        request = JobRequest(name, job.user, None, job.tasks, limit_s, at, "workq")
        found.append(FinishedJob(request, at, at + job.runtime_s, job.runtime_s, Ending.COMPLETED))
    return found


def soft_by_cesnet(known: RecentJobs, user: str, walltime_s: int) -> int:
    """Give CESNET's soft_walltime by its rule; 0: none."""
    recent = known.recent(user)
    if not recent:
        return 0
    return min(walltime_s, round(walltime_s * max(r / t for r, t in recent)) + MARGIN_S)


class ArmRun:
    """A live run.

    Parameters
    ----------
    arm
        What is done, and whether strict_ordering is off.
    jobs, history
        What is submitted, and what is known before.
    log
        Where the daemon's log goes.
    begin
        When the first job comes at the earliest, epoch seconds.
    """

    def __init__(
        self, arm: str, jobs: list[RunJob], history: list[RunJob], log: Path, begin: int
    ) -> None:
        self._begin = begin
        self._arm, _, off = arm.partition("-")
        assert self._arm in ARMS, arm
        self._strict = off != "off"
        self._jobs = jobs
        self._log = log
        self._before = finished_of(history, int(time.time()) - 3 * 86_400)
        self._known = RecentJobs(length=15)
        for job in self._before:
            self._known.learn_one(job)
        self._ids: list[str] = []
        self._learned: set[str] = set()

    def run(self) -> dict[str, Any]:
        """Run all jobs; gives what became of them."""
        with ExitStack() as stack:
            server = stack.enter_context(PbsServer(ncpus=CPUS))
            if self._strict:
                server.set_sched_config(strict_ordering="True ALL")
            if self._arm == "cesnet":
                self._add_hook(server)
            elif self._arm in ("soft", "start"):
                self._begin_daemon(server, stack)
            begin = max(int(time.time()) + 2, self._begin)
            for job in self._jobs:
                while (wait := begin + job.submit_s - time.time()) > 0:
                    time.sleep(min(wait, 1.0))
                self._submit(server, job)
            server.wait_for(lambda: self._ended(server) == len(self._jobs), "all to end", 7200)
            return {
                "arm": self._arm,
                "strict": self._strict,
                "begin": begin,
                "columns": ["user", "cpus", "walltime_s", "runtime_s", "submit", "start", "end"],
                "jobs": self._rows(server),
            }

    def _add_hook(self, server: PbsServer) -> None:
        hook = server.folder / "soft.py"
        hook.write_text(_SOFT_OF_NAME)
        server.qmgr(
            "create hook soft event = queuejob",
            f"import hook soft application/x-python default {hook}",
        )

    def _begin_daemon(self, server: PbsServer, stack: ExitStack) -> None:
        """Install Foretime, and wait until it works."""
        foretime = InstalledForetime(server)
        text = foretime.settings_file.read_text()
        text = text.replace("poll_interval_s = 1\n", f"poll_interval_s = {LOOK_S}\n")
        order = "none"
        if self._arm == "start":
            order = "start-now"
            server.qmgr(RESOURCE_DIRECTIVE, FORMULA_DIRECTIVE)
        foretime.settings_file.write_text(text + _SETTINGS.format(order=order))
        foretime.checked("install", "pbs", "--yes")
        records = [FinishedRecord(job, job.request.submit_time, "0") for job in self._before]
        store = Store(str(foretime.folder / "store"))
        store.add_finished(records, Cursor(int(time.time()) - 60), "pbs")
        store.close()
        stack.callback(daemon_on(server, self._log, "root").terminate)
        server.wait_for(foretime.table.exists, "the daemon's table", 1200)

    def _submit(self, server: PbsServer, job: RunJob) -> None:
        walltime_s = 60 * job.time_limit_min
        options = [f"-lselect={job.tasks}:ncpus=1", f"-lwalltime={walltime_s}"]
        if self._arm == "cesnet":
            self._learn(server)
            soft = soft_by_cesnet(self._known, job.user, walltime_s)
            options.append(f"-Ns{soft if soft < walltime_s else 0}")
        script = f"exec sleep {job.runtime_s}"
        self._ids.append(server.qsub(*options, user=job.user, script=script))

    def _learn(self, server: PbsServer) -> None:
        """Learn who has ended since."""
        for name, found in self._accounted(server, "E").items():
            if name not in self._learned:
                self._learned.add(name)
                job = self._jobs[self._ids.index(name)]
                start, end = _number(found, "start"), _number(found, "end")
                limit_s = 60 * job.time_limit_min
                request = JobRequest(name, job.user, None, job.tasks, limit_s, start, "workq")
                self._known.learn_one(
                    FinishedJob(request, start, end, end - start, Ending.COMPLETED)
                )

    def _ended(self, server: PbsServer) -> int:
        time.sleep(1)
        return len(self._accounted(server, "E"))

    @staticmethod
    def _accounted(server: PbsServer, kind: str) -> dict[str, str]:
        folder = server.home / "server_priv/accounting"
        text = "".join(path.read_text() for path in sorted(folder.iterdir()))
        return dict(re.findall(rf"(?m)^[^;]*;{kind};([^;]*);(.*)$", text))

    def _rows(self, server: PbsServer) -> list[list[Any]]:
        ended = self._accounted(server, "E")
        return [
            [
                *(job.user, job.tasks, 60 * job.time_limit_min, job.runtime_s),
                *(_number(ended[name], word) for word in ("qtime", "start", "end")),
            ]
            for name, job in zip(self._ids, self._jobs, strict=True)
        ]


def _number(record: str, word: str) -> int:
    found = re.search(rf"(?:^| ){word}=(\d+)", record)
    assert found, record
    return int(found[1])


def main(words: list[str]) -> None:
    """Make one run."""
    folder, seed, arm = Path(words[0]), int(words[1]), words[2]
    count, begin = int((*words, "200")[3]), int(words[4]) if len(words) > 4 else 0
    folder.mkdir(parents=True, exist_ok=True)
    jobs, history = jobs_of(recipe_of(count), CPUS, seed), history_of(count, seed)
    log = folder / f"{seed}-{arm}-of-{os.getpid()}.log"
    outcome = ArmRun(arm, jobs, history, log, begin).run()
    # Another run of this arm may have been made beside this one.
    number = len(list(folder.glob(f"{seed}-{arm}-[0-9]*.json"))) + 1
    path = folder / f"{seed}-{arm}-{number}.json"
    path.write_text(json.dumps(outcome), encoding="utf-8")
    waits = [row[5] - row[4] for row in outcome["jobs"]]
    print(path.name, f"mean wait {sum(waits) / len(waits):.1f} s, longest {max(waits)} s")


if __name__ == "__main__":
    main(sys.argv[1:])
