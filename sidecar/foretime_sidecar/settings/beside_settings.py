"""The settings of the plain scheduler that is run beside."""

from __future__ import annotations

from pydantic import Field

from foretime_sidecar.settings.settings_section import Section


class BesideSettings(Section):
    """The site's scheduler run on without Foretime, to tell what Foretime brings (Slurm only)."""

    enabled: bool = Field(
        default=True,
        description=(
            "Whether it is run: foretime brought tells what Foretime has brought, or would bring "
            "(docs/brought.md)."
        ),
    )
    cpu_percent: float = Field(
        default=2,
        gt=0,
        le=100,
        description="How much of one processor it may use on average.",
    )
    most_late_s: int = Field(
        default=900,
        ge=0,
        description=(
            "start-now: a job that waits so much longer than it would have without Foretime is "
            "protected: nobody is raised who would delay it. One whose start without Foretime is "
            "known is then not protected by queue_order.protect_after_s; 0: all are."
        ),
    )
    most_behind_s: int = Field(
        default=21_600,
        ge=0,
        description=(
            "start-now: while the jobs that would have started without Foretime, and still wait, "
            "have more work than the nodes of their partition do in this time, nobody but "
            "late ones is raised there; less where other partitions have these nodes, too "
            "(docs/brought.md). 0: they may have as much as they like."
        ),
    )
    opens_breaker: bool = Field(
        default=False,
        description=(
            "Whether the circuit breaker opens if waits with Foretime have been clearly longer "
            "than without."
        ),
    )
