"""The settings of the queue's order on Slurm, which is kept through site factors."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foretime_sidecar.settings_section import Section


class QueueOrderSettings(Section):
    """Slurm's queue put in order by scheduled times, through each job's SiteFactor."""

    order: Literal["none", "fcfs", "sjf", "ljf", "xf", "wfp"] = Field(
        default="none",
        description=(
            "none: jobs keep Slurm's order, and what was changed is given back; else first come, "
            "first served, the smallest or largest scheduled time first, the largest expansion "
            "factor, or WFP. Needs priority/multifactor; let forecast.order be the same."
        ),
    )
    highest_site_factor: int = Field(
        default=1_000_000,
        ge=100,
        le=1_000_000_000,
        description=(
            "SiteFactor of the first job, in units of priority; less where the smallest step "
            "between two QOS is worth less (PriorityWeightQOS), so that no job passes one of a "
            "better QOS."
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
