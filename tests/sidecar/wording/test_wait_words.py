"""Waits in words: short, and bounds that still hold once they are rounded."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import accumulate

import pytest
from foretime_sidecar.forecast_answer.forecast import ForecastAnswer, StartBound
from foretime_sidecar.wording.clocks import spoken_clock
from foretime_sidecar.wording.waits import (
    bounds,
    compact_wait,
    headline,
    is_of_use,
    percent,
    spoken_wait,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.support.forecasts.told_forecasts import told_forecast

NOW = 1_700_000_000

pytestmark = pytest.mark.usefixtures("stockholm")


@pytest.mark.parametrize(
    ("seconds", "likely", "bound"),
    [
        (0, "under a minute", "under a minute"),
        (59, "under a minute", "under a minute"),
        (60, "1 min", "1 min"),
        (61, "1 min", "2 min"),
        (601, "10 min", "11 min"),
        (3600, "1 h", "1 h"),
        (3601, "1 h", "1 h 5 min"),
        (7500, "2 h 5 min", "2 h 5 min"),
        (10_801, "3 h", "3 h 15 min"),
        (100_000, "28 h", "28 h"),
        (172_800, "2 d", "2 d"),
        (172_801, "2 d", "2 d 1 h"),
        (400_000, "4 d 15 h", "4 d 16 h"),
    ],
)
def test_a_wait_is_said_in_words_and_rounded_up_as_a_bound(
    seconds: int, likely: str, bound: str
) -> None:
    assert (spoken_wait(seconds), spoken_wait(seconds, up=True)) == (likely, bound)


def meant(words: str) -> int:
    """Read a duration in words again: the longest that it can mean."""
    if words == "under a minute":
        return 60
    units = {"d": 86_400, "h": 3600, "min": 60}
    found = re.findall(r"(\d+) (d|h|min)\b", words)
    assert " ".join(f"{count} {unit}" for count, unit in found) == words
    return sum(int(count) * units[unit] for count, unit in found)


@given(st.integers(0, 10**8))
def test_words_are_near_and_a_bound_in_words_still_holds(seconds: int) -> None:
    assert meant(spoken_wait(seconds, up=True)) >= seconds
    assert meant(spoken_wait(seconds, up=True)) <= 60 + 1.17 * seconds
    assert abs(meant(spoken_wait(seconds)) - seconds) <= max(60, seconds / 10)


@pytest.mark.parametrize(
    ("moment", "clock"),
    [
        ("2026-11-21T23:59:59", "23:59"),
        ("2026-11-22T00:00:00", "tomorrow 00:00"),
        ("2026-11-23T09:05:00", "Mon 23 Nov 09:05"),
        ("2027-01-03T09:05:00", "Sun 3 Jan 2027 09:05"),
    ],
)
def test_a_moment_is_said_by_its_day(moment: str, clock: str) -> None:
    now = datetime.fromisoformat("2026-11-21T16:48:30").timestamp()
    assert spoken_clock(int(datetime.fromisoformat(moment).timestamp()), int(now)) == clock


def forecast(now: int, likely_s: int, bound_s: int, age_s: int = 0) -> ForecastAnswer:
    """Give a daemon's answer, at ``now``, for a job of the queue, looked at so long before."""
    waits = {"0.5": likely_s, "0.75": likely_s, "0.9": bound_s, "0.95": bound_s}
    return told_forecast(
        made_at=now - age_s,
        snapshot_age_s=age_s,
        starts_now=0.1,
        likely_wait_s=likely_s,
        wait_s=waits,
        start_time={level: now - age_s + wait for level, wait in waits.items()},
    )


SOON = "under a minute"


@pytest.mark.parametrize(
    ("clock", "likely_s", "bound_s", "age_s", "words"),
    [
        ("19:10:00", 355, 2160, 0, "6 min (19:16), 95% sure within 40 min (by 19:50)"),
        ("19:10:50", 355, 2160, 0, "6 min (19:16), 95% sure within 40 min (by 19:50)"),
        # What would be said to be over ten seconds before it is said a minute later.
        ("19:10:50", 355, 2390, 0, "6 min (19:16), 95% sure within 40 min (by 19:51)"),
        ("19:10:30", 405, 2210, 50, "6 min (19:16), 95% sure within 40 min (by 19:50)"),
        ("19:10:30", 20, 40, 0, f"{SOON} (19:10), 95% sure within {SOON} (by 19:12)"),
        ("19:10:30", 600, 1200, 7200, f"{SOON} (19:10), 95% sure within {SOON} (by 19:10)"),
    ],
)
def test_how_long_and_when_agree(
    clock: str, likely_s: int, bound_s: int, age_s: int, words: str
) -> None:
    now = int(datetime.fromisoformat(f"2026-11-21T{clock}").timestamp())
    said = headline(forecast(now, likely_s, bound_s, age_s), now)
    assert said == f"Likely starts in {words}. Chance to start now: 10%."


