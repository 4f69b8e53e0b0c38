"""Looks at the queue of a live run as the daemon takes them, recorded for forecasts to be made of.

``python -m tests.slurm.runs.recorded_looks FOLDER SEED [JOBS [LOAD]]`` as root, from the
repository's root, makes a run on a live 26.05 and writes what Slurm's commands answered at each
look into FOLDER/looks-SEED.jsonl.gz. JOBS (300) come to LOAD (1.2) times what the machine does: 300
in half an hour, 1,200 at load 1 in two hours. A run that is recorded is not made again.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.site_import.site_sources import live_slurm
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite

from tests.slurm.harness.slurm_releases import RELEASES, SlurmRelease
from tests.slurm.runs.job_generator import JobRecipe, jobs_of
from tests.slurm.runs.live_run import LiveRun
from tests.slurm.runs.run_configurations import TEN_BY_TEN, RunConfiguration, accounts_of
from tests.slurm.runs.run_job import RunJob
from tests.support.forecasts.forecast_trial import TakenLook

LOOK_S = 10
SITE_S = 120
_QOS = ("normal", "high", "scavenge")


def _of_somebody(job: RunJob, rng: random.Random) -> RunJob:
    qos = rng.choices((None, "high", "scavenge"), weights=(6, 1, 2))[0]
    job = replace(job, account=accounts_of(job.user), qos=qos)
    return replace(job, tasks=min(job.tasks, 16)) if qos == "high" else job


def configuration_of(seed: int, jobs: int = 300, load: float = 1.2) -> RunConfiguration:
    """Give five users of three accounts under fair share and limits."""
    site = SlurmSite(
        TEN_BY_TEN,
        parameters=SlurmParameters(bf_interval=15),
        priority=SlurmPriority(
            weight_age=1000,
            weight_fair_share=5000,
            weight_qos=1000,
            weight_job_size=200,
            max_age_s=3600,
            decay_half_life_s=1200,
            calc_period_s=60,
        ),
        qos={
            "normal": Qos("normal", limits=Limits(max_jobs=8)),
            "high": Qos("high", priority=100, limits=Limits(max_tres_per_user={"cpu": 24})),
            "scavenge": Qos("scavenge", limits=Limits(grp_jobs=4)),
        },
        associations=_associations(),
        enforced=frozenset({"associations", "limits", "qos"}),
    )
    recipe = JobRecipe(jobs=jobs, load=load, adorn=_of_somebody)
    return RunConfiguration(
        "forecasts",
        "Fair share, ages, QOS and limits: a queue that forecasts are made of.",
        site,
        lambda: jobs_of(recipe, site.machine.cpus, seed),
    )


def _associations() -> tuple[Association, ...]:
    shares = {"alice": 10, "bob": 30, "carol": 10, "dave": 10, "erin": 20}
    accounts = (
        Association("root", shares=1),
        Association("root", user="root", shares=1),
        Association("physics", parent="root", shares=50, limits=Limits(grp_tres={"cpu": 80})),
        Association("optics", parent="physics", shares=20),
        Association("biology", parent="root", shares=25, limits=Limits(grp_jobs=6)),
    )
    return accounts + tuple(
        Association(
            accounts_of(user),
            user=user,
            shares=share,
            qos=_QOS,
            default_qos="normal",
            default=True,
        )
        for user, share in shares.items()
    )


@dataclass
class _Recorder:
    """Runs commands, and keeps what they answer."""

    run: SubprocessRunner
    answers: list[list[Any]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        answer = self.run(argv, stdin)
        if isinstance(answer, bytes):
            answer = json.loads(answer)
        self.answers.append([list(argv), answer])
        return answer


class RecordedLooks(LiveRun):
    """A live run that is looked at every ten seconds; each look is written as it is taken."""

    def __init__(self, configuration: RunConfiguration, release: SlurmRelease, path: Path) -> None:
        super().__init__(configuration, release, path.with_suffix(".log"))
        self._sample_s = LOOK_S
        self._path = path
        self._site_at = 0.0

    def _sample(self) -> None:
        recorder = _Recorder(SubprocessRunner(str(self.cluster.commands), attempts=1))
        at, client = int(time.time()), SlurmCommands(recorder)
        client.configuration()
        client.queue()
        client.cluster()
        client.reservations()
        site = None
        if at - self._site_at >= SITE_S:
            looked, recorder.answers = recorder.answers, []
            live_slurm(recorder).read()
            site, recorder.answers = recorder.answers, looked
            self._site_at = at
        self._write({"at": at, "answers": recorder.answers, "site": site})
        self._samples.append({"load": 0.0})

    def _write(self, what: dict[str, Any]) -> None:
        with gzip.open(self._path, "at") as file:
            file.write(json.dumps(what) + "\n")

    def _outcome(self) -> dict[str, Any]:
        recorder = _Recorder(SubprocessRunner(str(self.cluster.commands), attempts=1))
        SlurmCommands(recorder).finished_since(Cursor())
        self._write({"at": int(time.time()), "finished": recorder.answers})
        return {}


class _Replies:
    """Answers as Slurm did."""

    def __init__(self, answers: list[list[Any]]) -> None:
        self._answers = {tuple(argv): answer for argv, answer in answers}

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        return self._answers[tuple(argv)]


def looks_of(path: Path) -> tuple[list[TakenLook], list[FinishedRecord]]:
    """Read a recorded run: its looks, and its jobs as accounting had them in the end."""
    looks: list[TakenLook] = []
    finished: list[FinishedRecord] = []
    site: SlurmSite | None = None
    for told in _lines(path):
        if "finished" in told:
            replies = {argv[0]: answer for argv, answer in told["finished"]}
            client = SlurmCommands(lambda argv, stdin=None, known=replies: known[argv[0]])
            finished = list(client.finished_since(Cursor())[0])
            continue
        if told["site"] is not None:
            read = live_slurm(_Replies(told["site"])).read()
            site = read if isinstance(read, SlurmSite) else None
        client = SlurmCommands(_Replies(told["answers"]))
        configuration = client.configuration()
        assert site is not None
        look = Look(
            told["at"],
            client.queue(),
            configuration.soft_limit,
            cluster=client.cluster(),
            reservations=tuple(client.reservations()),
        )
        looks.append(TakenLook(look, site))
    return looks, finished


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        for line in file:
            yield json.loads(line)


def main(words: list[str]) -> None:
    """Record a run."""
    folder, seed = Path(words[0]), int(words[1])
    path = folder / f"looks-{seed}.jsonl.gz"
    if path.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    release = next(each for each in RELEASES if not each.missing and each.name == "26.05")
    jobs = int(words[2]) if len(words) > 2 else 300
    load = float(words[3]) if len(words) > 3 else 1.2
    RecordedLooks(configuration_of(seed, jobs, load), release, new).run()
    new.replace(path)


if __name__ == "__main__":
    main(sys.argv[1:])
