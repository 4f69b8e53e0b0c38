"""Waits in words: short, and bounds that still hold once they are rounded."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from foretime_sidecar.wait_words import compact_wait, percent, spoken_clock, spoken_wait
from hypothesis import given
from hypothesis import strategies as st

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
        (172_801, "2 d", "2 d 6 h"),
        (400_000, "4 d 18 h", "4 d 18 h"),
    ],
)
def test_durations_in_words(seconds: int, likely: str, bound: str) -> None:
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
def test_moments_in_words(moment: str, clock: str) -> None:
    now = datetime.fromisoformat("2026-11-21T16:48:30").timestamp()
    assert spoken_clock(int(datetime.fromisoformat(moment).timestamp()), int(now)) == clock


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