@given(st.integers(0, 86_399), st.integers(60, 86_400))
def test_a_bound_on_the_clock_still_holds_and_is_what_its_words_say(begin: int, wait: int) -> None:
    now = int(datetime.fromisoformat("2026-11-21T00:00:00").timestamp()) + begin
    *_, (_, within, by, _) = bounds(forecast(now, wait, wait), now)
    if wait > 3 * 3600:  # a quarter or a full hour, which nobody takes for more exact than it is
        step = 3600 if wait > 12 * 3600 else 900
        said_at = -(-(now + wait) // step) * step
        assert by == spoken_clock(said_at, now)
        return
    # The clock says a whole minute: that in which the spoken wait ends, or the next.
    ends = (now + meant(within)) // 60 * 60
    said = [moment for moment in (ends, ends + 60) if spoken_clock(moment, now) == by]
    assert len(said) == 1
    assert said[0] >= now + wait


def moment_of(clock: str, now: int) -> int:
    """Read a moment in words again."""
    day, _, time = clock.rpartition(" ")
    then = datetime.fromtimestamp(now)  # noqa: DTZ006 - on the machine's clock
    if day == "tomorrow":
        then += timedelta(days=1)
    elif day:
        year = "" if re.search(r"\d{4}$", day) else f" {then.year}"
        then = datetime.strptime(day + year, "%a %d %b %Y")  # noqa: DTZ007 - on the same
    hour, minute = map(int, time.split(":"))
    return int(then.replace(hour=hour, minute=minute, second=0, microsecond=0).timestamp())


@given(st.integers(0, 86_399), st.lists(st.integers(0, 10**6), min_size=8, max_size=8))
def test_a_job_is_done_after_its_start_in_words_too(begin: int, drawn: list[int]) -> None:
    now = int(datetime.fromisoformat("2026-06-21T00:00:00").timestamp()) + begin
    levels = ("0.5", "0.75", "0.9", "0.95")
    starts = sorted(drawn[:4])
    ends = list(accumulate(map(sum, zip(starts, drawn[4:], strict=True)), max))
    told = forecast(now, 0, 0).model_copy(
        update={
            "start_time": {level: now + at for level, at in zip(levels, starts, strict=True)},
            "end_time": {level: now + at for level, at in zip(levels, ends, strict=True)},
        }
    )
    said = [(moment_of(by, now), moment_of(done, now)) for _, _, by, done in bounds(told, now)]
    for (by, done), start, end in zip(said, starts, ends, strict=True):
        assert done > by or end - start < 60
    assert [done for _, done in said] == sorted(done for _, done in said)
    for (_, done), end in list(zip(said, ends, strict=True))[1:]:
        assert done + 60 > now + end


@pytest.mark.parametrize(
    ("bound_s", "sure_s", "is_said"),
    [
        (21_600, 60, True),
        (21_601, 60, False),
        (12 * 86_400, 2 * 86_400, True),
        (86_400, 3600, False),
    ],
)
def test_a_bound_far_beyond_what_is_sure_by_now_is_not_said(
    bound_s: int, sure_s: int, is_said: bool
) -> None:
    told = forecast(NOW, 0, sure_s)
    bound = StartBound(
        time=NOW + bound_s, wait_s=bound_s, planned_start=None, noted_at=NOW, kept_share=0.97,
        judged=100, days=30,
    )  # fmt: skip
    assert is_of_use(bound, told) == is_said
    assert not is_of_use(None, told)


def test_no_forecast_is_certain() -> None:
    assert [percent(each) for each in (0, 0.004, 0.2, 0.995, 1)] == [
        *("under 1%", "under 1%", "20%", "over 99%", "over 99%")
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((60, "1 min"), (3569, "59 min"), (3571, "1 h"), (5400, "1.5 h"), (35_999, "10 h")),
        *((172_799, "48 h"), (172_800, "2 d"), (276_480, "3.2 d"), (10**7, "116 d")),
    ],
)
def test_waits_in_little_room(seconds: int, words: str) -> None:
    assert compact_wait(seconds) == words


@given(st.integers(0, 86_399), st.integers(60, 40 * 86_400))
def test_within_and_by_are_not_an_hour_apart(begin: int, wait_s: int) -> None:
    now = int(datetime.fromisoformat("2026-11-21T00:00:00").timestamp()) + begin
    for _, within, by, _ in bounds(forecast(now, wait_s, wait_s), now):
        assert abs(now + meant(within) - moment_of(by, now)) <= 3600
