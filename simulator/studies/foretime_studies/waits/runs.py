"""Forecasts of a log's waits by every method: at submissions, at later looks, each day at noon.

Runs are kept in a folder, one file each, and not made again. Of a run of other code whose answers
would still be the same, only what is made of them is made anew.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array, Selection
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sidecar.forecasts.job_ends import RUNTIME_LEVELS
from foretime_sim.engine.estimated_run import estimator_of
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.arrival_model import ResampledArrivals
from foretime_sim.waits.best_of import BestOf, ChoiceSettings
from foretime_sim.waits.calibration.calibrated_forecaster import CalibratedForecaster
from foretime_sim.waits.calibration.runtime_levels import RuntimeLevels
from foretime_sim.waits.downey_forecaster import SMALL_NEEDS, DowneyForecaster
from foretime_sim.waits.forecast_records import ForecastRecords
from foretime_sim.waits.forecaster import WaitForecaster
from foretime_sim.waits.forward_forecaster import ForwardForecaster
from foretime_sim.waits.learned_forecaster import LearnedForecaster
from foretime_sim.waits.plan_forecaster import PlanForecaster
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.scores.moments import LOOKS_S, Asking, ask_forecasters, sampled_evenly
from foretime_sim.waits.scores.wait_sources import LoggedWaits, SimulatedWaits, with_known_waits
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.code_digest import code_digest
from foretime_studies.frame.progress import Progress
from foretime_studies.waits.answers import (
    KEPT,
    AskedOnce,
    KeptAnswers,
    NotesRuntimes,
    SameAnswer,
)

PLAN, PERFECT, QBETS, LEARNED = "plan-req", "perfect", "qbets", "learned"
FORWARD, OURS = "forward", "foretime"
METHODS = (PLAN, "plan-sched", PERFECT, *SMALL_NEEDS, QBETS, LEARNED, FORWARD, OURS)
"""In the order of tables; `OURS` is the best of `CHOSEN_FROM` of late, calibrated."""
CHOSEN_FROM = (FORWARD, QBETS, LEARNED)
ORACLES = frozenset([PERFECT])
SIMULATED, LOGGED = "simulated", "logged"
CHOICE = {SIMULATED: ChoiceSettings(fewest_days=5, sureness=2), LOGGED: ChoiceSettings()}
"""As the daemon chooses where the scheduler is known, and where a policy is assumed of it.

Of ten outcomes on, not of a hundred: in a study a share of the jobs is asked about.
"""
LOGGED_NOW_S = 60
"""Within a minute."""
MADE_OF_ANSWERS = frozenset(
    [
        "best_of",
        "calibration",
        "censored_quantiles",
        "excess_losses",
        "forecast_scale",
        "remembered_forecasts",
        "runtime_levels",
    ]
)
"""Modules that make `OURS` of what the others say, who know nothing of them."""
DAILY_S = 86_400
FIRST_S = 14 * DAY_S
"""The first two weeks of a log are scored apart."""
WARM_UP_SHARE = 0.1
"""First part of the jobs, which forecasters learn from and are not scored on."""


_FCFS_EASY = Policy()
_ROUNDED = ("wait_s", "starts_now")
_EXACT = ("job", "made_at", "after_s", "waited_s", "seconds")
"""Columns of `ForecastRecords` as they are kept."""
_OF_ENDS = ("runtime_s", "limit_s", "calibrated_s", "plain_s")
"""Of `JobRuntimes`."""


@dataclass(frozen=True, slots=True)
class WaitsSettings:
    """How a log is gone through."""

    submissions: int = 4_000  # jobs asked about, at most
    first_weeks: int = 500  # jobs of the log's first two weeks asked about, at most
    samples: int = 200  # forward runs at each moment
    seed: int = 1  # of the choice of jobs, and of the samples
    # What the scheduler does, or is taken to do where waits are as logged.
    policy: Policy = _FCFS_EASY

    def __post_init__(self) -> None:
        for name, least in (("submissions", 1), ("samples", 1), ("first_weeks", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}: give {least} or more")

    def key(self, workload: Workload, kind: str) -> dict[str, Any]:
        """Give what a kept run must agree in to be taken again."""
        return {
            "log": workload.name,
            "jobs": len(workload),
            "processors": workload.machine_processors,
            "kind": kind,
            "methods": list(METHODS),
            "code": code_digest(),
            "answers": code_digest(MADE_OF_ANSWERS),
            **self._values(),
        }

    def made(self, key: dict[str, Any]) -> bool:
        """Say whether a kept run's key is of these settings, whatever code went through it."""
        return all(key.get(name) == value for name, value in self._values().items())

    def _values(self) -> dict[str, Any]:
        return {**asdict(self), "policy": repr(self.policy)}


