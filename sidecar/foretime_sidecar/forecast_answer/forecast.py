"""When a job will start: what the daemon answers, field by field (docs/api.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from foretime_sidecar.forecast_answer.coarsening import (
    AS_IS,
    EACH_ROUNDED_UP,
    HIDDEN,
    IN_PARTS,
    ROUNDED_UP,
    TO_A_MARK,
    TO_MARKS,
    TO_QUARTERS,
    Coarsened,
    Telling,
    Told,
    coarse_wait,
)

_SOON_S = 60


def _without_jobs_ahead(text: str, reason: Reason, _: Telling) -> str:
    # What follows says how many jobs are ahead of it.
    of_its_turn = reason.code in ("Priority", "Resources", "None", "BeginTime")
    return text.partition(";")[0] if of_its_turn else text


class Reason(Told):
    """Why a job does not run."""

    code: Annotated[str, AS_IS]
    """The scheduler's word."""
    text: Annotated[str, Coarsened(_without_jobs_ahead)]
    """In words."""


def _marked_bound(time: int, bound: StartBound, _: Telling) -> int:
    # From the moment on that it was noted, so that it stays the same however often it is told.
    return bound.noted_at + coarse_wait(time - bound.noted_at, bound.noted_at)


def _until_marked_bound(_: int, bound: StartBound, telling: Telling) -> int:
    return max(_marked_bound(bound.time, bound, telling) - telling.made_at, 0)


class StartBound(Told):
    """When a waiting job should start no later than; it stands from the first look at the job on.

    The shares are ``None`` where that is not known.
    """

    time: Annotated[int, Coarsened(_marked_bound)]
    """The bound, epoch seconds."""
    wait_s: Annotated[int, Coarsened(_until_marked_bound)]
    """How long until then from `made_at` on; 0 if it is past."""
    planned_start: Annotated[int | None, HIDDEN]
    """The plan that it was made of, epoch seconds."""
    noted_at: Annotated[int, AS_IS]
    """When it was noted, epoch seconds."""
    kept_share: Annotated[float | None, AS_IS]
    """Share of such bounds that were kept."""
    judged: Annotated[int | None, AS_IS]
    """Of how many."""
    days: Annotated[int | None, AS_IS]
    """Noted in the last days."""


class Calibration(Told):
    """How forecasts have done, over all users."""

    forecasts_scored: Annotated[int, AS_IS]
    """Forecasts whose job has started."""
    within_95: Annotated[float | None, AS_IS]
    """Share of waits that the 95% bound held for."""
    days: Annotated[int, AS_IS]
    """Those made in the last days."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of an answer that has some; as there."""

    starts_now: float
    likely_wait_s: int
    wait_s: dict[str, int]
    start_time: dict[str, int]


def _marked_times(times: dict[str, int], _: BriefForecast, telling: Telling) -> dict[str, int]:
    made_at = telling.made_at
    return {level: made_at + coarse_wait(at - made_at, made_at) for level, at in times.items()}


