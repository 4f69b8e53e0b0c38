"""The scoreboard as it stands: estimators in order, the best one, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.estimators.prediction_scores import MEASURES, SCORES
from foretime_estimators.time_units import DAY_S
from foretime_sim.scores.intervals import Interval, percentile_interval

from foretime_sidecar.scoreboard.daily_scores import DailyScores
from foretime_sidecar.scoreboard.job_tracking import ShadowCourse
from foretime_sidecar.settings.settings import Settings

_JOBS = MEASURES.index("jobs")


@dataclass(frozen=True, slots=True)
class ClassScores:
    """How one estimator does in one class of jobs.

    Attributes
    ----------
    kind, label
        As `foretime_sidecar.scoreboard.daily_scores.JobClass`.
    jobs
        Scored.
    accuracy, under_predicted
        As in `foretime_estimators.estimators.prediction_scores.SCORES`.
    """

    kind: str
    label: str
    jobs: int
    accuracy: float
    under_predicted: float


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One estimator.

    Attributes
    ----------
    name
        As in the registry.
    in_use
        Whether jobs are planned by it.
    jobs
        Scored, however long ago.
    accuracy, under_predicted, covered, log_error, error_s, pinball_s
        As in `foretime_estimators.estimators.prediction_scores.SCORES`, recent jobs more; ``None``
        without jobs.
    accuracy_interval
        95% of the accuracy; ``None`` with too few days.
    behind, behind_interval
        What its accuracy lacks of the best one's, on the same jobs and draws.
    as_good
        Whether that may be chance; ``False`` where it can't be told, but for the best itself.
    eligible
        Whether it is not too short too often (``breaker.most_outliving_percent``), nor
        set aside.
    set_aside
        Why it is asked no more; "" while it is.
    cost_s
        Processor time for each job, seconds.
    classes
        Its scores by class of jobs, those that have any.
    """

    name: str
    in_use: bool
    jobs: int
    accuracy: float | None
    under_predicted: float | None
    covered: float | None
    log_error: float | None
    error_s: float | None
    pinball_s: float | None
    accuracy_interval: Interval | None
    behind: float | None
    behind_interval: Interval | None
    as_good: bool
    eligible: bool
    set_aside: str
    cost_s: float | None
    classes: tuple[ClassScores, ...]


@dataclass(frozen=True, slots=True)
class EstimatorBoard:
    """All of them, the best one first, those that are not eligible last.

    Attributes
    ----------
    made_at
        Epoch seconds.
    complete
        Whether all that is stored has been gone through.
    half_life_days
        In which jobs lose half their weight.
    days
        On which jobs ended that are scored.
    users
        Whose jobs have ended.
    followed, late, too_many
        Jobs that wait or run and were predicted; jobs that were not as they were seen too late, or
        too many waited and ran.
    most_under_predicted
        Share up to which an estimator is eligible.
    best
        The name of the best one; ``None`` if none is eligible.
    in_use
        The name of the one that jobs are planned by.
    rows
        The estimators.
    """

    made_at: int
    complete: bool
    half_life_days: int
    days: int
    users: int
    followed: int
    late: int
    too_many: int
    most_under_predicted: float
    best: str | None
    in_use: str
    rows: tuple[BoardRow, ...]

    def row(self, name: str) -> BoardRow | None:
        """Give an estimator's, if it is there."""
        return next((row for row in self.rows if row.name == name), None)


def estimator_in_use(settings: Settings) -> str:
    """Give the name of the estimator that jobs are planned by."""
    scheme = settings.accuracy.scheme
    return settings.learned.estimator if scheme == "learned" else scheme


def board_of(
    course: ShadowCourse, settings: Settings, now: int, *, complete: bool
) -> EstimatorBoard:
    """Draw the board.

    Parameters
    ----------
    course
        What runs in the shadow.
    settings
        All settings.
    now
        Epoch seconds.
    complete
        Whether it has gone through all that is stored.
    """
    scores, estimators = course.scores, course.estimators
    sums = scores.sums(now)
    totals = sums.weighted.sum(axis=0)
    found = {name: score(totals) for name, score in SCORES.items()}
    drawn = sums.resampled()
    accuracy = found["accuracy"][0]
    drawn_accuracy = None if drawn is None else SCORES["accuracy"](drawn)
    most_under = settings.breaker.most_outliving_percent / 100
    scored = np.isfinite(accuracy)
    eligible = [
        bool(scored[place])
        and not estimator.set_aside
        and bool(found["under_predicted"][0, place] <= most_under)
        for place, estimator in enumerate(estimators)
    ]
    used = estimator_in_use(settings)
    order = sorted(
        range(len(estimators)),
        key=lambda place: (
            bool(estimators[place].set_aside),
            not scored[place],
            not eligible[place],
            -accuracy[place] if scored[place] else 0.0,
            estimators[place].name != used,  # of equals the one that is there
        ),
    )
    best = order[0] if order and eligible[order[0]] else None
    rows = []
    for place in order:
        interval = behind_interval = None
        if drawn_accuracy is not None and scored[place]:
            interval = percentile_interval(drawn_accuracy[:, place])
            if best is not None:
                behind_interval = percentile_interval(
                    drawn_accuracy[:, best] - drawn_accuracy[:, place]
                )
        as_good = place == best or (
            eligible[place] and behind_interval is not None and behind_interval.low <= 0
        )
        one = {
            name: float(values[0, place]) if np.isfinite(values[0, place]) else None
            for name, values in found.items()
        }
        rows.append(
            BoardRow(
                name=estimators[place].name,
                in_use=estimators[place].name == used,
                jobs=int(sums.plain[0, place, _JOBS]),
                **one,
                accuracy_interval=interval,
                behind=None
                if best is None or not scored[place]
                else float(accuracy[best] - accuracy[place]),
                behind_interval=behind_interval,
                as_good=as_good,
                eligible=eligible[place],
                set_aside=estimators[place].set_aside,
                cost_s=estimators[place].cost_s,
                classes=_classes(scores, sums.plain, found, place),
            )
        )
    return EstimatorBoard(
        made_at=now,
        complete=complete,
        half_life_days=scores.half_life_s // DAY_S,
        days=len(sums.weighted),
        users=course.users,
        followed=len(course),
        late=course.late,
        too_many=course.too_many,
        most_under_predicted=most_under,
        best=None if best is None else estimators[best].name,
        in_use=used,
        rows=tuple(rows),
    )


def _classes(
    scores: DailyScores, plain: Float64Array, found: dict[str, Float64Array], estimator: int
) -> tuple[ClassScores, ...]:
    return tuple(
        ClassScores(
            of.kind,
            of.label,
            int(plain[place, estimator, _JOBS]),
            float(found["accuracy"][place, estimator]),
            float(found["under_predicted"][place, estimator]),
        )
        for place, of in enumerate(scores.classes.classes)
        if place and plain[place, estimator, _JOBS]
    )
