"""How past accuracy becomes a scheduled time: every setting of the accuracy model."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from foretime_estimators.jobs.endings import MICRO
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S, HOUR_S


@dataclass(frozen=True, slots=True)
class AccuracySettings:
    """How A is formed from past R values, and t_sched from A.

    Attributes
    ----------
    percentile
        Share of the weight of R values that A must reach, above 0 and at most 1 (nearest rank).
    threshold
        Finished submissions that a name needs in a class before it has an A.
    minimum_adjustment
        A is never below this, 0 to 1.
    minimum_scheduled_time_s
        t_sched is never below this (nor above t_req), seconds, at least 1.
    rounding_s
        t_sched is rounded up to a multiple of this, seconds (Slurm plans in minutes: 60).
    class_bounds_s
        Ascending upper bounds (inclusive) of the requested-time classes, seconds; one more class
        lies above the last. Empty: a single class.
    weigh_by_processor_time
        R weighs by processors x actual_runtime; otherwise every job weighs 1.
    full_weight_accuracy
        Processor-time counts as weight up to this share of what was requested, above 0 to 1: a job
        that ran at least so much of its request weighs processors x requested_time x this.
    arrays_count_once
        All tasks of an array count as one submission towards ``threshold``.
    imagined_job
        Each history holds one more job with R = 1, as heavy as its largest.
    within_largest_job
        A applies only to jobs up to the history's largest processors x requested_time.
    literal_equation_5
        In the combined scheme take A = 1 for "no data", as equation 5 is printed. Otherwise a
        name with enough history and A = 1 takes part in the average.
    window_s
        Evidence whose job ended longer ago than this is dropped, seconds; ``None`` keeps all.
    half_life_s
        Evidence loses half its weight in this time, seconds, at least a day; ``None``: it does
        not age. Not together with ``window_s``. Counts towards ``threshold`` do not age.

    Examples
    --------
    >>> from foretime_estimators import AccuracySettings
    >>> AccuracySettings(class_bounds_s=(3600, 86_400)).requested_time_class(7200)
    1
    """

    percentile: float = 0.8
    threshold: int = 50
    minimum_adjustment: float = 0.0
    minimum_scheduled_time_s: int = 60
    rounding_s: int = 60
    class_bounds_s: tuple[int, ...] = ()
    weigh_by_processor_time: bool = False
    full_weight_accuracy: float = 1.0
    arrays_count_once: bool = False
    imagined_job: bool = False
    within_largest_job: bool = False
    literal_equation_5: bool = False
    window_s: int | None = None
    half_life_s: int | None = None

    @classmethod
    def tang2010(cls) -> AccuracySettings:
        """Give the paper's plain rule: every job weighs 1, one class, 50 jobs, no floor."""
        return cls()

    @classmethod
    def production(cls) -> AccuracySettings:
        """Give the rule of `AccuracyModel` against gaming, over half a year."""
        return cls(
            minimum_adjustment=0.05,
            minimum_scheduled_time_s=300,
            class_bounds_s=(HOUR_S, 4 * HOUR_S, 12 * HOUR_S, 24 * HOUR_S),
            weigh_by_processor_time=True,
            full_weight_accuracy=0.25,
            arrays_count_once=True,
            imagined_job=True,
            within_largest_job=True,
            window_s=180 * DAY_S,
        )

    def __post_init__(self) -> None:
        def require(name: str, valid: bool, rule: str) -> None:
            if not valid:
                value = getattr(self, name)
                raise InputError(f"accuracy setting {name} = {value!r}: it must be {rule}")

        bounds = self.class_bounds_s
        require("percentile", 0 < self.percentile <= 1, "above 0 and at most 1")
        require("full_weight_accuracy", 0 < self.full_weight_accuracy <= 1, "above 0 and at most 1")
        require("threshold", self.threshold >= 1, "at least 1")
        require("minimum_adjustment", 0 <= self.minimum_adjustment <= 1, "from 0 to 1")
        require("minimum_scheduled_time_s", self.minimum_scheduled_time_s >= 1, "at least 1 second")
        require("rounding_s", self.rounding_s >= 1, "at least 1 second")
        require(
            "class_bounds_s",
            all(bound >= 1 for bound in bounds) and list(bounds) == sorted(set(bounds)),
            "ascending seconds, each at least 1",
        )
        require("window_s", self.window_s is None or self.window_s >= 1, "at least 1 second")
        require(
            "half_life_s",
            self.half_life_s is None or self.half_life_s >= DAY_S,
            f"at least a day ({DAY_S} seconds)",
        )
        if self.window_s is not None and self.half_life_s is not None:
            raise InputError(
                f"accuracy settings window_s = {self.window_s} and half_life_s = "
                f"{self.half_life_s}: evidence ages by one of them; leave the other out"
            )

    def requested_time_class(self, requested_time: int) -> int:
        """Index of the class of a requested time in seconds: 0 for the shortest."""
        return bisect_left(self.class_bounds_s, requested_time)

    def class_limits(self, requested_time_class: int) -> tuple[int, int | None]:
        """Give a class's requested times, seconds: above the first, up to the second (or any)."""
        bounds = self.class_bounds_s
        lower = bounds[requested_time_class - 1] if requested_time_class else 0
        return lower, bounds[requested_time_class] if requested_time_class < len(bounds) else None

    def scheduled_time(self, adjustment_micro: int, requested_time: int) -> int:
        """t_sched = A * t_req (Tang 2010, eq. 4) in whole numbers, as the hook computes it.

        A in millionths; rounded up to ``rounding_s``, at least ``minimum_scheduled_time_s``, at
        most ``requested_time``; seconds.
        """
        units = -(-adjustment_micro * requested_time // (MICRO * self.rounding_s))
        return min(requested_time, max(self.minimum_scheduled_time_s, units * self.rounding_s))