class BriefForecast(Told):
    """A forecast without what all jobs have in common; times are ``None`` if there are none."""

    job_id: Annotated[str | None, AS_IS]
    """The job's; `null` if it is not submitted."""
    state: Annotated[Literal["not-submitted", "pending", "running"], AS_IS]
    """Where it stands."""
    scheduler: Annotated[Literal["slurm", "pbs"], AS_IS]
    """Whose queue it is in."""
    user: Annotated[str | None, AS_IS]
    """Whose it is."""
    account: Annotated[str | None, AS_IS]
    """Its account, or project."""
    partition: Annotated[str | None, AS_IS]
    """Its partition, or several with commas; its queue on PBS."""
    nodes: Annotated[int | None, AS_IS]
    """Nodes that it asks for."""
    processors: Annotated[int, AS_IS]
    """Processors that it asks for."""
    requested_time_s: Annotated[int, AS_IS]
    """Its t_req."""
    scheduled_time_s: Annotated[int, AS_IS]
    """Its t_sched, from the history that the caller may use."""
    tasks: Annotated[int, AS_IS]
    """So many tasks of the array wait; 1 for what is no array."""
    made_at: Annotated[int, AS_IS]
    """When the forecast was made, epoch seconds; waits count from then."""
    snapshot_age_s: Annotated[int, AS_IS]
    """Since the queue was read."""
    starts_now: Annotated[float | None, TO_QUARTERS]
    """Probability that it starts at once."""
    likely_wait_s: Annotated[int | None, TO_A_MARK]
    """Half of such jobs wait no longer."""
    wait_s: Annotated[dict[str, int] | None, TO_MARKS]
    """Bounds of the wait by how sure they are: 0.5, 0.75, 0.9 and 0.95."""
    start_time: Annotated[dict[str, int] | None, Coarsened(_marked_times)]
    """The same as starts, epoch seconds."""
    end_s: Annotated[dict[str, int] | None, TO_MARKS]
    """Until the job's end by how sure they are, seconds; of a job that runs, too."""
    end_time: Annotated[dict[str, int] | None, Coarsened(_marked_times)]
    """The same as ends, epoch seconds."""
    planned_wait_s: Annotated[int | None, HIDDEN]
    """Its wait if all jobs took the time that they ask for and nobody came later."""
    scheduler_start_time: Annotated[int | None, AS_IS]
    """Of a job that waits: the start that the scheduler plans itself, epoch seconds, as it tells
    everybody who may see the job; `null` if it tells none."""
    start_no_later_than: Annotated[StartBound | None, IN_PARTS]
    """Of a job that waits: a bound that stands from its first look on."""
    started_at: Annotated[int | None, AS_IS]
    """Of a job that runs, epoch seconds."""
    reason: Annotated[Reason, IN_PARTS]
    """Why it does not run."""
    calibration: Annotated[Calibration | None, IN_PARTS]
    """How forecasts have done; `null` if that is not known."""

    @property
    def times(self) -> Times | None:
        """The times; ``None`` where there is no forecast."""
        if (
            self.starts_now is None
            or self.likely_wait_s is None
            or self.wait_s is None
            or self.start_time is None
        ):
            return None
        return Times(self.starts_now, self.likely_wait_s, self.wait_s, self.start_time)

    @property
    def starts_soon(self) -> bool:
        """Whether it likely starts within a minute."""
        return self.likely_wait_s is not None and self.likely_wait_s <= _SOON_S

    def done_sooner_s(self, other: BriefForecast) -> int | None:
        """Give by how much it likely ends sooner than another; ``None``: not known."""
        if self.end_s is None or other.end_s is None:
            return None
        return other.end_s["0.5"] - self.end_s["0.5"]

    def is_surely_done_no_later(self, other: BriefForecast) -> bool:
        """Whether its 95% bound of the end is no later than another's."""
        if self.end_s is None or other.end_s is None:
            return False
        return self.end_s["0.95"] <= other.end_s["0.95"]


def _bounds_alone(
    quantiles: list[tuple[float, int]], answer: ForecastAnswer, telling: Telling
) -> list[tuple[float, int]]:
    # The whole grid would tell the probability of a start now to a hundredth.
    return [
        (level, coarse_wait(wait_s, telling.made_at))
        for level, wait_s in quantiles
        if str(level) in (answer.wait_s or ())
    ]


class ForecastAnswer(BriefForecast):
    """The whole answer for a job: of the queue, or not submitted."""

    quantiles: Annotated[list[tuple[float, int]] | None, Coarsened(_bounds_alone)]
    """Pairs of a probability and the wait, in seconds, that is not exceeded with it."""
    machine_processors: Annotated[int, AS_IS]
    """Processors of nodes that were up."""
    running_jobs: Annotated[int, ROUNDED_UP]
    """Jobs that ran and took part."""
    pending_jobs: Annotated[int, ROUNDED_UP]
    """Jobs that waited and took part; each task of an array is one."""
    left_out: Annotated[dict[str, int], EACH_ROUNDED_UP]
    """Jobs that did not take part, by why."""
    assumptions: Annotated[
        list[str],
        Coarsened(
            lambda said, _, telling: [
                *said,
                f"{telling.why}, so starts and numbers of jobs are rounded up",
            ]
        ),
    ]
    """What was assumed, what the forecast stands on, and what is not modelled."""

    def brief(self) -> BriefForecast:
        """Leave out what all jobs have in common, and the grid of quantiles."""
        return BriefForecast(**{name: getattr(self, name) for name in BriefForecast.model_fields})


AnyForecast = TypeVar("AnyForecast", bound=BriefForecast)


class OtherJobs(BaseModel):
    """Jobs that are not the caller's to see."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    pending: int
    """How many wait; rounded up for those who may see less."""


class PendingForecasts(BaseModel):
    """Forecasts of all pending jobs that a caller may see."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    made_at: int
    """When the queue was looked at, epoch seconds."""
    jobs: list[ForecastAnswer] | list[BriefForecast]
    """Theirs; an array is one."""
    others: OtherJobs
    """Those of others."""