@dataclass(frozen=True, slots=True)
class JobRuntimes:
    """How long the job of each record ran, and what was forecast of that when it was asked about.

    Attributes
    ----------
    runtime_s, limit_s
        What came of it, and the time limit, shape (records,).
    calibrated_s, plain_s
        Forecast at `foretime_sidecar.forecasts.job_ends.RUNTIME_LEVELS`, shape (records, 20); and
        the same before calibration.
    """

    runtime_s: Int64Array
    limit_s: Int64Array
    calibrated_s: Float64Array
    plain_s: Float64Array

    @property
    def median_s(self) -> Float64Array:
        """Of each record's runtime, as forecast."""
        middle = len(RUNTIME_LEVELS) // 2
        median: Float64Array = self.calibrated_s[:, middle - 1 : middle + 1].mean(axis=1)
        return median

    def take(self, records: Selection) -> JobRuntimes:
        """Give those of some of the records."""
        return JobRuntimes(
            self.runtime_s[records],
            self.limit_s[records],
            self.calibrated_s[records],
            self.plain_s[records],
        )


@dataclass(frozen=True, slots=True)
class WaitsRun:
    """A log gone through: forecasts and what came of them, and what scoring needs of the log."""

    # name, kind: of the log; `SIMULATED` or `LOGGED`
    name: str
    kind: str
    jobs: int  # in the whole log
    records: ForecastRecords  # of the jobs asked about, warm-up included
    # submit_time, queues: of each record's job
    submit_time: Int64Array
    queues: Labels | None
    scored_from: int  # seconds: jobs submitted from then on are scored
    # Whether the job is one of those drawn evenly along the log; else it is of the first two weeks
    # only. `None`: all are.
    evenly: BoolArray | None = None
    first_submit: int = 0  # seconds: of the log
    runtimes: JobRuntimes | None = None  # `None`: nobody was asked

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.name if self.kind == SIMULATED else f"{self.name}, {self.kind}"

    @property
    def now_within_s(self) -> int:
        """A start within so many seconds is one at once."""
        return now_within_s(self.kind)


def answerers(
    workload: Workload, settings: WaitsSettings, now_within_s: int
) -> dict[str, WaitForecaster]:
    """Make a fresh forecaster of each of `METHODS` but `OURS`, which is made of their answers."""
    runtimes = RuntimeHistories()
    arrivals = ResampledArrivals(runtimes)
    forward = ForwardForecaster(
        FORWARD, runtimes, arrivals, samples=settings.samples, seed=settings.seed
    )
    return {
        PLAN: PlanForecaster(PLAN, estimator_of("requested", workload)),
        "plan-sched": PlanForecaster("plan-sched", estimator_of("similar", workload)),
        PERFECT: PlanForecaster(PERFECT, estimator_of("actual", workload)),
        **{name: DowneyForecaster(name) for name in SMALL_NEEDS},
        QBETS: Qbets(now_within_s),
        LEARNED: LearnedForecaster(seed=settings.seed),
        FORWARD: forward,
    }


def asked_about(workload: Workload, settings: WaitsSettings) -> tuple[BoolArray, BoolArray]:
    """Choose the jobs to ask about: evenly along the log, and more of its first two weeks.

    Both of shape (jobs,); the first ones are among the second.
    """
    evenly = sampled_evenly(workload, settings.submissions, settings.seed)
    jobs = evenly.copy()
    first = int(np.searchsorted(workload.submit_time, workload.submit_time[0] + FIRST_S))
    jobs[:first] |= sampled_evenly(workload.head(first), settings.first_weeks, settings.seed)
    return evenly, jobs


