"""One arm of a live run: the same jobs on a plain Slurm, and on one whose jobs Foretime starts.

``python -m tests.slurm.runs.live_arms FOLDER SEED RELEASE ARM [JOBS [LOAD]]`` as root, from the
repository's root, writes FOLDER/SEED-RELEASE-ARM-NUMBER.json, NUMBER counting the runs. ARM is
``plain`` (Slurm's defaults), ``plain-one`` (bf_job_part_count_reserve=1), ``start`` or
``start-one`` (the same, with the daemon). Arms run side by side, each on a cluster of its own. What
the daemon knows at the beginning are 500 other jobs of the same users.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.store.store import Store
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite

from tests.slurm.harness.live_sidecar import LiveSidecar
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_conf import USERS
from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease
from tests.slurm.runs.job_generator import JobRecipe, jobs_of
from tests.slurm.runs.live_run import LiveRun
from tests.slurm.runs.run_configurations import TEN_BY_TEN, RunConfiguration
from tests.slurm.runs.run_job import RunJob

LOOK_S = 10
ARMS = ("plain", "plain-one", "start", "start-one")
_HISTORY = 500
_ACCOUNT = "science"
_TEN_MINUTES = 600


def recipe_of(jobs: int, load: float) -> JobRecipe:
    """Give how jobs are drawn: of minutes, and asking for up to ten times as much."""
    return JobRecipe(
        jobs=jobs,
        load=load,
        median_runtime_s=75.0,
        longest_runtime_s=_TEN_MINUTES,
        longest_limit_min=60,
        adorn=lambda job, _: replace(job, account=_ACCOUNT),
    )


def site_of_arm(arm: str) -> SlurmSite:
    """Give a site with a queue in the order of submissions, as ages have it."""
    one = 1 if arm.endswith("-one") else 0
    return SlurmSite(
        TEN_BY_TEN,
        parameters=SlurmParameters(bf_job_part_count_reserve=one),
        priority=SlurmPriority(weight_age=1000, max_age_s=86_400, calc_period_s=60),
        associations=(
            Association("root", shares=1),
            Association("root", user="root", shares=1),
            Association(_ACCOUNT, parent="root", shares=1),
            *(Association(_ACCOUNT, user=user, shares=1, default=True) for user in USERS),
        ),
        enforced=frozenset({"associations"}),
    )


def configuration_of(arm: str, seed: int, recipe: JobRecipe) -> RunConfiguration:
    """Give what is run."""
    return RunConfiguration(
        f"arm-{arm}",
        "The same jobs with and without Foretime.",
        site_of_arm(arm),
        lambda: jobs_of(recipe, TEN_BY_TEN.cpus, seed),
    )


def history_of(recipe: JobRecipe, seed: int) -> list[RunJob]:
    """Give other jobs of the same users, who are drawn with the seed, too."""
    drawn = jobs_of(replace(recipe, jobs=recipe.jobs + _HISTORY), TEN_BY_TEN.cpus, seed)
    return drawn[recipe.jobs :]


class StartingSidecar(LiveSidecar):
    """A daemon that starts jobs at once, and has seen its users' jobs of before.

    Parameters
    ----------
    cluster
        As of `LiveSidecar`.
    history
        Jobs of before, in the order of their submissions.
    more
        More settings.
    """

    def __init__(
        self,
        cluster: SlurmCluster,
        history: list[RunJob],
        more: Mapping[str, dict[str, object]] | None = None,
    ) -> None:
        self._history = history
        settings: dict[str, dict[str, object]] = {
            "scheduler": {"poll_interval_s": LOOK_S, "longest_poll_interval_s": LOOK_S},
            "accuracy": {"scheme": "learned"},
            "hook": {"mode": "observe"},
            "queue_order": {"order": "start-now"},
        }
        for section, values in (more or {}).items():
            settings[section] = {**settings.get(section, {}), **values}
        super().__init__(cluster, (), settings)

    def _learn(self, users: tuple[str, ...]) -> None:
        del users
        first = int(time.time()) - 3 * 86_400
        records = []
        for number, job in enumerate(self._history):
            submitted = first + job.submit_s
            request = JobRequest(
                f"{10_000_000 + number}", job.user, job.account, job.tasks,
                job.time_limit_min * 60, submitted, "main",
            )  # fmt: skip
            end = submitted + job.runtime_s
            done = FinishedJob(request, submitted, end, job.runtime_s, Ending.COMPLETED)
            records.append(FinishedRecord(done, submitted, "COMPLETED"))
        store = Store(self.folder / "store")
        store.add_finished(records, Cursor(int(time.time()) - 60))
        store.close()


class ArmRun(LiveRun):
    """A live run beside which the daemon may start jobs.

    Parameters
    ----------
    arm
        One of `ARMS`.
    seed, recipe
        Which jobs.
    release, log_folder
        As of `LiveRun`.
    """

    def __init__(
        self, arm: str, seed: int, recipe: JobRecipe, release: SlurmRelease, log_folder: Path
    ) -> None:
        super().__init__(configuration_of(arm, seed, recipe), release, log_folder)
        self._history = history_of(recipe, seed)
        self._starts = arm.startswith("start")
        self._daemon: StartingSidecar | None = None
        self._said = ""

    def _submit_all(self) -> None:
        if self._starts:
            self._daemon = StartingSidecar(self.cluster, self._history)
        self._zero = int(time.time())
        super()._submit_all()

    def _outcome(self) -> dict[str, Any]:
        if self._daemon is not None:
            log = self._daemon.log.read_text(errors="replace")
            self._daemon.kill()
            return {**super()._outcome(), "daemon": log.splitlines()}
        return super()._outcome()


def main(words: list[str]) -> None:
    """Make one run."""
    folder, seed, name, arm = Path(words[0]), int(words[1]), words[2], words[3]
    recipe = recipe_of(
        int(words[4]) if len(words) > 4 else 400, float(words[5]) if len(words) > 5 else 1.3
    )
    folder.mkdir(parents=True, exist_ok=True)
    release = next(each for each in RELEASES if not each.missing and each.name == name)
    number = len(list(folder.glob(f"{seed}-{name}-{arm}-*.json"))) + 1
    path = folder / f"{seed}-{name}-{arm}-{number}.json"
    outcome, _ = ArmRun(arm, seed, recipe, release, path.with_suffix(".log")).run()
    path.write_text(json.dumps(outcome), encoding="utf-8")
    waits = [job[3] - job[1] for job in outcome["jobs"] if job[3] is not None]
    print(path.name, f"mean wait {sum(waits) / len(waits):.1f} s, longest {max(waits)} s")


if __name__ == "__main__":
    main(sys.argv[1:])
