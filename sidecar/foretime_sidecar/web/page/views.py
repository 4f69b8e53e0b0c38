"""What the page shows, worked out from the daemon's answers: texts, shades, places in charts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretime_estimators.time_units import DAY_S, HOUR_S, MINUTE_S

from foretime_sidecar.forecast_answer.forecast import BriefForecast
from foretime_sidecar.wording.clocks import spoken_clock
from foretime_sidecar.wording.durations import format_duration
from foretime_sidecar.wording.waits import (
    bound_in_short,
    bound_text,
    bounds,
    compact_wait,
    is_of_use,
    needs,
    own_plan_text,
    spoken_wait,
)

SHADE_SCALES_S = (
    (60, 600, 1800, HOUR_S, 3 * HOUR_S, 6 * HOUR_S, 12 * HOUR_S, DAY_S),
    (60, HOUR_S, 3 * HOUR_S, 6 * HOUR_S, 12 * HOUR_S, DAY_S, 2 * DAY_S, 4 * DAY_S),
    (60, 6 * HOUR_S, DAY_S, 2 * DAY_S, 3 * DAY_S, 5 * DAY_S, 7 * DAY_S, 14 * DAY_S),
    (60, DAY_S, 3 * DAY_S, 7 * DAY_S, 14 * DAY_S, 30 * DAY_S, 60 * DAY_S, 90 * DAY_S),
)
"""Waits up to each of these have a shade of their own in the map; one more is for longer ones. The
map has the first scale that holds all of its waits, else the last."""
_TICKS_S = (600, 3600, 3 * 3600, 6 * 3600, 86_400, 3 * 86_400, 7 * 86_400, 30 * 86_400)
_LEAST_SCALE_S = 3600
_WIDTH = 97.0  # percent of a bar; the rest is room for what stands at its end


_TICK_WIDTH, _LAST_TICK = 26, 95  # percent, that names of ticks can be read on a narrow bar


@dataclass(frozen=True, slots=True)
class MapCell:
    """One size of job and one time limit.

    Attributes
    ----------
    text
        How long such a job likely waits.
    bound
        Within how long it starts with 95% probability; ``None`` without a forecast. Not rounded up:
        the map is for a look around.
    shade
        Index into the scale of shades; ``None`` without a forecast.
    """

    text: str
    bound: str | None
    shade: int | None


@dataclass(frozen=True, slots=True)
class WaitMap:
    """Expected waits in one slurm_partition.

    Attributes
    ----------
    slurm_partition
        Its name; ``None`` for the whole machine.
    as_of
        When the queue was read that it is of, on the clock.
    limits
        Time limits, one for each column.
    rows
        Processors and cells, smallest jobs first.
    """

    slurm_partition: str | None
    as_of: str
    limits: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MapCell, ...]], ...]


def shade_of(seconds: float, scale_s: Sequence[int]) -> int:
    """Give the shade of a wait, from 0 on."""
    return sum(seconds > bound for bound in scale_s)


def shade_scale(answer: Mapping[str, Any]) -> tuple[int, ...]:
    """Give the scale of shades for an answer of ``/v1/map``."""
    waits_s = [
        wait_s for one in answer["maps"] for row in one["median_wait_s"] for wait_s in row if wait_s
    ]
    longest_s = max(waits_s, default=0)
    return next((scale for scale in SHADE_SCALES_S if longest_s <= scale[-1]), SHADE_SCALES_S[-1])


def shade_names(scale_s: Sequence[int]) -> tuple[str, ...]:
    """Name each shade of a scale: up to how long a wait it stands for."""
    return ("now", *map(_short_limit, scale_s[1:]), "longer")


def wait_maps(answer: Mapping[str, Any], now: int) -> list[WaitMap]:
    """Lay out an answer of ``/v1/map``."""
    scale_s = shade_scale(answer)
    return [
        WaitMap(
            one["partition"],
            spoken_clock(one["made_at"], now),
            tuple(map(_short_limit, one["times_s"])),
            tuple(
                (
                    f"{size:,}",
                    tuple(
                        _map_cell(median, bound, scale_s)
                        for median, bound in zip(medians, bounds, strict=True)
                    ),
                )
                for size, medians, bounds in zip(
                    one["sizes"], one["median_wait_s"], one["bound_95_s"], strict=True
                )
            ),
        )
        for one in answer["maps"]
    ]


def _map_cell(median_s: float | None, bound_s: float | None, scale_s: Sequence[int]) -> MapCell:
    if median_s is None:
        return MapCell("–", None, None)
    bound = None if bound_s is None else _map_wait(bound_s)
    return MapCell(_map_wait(median_s), bound, shade_of(median_s, scale_s))


def _map_wait(seconds: float) -> str:
    return "now" if seconds < MINUTE_S else compact_wait(seconds)


def _short_limit(seconds: int) -> str:
    """Write a time limit in a word: ``10 min``, ``6 h``, ``7 d``."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds % length == 0 and seconds >= length * (2 if unit == "d" else 1):
            return f"{seconds // length} {unit}"
    return format_duration(seconds)