def run_log(
    workload: Workload,  # all of the log; with `LOGGED` jobs without a known wait are left out
    kind: str,  # `SIMULATED`: the engine gives the waits; `LOGGED`: they are as logged
    settings: WaitsSettings,
    progress: Progress | None = None,
    # The same log gone through with the same settings: what everybody said is taken from there, and
    # only `OURS` is made anew.
    answered: WaitsRun | None = None,
) -> WaitsRun:
    """Go through a log, and ask everybody."""
    source: SimulatedWaits | LoggedWaits
    if kind == LOGGED:
        workload, _ = with_known_waits(workload)
        source = LoggedWaits(workload, settings.policy)
    else:
        source = SimulatedWaits(workload, settings.policy)
    now_s = now_within_s(kind)
    if answered is None:
        said = answerers(workload, settings, now_s)
    else:
        said = {name: KeptAnswers(answered.records, name) for name in METHODS if name != OURS}
    once = {name: AskedOnce(said[name]) for name in CHOSEN_FROM}
    best = BestOf([SameAnswer(once[name]) for name in CHOSEN_FROM], "best", CHOICE[kind])
    ours = NotesRuntimes(CalibratedForecaster(best, OURS, now_within_s=now_s), RuntimeLevels())
    evenly, jobs = asked_about(workload, settings)
    asking = Asking(jobs, LOOKS_S, DAILY_S)
    records = ask_forecasters(source, [*(said | once).values(), ours], asking, progress)
    if answered is not None:
        seconds = np.append(answered.records.seconds[:-1], records.seconds[-1:])
        records = replace(records, seconds=seconds)
    queues = workload.queues
    runtimes = JobRuntimes(
        workload.actual_runtime[records.job],
        workload.requested_time[records.job],
        *(np.concatenate(noted) for noted in (ours.calibrated_s, ours.plain_s)),
    )
    return WaitsRun(
        workload.name,
        kind,
        len(workload),
        records,
        workload.submit_time[records.job],
        None if queues is None else queues.take(records.job),
        int(workload.submit_time[int(WARM_UP_SHARE * len(workload))]),
        evenly[records.job],
        int(workload.submit_time[0]),
        runtimes,
    )


def now_within_s(kind: str) -> int:
    """Give within how many seconds a start is one at once: a real scheduler looks now and then."""
    return 0 if kind == SIMULATED else LOGGED_NOW_S


def kept_run(folder: Path, key: dict[str, Any]) -> WaitsRun | None:
    """Give the run that is kept in a folder, if one with this key is."""
    path = _path(folder, key)
    return _read(path, key) if path.exists() else None


def kept_answers(folder: Path, key: dict[str, Any]) -> WaitsRun | None:
    """Give a kept run whose answers would be given again: only what is made of them has changed."""
    path = _path(folder, key)
    if not path.exists():
        return None
    kept = _key(path)
    return _read(path, kept) if kept | {"code": key["code"]} == key else None


def kept_runs(folder: Path, settings: WaitsSettings) -> tuple[list[WaitsRun], list[str]]:
    """Give every run kept in a folder that was made with these settings by this code.

    And the names of those that other code went through, which are left out.
    """
    found, stale = [], []
    for path in sorted(folder.glob("*.npz")):
        key = _key(path)
        if settings.made(key):
            run = _read(path, key)
            if run is not None and key.get("code") == code_digest():
                found.append(run)
            elif run is not None:
                stale.append(run.title)
    return found, stale


def keep_run(folder: Path, key: dict[str, Any], run: WaitsRun) -> None:
    """Write a run; InputError if that can't be done."""
    records = run.records
    columns: dict[str, Any] = {
        "key": json.dumps(key, sort_keys=True),
        "methods": np.array(records.methods),
        "submit_time": run.submit_time,
        "scored_from": run.scored_from,
        "first_submit": run.first_submit,
        **{name: getattr(records, name).astype(KEPT) for name in _ROUNDED},
        **{name: getattr(records, name) for name in _EXACT},
    }
    if run.queues is not None:
        columns |= {"queue": run.queues.codes, "queue_names": np.array(run.queues.names)}
    if run.evenly is not None:
        columns["evenly"] = run.evenly
    if run.runtimes is not None:
        columns |= {name: getattr(run.runtimes, name) for name in _OF_ENDS}
    path = _path(folder, key)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            np.savez_compressed(file, **columns)
        unfinished.replace(path)
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror}") from error


def _path(folder: Path, key: dict[str, Any]) -> Path:
    return folder / f"{key['log']}-{key['kind']}.npz"


def _key(path: Path) -> dict[str, Any]:
    try:
        with np.load(path) as columns:
            key: dict[str, Any] = json.loads(str(columns["key"]))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is no kept run: remove it") from error
    return key


def _read(path: Path, key: dict[str, Any]) -> WaitsRun | None:
    if _key(path) != key:
        return None
    with np.load(path) as columns:
        records = ForecastRecords(
            methods=tuple(columns["methods"].tolist()),
            **{name: columns[name].astype(np.float64) for name in _ROUNDED},
            **{name: columns[name] for name in _EXACT},
        )
        queues = None
        if "queue" in columns:
            queues = Labels(columns["queue"], tuple(columns["queue_names"].tolist()))
        runtimes = None
        if "plain_s" in columns:
            runtimes = JobRuntimes(*(columns[name] for name in _OF_ENDS))
        return WaitsRun(
            key["log"],
            key["kind"],
            key["jobs"],
            records,
            columns["submit_time"],
            queues,
            int(columns["scored_from"]),
            columns.get("evenly"),
            int(columns["first_submit"]),
            runtimes,
        )
