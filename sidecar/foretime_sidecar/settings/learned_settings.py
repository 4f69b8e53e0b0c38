"""The settings of the scheme ``learned``: which estimator, what the table has of it, refining."""

from __future__ import annotations

from pydantic import Field, field_validator

from foretime_sidecar.settings.settings_section import Names, Section, refused_as_value
from foretime_sidecar.table.row_kinds import DEFAULT_BACK_OFF, BackOff


class LearnedSettings(Section):
    """The scheme ``learned``: an estimator fills the table (docs/learned.md)."""

    estimator: str = Field(
        default="expected",
        description="Which: a name of foretime simulate --estimator, and no oracle.",
    )
    threshold: int = Field(
        default=2,
        ge=1,
        description="Finished submissions of a kind that a user's own row needs.",
    )
    backoff: Names = Field(
        default=list(DEFAULT_BACK_OFF),
        description=(
            "Kinds of jobs that the table has rows of, in the order in which the hook looks for "
            "one: user or project or neither, request (the very time) or class, and size or not."
        ),
    )
    size_bounds: list[int] = Field(
        default=[1, 4, 16, 64, 256, 1024],
        description="Ascending upper bounds of the classes of processors.",
    )
    refine: bool = Field(
        default=True,
        description=(
            "Under enforce, pending jobs' time_min follows what the estimator says of each as it "
            "learns on (Slurm, slurm-soft-limit)."
        ),
    )
    refine_tolerance: float = Field(
        default=0.2,
        ge=0,
        description="A time_min that is off by no more than this share of it is left as it is.",
    )
    refine_interval_s: int = Field(
        default=600, ge=0, description="A job's time_min is refined at most once in this time."
    )
    most_refined: int = Field(
        default=100,
        ge=1,
        description="At most so many jobs are refined at one look, those furthest off first.",
    )

    @field_validator("estimator")
    @classmethod
    def _is_estimator(cls, value: str) -> str:
        from foretime_estimators.estimators.registry import parse_estimator  # brings numpy

        return refused_as_value(value, parse_estimator)

    @field_validator("backoff")
    @classmethod
    def _is_back_off(cls, value: list[str]) -> list[str]:
        return refused_as_value(value, lambda kinds: BackOff((), tuple(kinds)))

    @field_validator("size_bounds")
    @classmethod
    def _ascends(cls, value: list[int]) -> list[int]:
        return refused_as_value(value, lambda bounds: BackOff(tuple(bounds)))

    def to_back_off(self) -> BackOff:
        """Give where to look for rows."""
        return BackOff(tuple(self.size_bounds), tuple(self.backoff))
