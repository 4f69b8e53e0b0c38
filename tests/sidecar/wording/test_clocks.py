"""Times of day in the time zone of who reads them."""

from __future__ import annotations

import pytest
from foretime_sidecar.wording.clocks import in_zone, spoken_clock, zone_name
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_700_000_000  # 22:13:20 UTC

pytestmark = pytest.mark.usefixtures("stockholm")


@pytest.mark.parametrize(
    ("asked", "clock", "name"),
    [
        (None, "23:13", "CET (UTC+01:00)"),
        ("UTC", "22:13", "UTC"),
        ("America/New_York", "17:13", "America/New_York (UTC-05:00)"),
        ("Asia/Kolkata,330", "03:43", "Asia/Kolkata (UTC+05:30)"),
        # A name that this machine does not know: as far from UTC as the reader says.
        ("Mars/Olympus,-90", "20:43", "Mars/Olympus (UTC-01:30)"),
        *(
            (each, "23:13", "CET (UTC+01:00)")
            for each in ("Mars/Olympus", "../etc/passwd", "America")
        ),
        *((each, "23:13", "CET (UTC+01:00)") for each in ("", "<b>,60", "UTC,9999", "/etc/passwd")),
    ],
)
def test_a_moment_is_said_in_the_readers_zone(asked: str | None, clock: str, name: str) -> None:
    with in_zone(asked):
        assert (spoken_clock(NOW, NOW), zone_name(NOW)) == (clock, name)
    assert spoken_clock(NOW, NOW) == "23:13"


@given(st.text(max_size=80))
def test_no_text_asked_for_is_an_error(asked: str) -> None:
    with in_zone(asked):
        assert spoken_clock(NOW, NOW)