@dataclass(frozen=True, slots=True)
class WaitScale:
    """Places waits on a bar from now on, by their square roots: what is near has more room.

    Attributes
    ----------
    longest_s
        The longest wait on it.
    """

    longest_s: int

    @classmethod
    def over(cls, waits_s: Iterable[int]) -> WaitScale:
        """Give a scale that holds all of some waits."""
        return cls(max([_LEAST_SCALE_S, *waits_s]))

    def at(self, seconds: float) -> float:
        """Give where a wait stands, in percent of the bar."""
        return round(_WIDTH * math.sqrt(min(seconds / self.longest_s, 1)), 2)

    def ticks(self) -> list[tuple[float, str]]:
        """Give places and names of some waits, far enough apart to be read."""
        found: list[tuple[float, str]] = []
        last = 0.0
        for tick_s in _TICKS_S:
            place = self.at(tick_s)
            if tick_s <= self.longest_s and last + _TICK_WIDTH <= place <= _LAST_TICK:
                found.append((place, _short_limit(tick_s)))
                last = place
        return found


@dataclass(frozen=True, slots=True)
class Bar:
    """A forecast on a `WaitScale`, in percent of its width.

    Attributes
    ----------
    pieces
        Beginning, width and how sure it is (0 to 2: up to 75, 90 and 95%) of each piece from the
        likely wait on.
    likely
        Where the likely wait stands.
    """

    pieces: tuple[tuple[float, float, int], ...]
    likely: float


def bar(forecast: BriefForecast, scale: WaitScale) -> Bar | None:
    """Draw a forecast; ``None`` if there is none."""
    if (times := forecast.times) is None:
        return None
    places = [scale.at(times.wait_s[level]) for level in ("0.5", "0.75", "0.9", "0.95")]
    pieces = tuple(
        (begin, round(end - begin, 2), sure)
        for sure, (begin, end) in enumerate(itertools.pairwise(places))
        if end > begin
    )
    return Bar(pieces, places[0])


@dataclass(frozen=True, slots=True)
class JobRow:
    """A pending job.

    Attributes
    ----------
    job_id, user, size, limit, slurm_partition
        As shown.
    likely, bound, by, done
        The likely wait, the 95% bound, the moment that stands for, when it is likely done; ``None``
        without a forecast.
    why, in_short
        Why it waits; and the same without the processors, which stand beside it.
    latest, latest_in_full
        When it should start no later than, in short and in full; "" if nothing was noted.
    plan, plan_in_full
        In how long the scheduler itself plans to start it, and the same in a sentence; ``None`` and
        "" if it tells no plan.
    bar
        The forecast, drawn.
    """

    job_id: str
    user: str
    size: str
    limit: str
    slurm_partition: str
    likely: str | None
    bound: str | None
    by: str | None
    done: str | None
    why: str
    in_short: str
    latest: str
    latest_in_full: str
    plan: str | None
    plan_in_full: str
    bar: Bar | None


def job_rows(jobs: Sequence[BriefForecast], scale: WaitScale, now: int) -> list[JobRow]:
    """Lay out jobs of an answer of ``/v1/jobs/forecasts``."""
    return [_job_row(job, scale, now) for job in jobs]


def scale_of(forecasts: Sequence[BriefForecast]) -> WaitScale:
    """Give the scale for some forecasts together."""
    known = [each.times for each in forecasts]
    return WaitScale.over(times.wait_s["0.95"] for times in known if times is not None)


def _job_row(job: BriefForecast, scale: WaitScale, now: int) -> JobRow:
    said: tuple[str | None, str | None, str | None, str | None] = (None, None, None, None)
    if job.times is not None:
        (_, likely, _, done), *_, (_, bound, by, _) = bounds(job, now)
        said = likely, bound, by, done or None
    plan, plan_in_full = _plan(job, now)
    return JobRow(
        job.job_id or "",
        job.user or "–",
        f"{job.processors:,}" if job.tasks == 1 else f"{job.tasks:,} × {job.processors:,}",
        format_duration(job.requested_time_s),
        job.partition or "–",
        *said,
        job.reason.text,
        # The rest of a line: what the other columns say is left out.
        job.reason.text.removeprefix(f"{needs(job.processors)}; ").removesuffix(" in the queue"),
        *_latest(job, now),
        plan,
        plan_in_full,
        bar(job, scale),
    )


def _plan(job: BriefForecast, now: int) -> tuple[str | None, str]:
    planned = job.scheduler_start_time
    if planned is None:
        return None, ""
    # From when the daemon answered, as the waits beside it.
    wait_s = max(planned - job.made_at - job.snapshot_age_s, 0)
    return spoken_wait(wait_s), f"{own_plan_text(job, now)}."


def _latest(job: BriefForecast, now: int) -> tuple[str, str]:
    bound = job.start_no_later_than
    if not is_of_use(bound, job) or not (text := bound_text(bound, now)):
        return "", ""
    return bound_in_short(bound, now), f"{text[:1].upper()}{text[1:]}."
