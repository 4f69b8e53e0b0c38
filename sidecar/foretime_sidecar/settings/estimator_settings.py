"""Settings of the estimators that run in the shadow."""

from __future__ import annotations

from pydantic import Field, field_validator

from foretime_sidecar.settings.settings_section import Names, Section, refused_as_value


class EstimatorsSettings(Section):
    """How estimators of runtimes are compared on the site's own jobs (foretime estimators)."""

    shadow: bool = Field(
        default=True,
        description=(
            "Every estimator predicts each job and is scored when it ends; what it says is used "
            "for nothing else."
        ),
    )
    names: Names = Field(
        default=[],
        description=(
            "The estimators, as in docs/estimators.md; empty: all that are installed, those that "
            "take a number with 0.5."
        ),
    )
    half_life_days: int = Field(
        default=30, ge=1, le=3650, description="A day's jobs count half as much after so long."
    )
    most_jobs: int = Field(
        default=50_000,
        ge=1,
        description="Jobs that wait or run are predicted up to so many at a time.",
    )
    past_days: int = Field(
        default=60,
        ge=0,
        le=3650,
        description="Stored jobs that ended in so many days are gone through at the beginning.",
    )
    cpu_percent: float = Field(
        default=20,
        gt=0,
        le=100,
        description="Of one processor: what predicting and learning may use.",
    )

    @field_validator("names")
    @classmethod
    def _are_estimators(cls, value: list[str]) -> list[str]:
        from foretime_estimators.estimators.registry import parse_estimator  # brings numpy

        return [refused_as_value(name, parse_estimator) for name in value]
