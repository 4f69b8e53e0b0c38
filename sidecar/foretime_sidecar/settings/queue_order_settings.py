"""The settings of the queue's order, which is kept through site factors, on PBS ranks."""

from __future__ import annotations

from typing import Literal

from foretime_sim.policies.order import Order, OrderName
from foretime_sim.policies.policy_switching import Decider, PolicySwitching, Quality
from pydantic import Field, ValidationInfo, field_validator

from foretime_sidecar.settings.settings_section import Names, Section, refused_as_value

DYNP = "dynp"
START_NOW = "start-now"
AUTO = "auto"


class QueueOrderSettings(Section):
    """The queue put in order through each job's SiteFactor (Slurm), or its ft_rank (PBS)."""

    order: Literal["auto", "none", "start-now", OrderName, "dynp"] = Field(
        default="auto",
        description=(
            "auto: start-now on Slurm that is asked by its commands, none elsewhere. start-now: "
            "jobs keep the scheduler's order, but under enforce one that should start at once, "
            "before others that have to wait anyway, is raised to the top until it has "
            "(docs/start_now.md; on PBS docs/start_now_pbs.md), and the hook changes no job. none: "
            "they keep it, what was changed is given back, and enforce lets the hook plan jobs "
            "short. On Slurm, too, whatever hook.mode: first come, first served, the smallest or "
            "largest scheduled time first, the largest expansion factor, or WFP; dynp: whichever "
            "suits the queue best now (docs/slurm_clients.md). Needs priority/multifactor; let "
            "forecast.order be the same, with dynp priority."
        ),
    )
    highest_site_factor: int = Field(
        default=1_000_000,
        ge=100,
        le=1_000_000_000,
        description=(
            "How far above the others' own priorities the first job may be put, in units of "
            "priority. Jobs of a better QOS stay before those of others (PriorityWeightQOS)."
        ),
    )
    head_first: bool = Field(
        default=False,
        description=(
            "Whatever the order, the first job of each partition by the site's own priorities "
            "stays first, so that it keeps its reservation; the order is that of the others."
        ),
    )
    longest_wait_s: int = Field(
        default=3 * 86_400,
        ge=0,
        description=(
            "Whatever the order, jobs that have waited so long since they could first start go "
            "before the others, who waits longest first, so that no order starves anybody; 0: "
            "never."
        ),
    )
    keep_promises: bool = Field(
        default=False,
        description=(
            "Whatever the order, jobs that near the bound that they start no later than go before "
            "the others (docs/api.md, start_no_later_than)."
        ),
    )
    promise_lead_s: int = Field(
        default=6 * 3600,
        ge=0,
        description="How long before that bound a job goes before the others.",
    )
    head_delay_s: int = Field(
        default=1800,
        ge=1,
        description=(
            "start-now: how much later than first planned the first job that has to wait may start "
            "before nobody goes before it but who fits by the time asked for; up to then ever less "
            "is given on expected runtimes."
        ),
    )
    protect_after_s: int = Field(
        default=43_200,
        ge=0,
        description=(
            "start-now: jobs that have waited so long since they could first start hold a "
            "reservation, as the first job that has to wait does, on all that they ask for; 0: "
            "only that first job."
        ),
    )
    estimator: str = Field(
        default="weighted",
        description=(
            "start-now: which estimator says what is expected of a job, in the place of "
            "learned.estimator. Under expected users gain much by jobs that only look short, under "
            "weighted little (docs/start_now_attacks.md)."
        ),
    )
    most_places_gained: int = Field(
        default=0,
        ge=0,
        description=(
            "start-now: how many jobs that stand before it by the site's own priorities a job may "
            "pass; 0: no bound (docs/start_now_attacks.md)."
        ),
    )
    orders: Names = Field(
        default=["fcfs", "sjf", "ljf"],
        description="dynp: orders that it switches between; the first is where it begins.",
    )
    decider: Literal["advanced", "simple"] = Field(
        default="advanced",
        description=(
            "dynp: what chooses among orders that are equally good: the present one stays, or the "
            "first is taken (Streit 2002)."
        ),
    )
    quality: str = Field(
        default="artww",
        description=(
            "dynp: what is least in the best order: artww (response time weighted by width), art, "
            "wait, waitww, slowdown, sldww, makespan; or several: 2*artww+makespan."
        ),
    )
    decide_on: Literal["planned", "learned"] = Field(
        default="planned",
        description=(
            "dynp: planned: jobs end as Slurm plans them, and all are planned; learned: the queue "
            "is run forward as forecast.backfill says, with runtimes drawn from what is learned."
        ),
    )
    samples: int = Field(
        default=16, ge=1, le=1000, description="dynp, learned: how often runtimes are drawn."
    )
    slackness: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="dynp: share by which another order must be better than the present one.",
    )
    least_time_between_switches_s: int = Field(
        default=600, ge=0, description="dynp: an order stays at least so long."
    )
    first_starts: int = Field(
        default=0, ge=0, description="dynp: only so many jobs that start next count; 0: all."
    )
    horizon_s: int = Field(
        default=0,
        ge=0,
        description=(
            "dynp: only jobs that start within so long count; 0: all. Not with first_starts."
        ),
    )
    slowdown_bound_s: int = Field(
        default=60, ge=1, description="dynp: jobs shorter than this count so long in slowdowns."
    )
    most_user_share: float = Field(
        default=0.25,
        gt=0,
        le=1,
        description=(
            "dynp: how much of a quality one user's jobs may weigh, so that nobody turns the order "
            "by submitting many; 1: no bound."
        ),
    )
    planning_limit_s: float = Field(
        default=10,
        gt=0,
        description="dynp: if it takes longer to find the best order, the present one stays.",
    )

    @field_validator("estimator")
    @classmethod
    def _is_estimator(cls, value: str) -> str:
        from foretime_estimators.estimators.registry import parse_estimator  # brings numpy

        return refused_as_value(value, parse_estimator)

    @field_validator("orders")
    @classmethod
    def _are_orders(cls, value: list[str]) -> list[str]:
        return refused_as_value(value, lambda names: PolicySwitching(orders=_orders(names)))

    @field_validator("quality")
    @classmethod
    def _is_quality(cls, value: str) -> str:
        return refused_as_value(
            value, lambda text: PolicySwitching(quality=Quality.parse_weighted(text))
        )

    @field_validator("horizon_s")
    @classmethod
    def _is_the_only_bound(cls, value: int, info: ValidationInfo) -> int:
        first = info.data.get("first_starts") or None
        return refused_as_value(
            value, lambda horizon: PolicySwitching(first_starts=first, horizon_s=horizon or None)
        )

    @property
    def starts_now(self) -> bool:
        """Whether enforce raises jobs that should start at once, as far as this section says."""
        return self.order == START_NOW

    @property
    def keeps_order(self) -> bool:
        """Whether the whole queue is put in an order, whatever the mode."""
        return self.order not in ("none", AUTO, START_NOW)

    @property
    def switches(self) -> bool:
        """Whether the order is chosen anew again and again."""
        return self.order == DYNP

    @property
    def draws_runtimes(self) -> bool:
        """Whether it is chosen by runs with runtimes that are drawn from what is learned."""
        return self.switches and self.decide_on == "learned"

    def to_switching(self) -> PolicySwitching:
        """Give how dynp decides."""
        return PolicySwitching(
            decider=Decider(self.decider),
            orders=_orders(self.orders),
            quality=Quality.parse_weighted(self.quality),
            slackness=self.slackness,
            first_starts=self.first_starts or None,
            horizon_s=self.horizon_s or None,
            slowdown_bound_s=self.slowdown_bound_s,
        )


def _orders(names: list[str]) -> tuple[Order, ...]:
    return tuple(Order.parse(name, unlisted=(Order.PRIORITY,)) for name in names)
