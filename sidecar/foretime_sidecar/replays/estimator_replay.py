"""The site's own last weeks, planned by each estimator in turn: what its predictions do to waits.

Each is given the place that the hook has: t_sched is rounded and bounded as the table's settings
say, and used in the roles, and corrected, as the mechanism has it. It learns the weeks before
first, and then what ends in the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foretime_estimators.arrays import Float64Array
from foretime_estimators.estimators.estimator import RuntimeEstimator, StartObserver
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.estimated_run import EstimatedSchedule, simulate_with_estimator
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.scheduler_defaults import default_policy
from foretime_sim.policies.site_machine import on_machine_of
from foretime_sim.scores.gains import resampled_figures
from foretime_sim.scores.intervals import Interval, Weeks, gains, percentile_interval
from foretime_sim.scores.metrics import ScoreSettings, job_metrics, score, scored_span
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.replays.stored_workload import StoredWorkload
from foretime_sidecar.settings.settings import AccuracySection, Settings

BASELINE = "requested"
METRICS = ("bounded_slowdown_mean", "wait_mean_s", "wait_p99_s", "wait_max_s")
WARM_UP_S = 7 * 86_400
"""Not scored: the machine is empty when the run begins."""
_SEED = 1


@dataclass(frozen=True, slots=True)
class Replayed:
    """One estimator's run.

    Attributes
    ----------
    name
        As in the registry.
    figures
        `METRICS` of the scored jobs.
    gains
        Of each, (of the requested times - its own) / of the requested times.
    intervals
        95% of the gains, a bootstrap over weeks; ``None`` with too few.
    outlived
        Share of the scored jobs that ran longer than t_sched.
    failure
        Why there are no figures; "" if there are.
    """

    name: str
    figures: Mapping[str, float]
    gains: Mapping[str, float]
    intervals: Mapping[str, Interval | None]
    outlived: float
    failure: str = ""


def replay_policy(settings: Settings, workload: Workload) -> Policy:
    """Give the settings' scheduler with its defaults, on the workload's processors."""
    mechanism = Mechanism(settings.hook.mechanism)
    scheduler: Literal["slurm", "pbs"]
    scheduler = "pbs" if mechanism is Mechanism.PBS_SOFT_WALLTIME else "slurm"
    return mechanism_policy(mechanism, default_policy(scheduler, workload))


def replay_estimators(
    stored: StoredWorkload,
    names: Sequence[str],
    settings: Settings,
    progress: Callable[[int], None] | None = None,
) -> list[Replayed]:
    """Run all of them and the requested times, and give them least bounded slowdown first.

    Parameters
    ----------
    stored
        The site's jobs.
    names
        As in the registry.
    settings
        The daemon's.
    progress
        Called with the jobs submitted so far, of ``(len(names) + 1) * len(stored.workload)``.

    Raises
    ------
    InputError
        If the workload can't be simulated, or there is no estimator of a name.
    """
    policy = replay_policy(settings, stored.workload)
    workload = on_machine_of(policy, stored.workload)
    last = int(workload.submit_time[-1] - workload.submit_time[0])
    span = scored_span(workload, warm_up_s=WARM_UP_S if last > 2 * WARM_UP_S else 0)
    scored = span.select(workload)
    jobs, scores = workload.take(scored), ScoreSettings()
    weeks = Weeks.of(jobs.submit_time, _SEED)
    model = settings.accuracy.to_model()

    def resampled(run: EstimatedSchedule) -> dict[str, Float64Array]:
        if weeks is None:
            return {}
        values = job_metrics(workload, run, scores)
        of_scored = {name: column[scored] for name, column in values.items()}
        return resampled_figures(weeks, jobs, of_scored, scores)

    found: list[Replayed] = []
    baseline: tuple[dict[str, float], dict[str, Float64Array]] | None = None
    chosen = [BASELINE, *(name for name in dict.fromkeys(names) if name != BASELINE)]
    estimators = [parse_estimator(name, settings=model) for name in chosen]
    for place, (name, estimator) in enumerate(zip(chosen, estimators, strict=True)):
        try:
            run = simulate_with_estimator(
                workload,
                policy,
                _in_the_hook(estimator, settings.accuracy) if place else estimator,
                history=stored.history,
                progress=_from(progress, place * len(workload)),
            )
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - the others can still be compared
            found.append(Replayed(name, {}, {}, {}, 0.0, f"{type(error).__name__}: {error}"))
            continue
        all_figures = score(workload, run, scores, span).to_dict()
        figures = {key: float(all_figures[key] or 0) for key in METRICS}
        drawn = resampled(run)
        if baseline is None:
            baseline = figures, drawn
        gained = gains(baseline[1], drawn)
        found.append(
            Replayed(
                name,
                figures,
                {key: _gain(baseline[0][key], figures[key]) for key in METRICS},
                {key: _interval(gained.get(key)) for key in METRICS},
                float(run.outlived[scored].mean()),
            )
        )
    return sorted(found, key=lambda one: (bool(one.failure), one.figures.get(METRICS[0], 0)))


def _gain(baseline: float, figure: float) -> float:
    return (baseline - figure) / baseline if baseline else 0.0


def _interval(drawn: Float64Array | None) -> Interval | None:
    return None if drawn is None else percentile_interval(drawn)


def _from(progress: Callable[[int], None] | None, before: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda jobs: progress(before + jobs)


def _in_the_hook(estimator: RuntimeEstimator, settings: AccuracySection) -> RuntimeEstimator:
    if isinstance(estimator, StartObserver):
        return _ObservingInTheHook(estimator, settings)
    return _InTheHook(estimator, settings)


class _InTheHook:
    """An estimator whose predictions are rounded and bounded as the hook's; one for all roles."""

    oracle = False

    def __init__(self, estimator: RuntimeEstimator, settings: AccuracySection) -> None:
        self._estimator = estimator
        self._least_s = settings.minimum_scheduled_time_s
        self._rounding_s = settings.rounding_s
        self._least_share = settings.minimum_adjustment

    def predict_one(self, job: JobRequest, now: int) -> int:
        predicted: float = self._estimator.predict_one(job, now)
        predicted = max(predicted, self._least_share * job.requested_time)
        rounded = int(-(-predicted // self._rounding_s)) * self._rounding_s
        return min(max(rounded, self._least_s), job.requested_time)

    def learn_one(self, job: FinishedJob) -> None:
        self._estimator.learn_one(job)

    def state(self) -> dict[str, Any]:
        return self._estimator.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._estimator.restore(state)


class _ObservingInTheHook(_InTheHook):
    def __init__(self, estimator: StartObserver, settings: AccuracySection) -> None:
        super().__init__(estimator, settings)
        self._observer = estimator

    def start_one(self, job: JobRequest, start_time: int) -> None:
        self._observer.start_one(job, start_time)
