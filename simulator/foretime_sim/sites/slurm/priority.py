"""How Slurm's priorities are set up: PriorityType and all that weighs in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SlurmPriority:
    """What of slurm.conf makes a job's priority; names are Slurm's, times in seconds.

    Attributes
    ----------
    multifactor
        ``priority/multifactor``; otherwise ``priority/basic``: first submitted, first.
    weight_age, weight_assoc, weight_fair_share, weight_job_size, weight_partition, weight_qos
        PriorityWeightAge and so on.
    weight_tres
        PriorityWeightTRES by kind.
    max_age_s
        PriorityMaxAge.
    decay_half_life_s
        PriorityDecayHalfLife; 0: usage does not decay.
    usage_reset_period
        PriorityUsageResetPeriod as Slurm writes it.
    calc_period_s
        PriorityCalcPeriod.
    dampening_factor
        FairShareDampeningFactor, of the classic fair share.
    favor_small
        PriorityFavorSmall.
    flags
        PriorityFlags in upper case, such as ``FAIR_TREE``, ``NO_FAIR_TREE``, ``ACCRUE_ALWAYS``,
        ``SMALL_RELATIVE_TO_TIME``, ``CALCULATE_RUNNING``, ``DEPTH_OBLIVIOUS``, ``MAX_TRES``,
        ``NO_NORMAL_TRES``. Without ``NO_FAIR_TREE`` fair share is by Fair Tree.
    site_factor
        ``None``; the name of a site-factor plug-in, which is not modelled, otherwise.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.priority import SlurmPriority
    >>> SlurmPriority(weight_age=1000, max_age_s=86_400).weight_age
    1000
    """

    multifactor: bool = True
    weight_age: int = 0
    weight_assoc: int = 0
    weight_fair_share: int = 0
    weight_job_size: int = 0
    weight_partition: int = 0
    weight_qos: int = 0
    weight_tres: Mapping[str, float] = field(default_factory=dict)
    max_age_s: int = 604_800
    decay_half_life_s: int = 604_800
    usage_reset_period: str = "NONE"
    calc_period_s: int = 300
    dampening_factor: int = 1
    favor_small: bool = False
    flags: frozenset[str] = frozenset()
    site_factor: str | None = None

    @property
    def goes_by_age_alone(self) -> bool:
        """Whether a job that is submitted later never goes before one that could start sooner."""
        weights = (
            self.weight_assoc,
            self.weight_fair_share,
            self.weight_job_size,
            self.weight_partition,
            self.weight_qos,
            *self.weight_tres.values(),
        )
        return not self.multifactor or not (any(weights) or self.site_factor)
