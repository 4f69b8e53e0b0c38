"""Durations: every form that sbatch takes, both ways, and what is none."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.wording.durations import format_duration, parse_duration, whole_minutes
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),  # minutes
        ("0030", 1800),
        ("90", 5400),
        ("5:30", 330),  # MM:SS
        ("90:00", 5400),
        ("2:00:00", 7200),  # HH:MM:SS
        ("02:30:15", 9015),
        ("48:00:00", 172_800),
        ("1-0", 86_400),  # D-HH
        ("2-12", 216_000),
        ("1-02:30", 95_400),  # D-HH:MM
        ("7-00:00:01", 604_801),  # D-HH:MM:SS
        ("0-00:00:01", 1),
        ("  2:00:00\n", 7200),
    ],
)
def test_every_form_that_sbatch_takes_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "x", "1h", "1:2:3:4", "-5", "1-", "-1", "1--2", "1:", ":30", "1.5", "1-2-3", "+5",
     "1 2", "٣", "UNLIMITED", "1-2:3:4:5", "9" * 10, "9" * 5000],
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(InputError, match=r"time: .* is not a duration; write minutes, MM:SS"):
        parse_duration(text, "time")


@pytest.mark.parametrize("text", ["0", "00:00", "0:00:00", "0-0", "0-00:00:00"])
def test_no_time_at_all_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"-t: .* is no time at all"):
        parse_duration(text)


@given(st.integers(1, 10**12))
def test_what_is_written_is_read(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(
    days=st.integers(0, 400), hours=st.integers(0, 23), minutes=st.integers(0, 59),
    seconds=st.integers(0, 59),
)  # fmt: skip
def test_all_forms_of_a_duration_are_the_same_duration(
    days: int, hours: int, minutes: int, seconds: int
) -> None:
    total = 86_400 * days + 3600 * hours + 60 * minutes + seconds
    if total == 0:
        return
    forms = [f"{days}-{hours}:{minutes}:{seconds}", f"{24 * days + hours}:{minutes}:{seconds}",
             f"{(24 * days + hours) * 60 + minutes}:{seconds}"]  # fmt: skip
    if seconds == 0:
        forms += [f"{days}-{hours}:{minutes}", str((24 * days + hours) * 60 + minutes)]
        if minutes == 0:
            forms.append(f"{days}-{hours}")
    assert {parse_duration(form) for form in forms} == {total}


@given(st.integers(0, 10**9))
def test_whole_minutes_hold_the_seconds(seconds: int) -> None:
    assert 60 * (whole_minutes(seconds) - 1) < seconds <= 60 * whole_minutes(seconds)
