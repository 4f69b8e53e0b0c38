"""What a site's clocks show, and the hours of the week by them."""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.models.description import describe
from foretime_sim.models.lublin2003 import generate
from foretime_sim.models.week_profile import WeekProfile
from foretime_sim.workloads.site_clock import UTC, site_clock, zone_of


@pytest.mark.parametrize("name", ["Europe/Stockholm", "US/Pacific", "Asia/Kolkata", "UTC"])
def test_it_shows_what_the_calendar_says(name: str) -> None:
    begin = int(datetime.datetime(1996, 10, 26, tzinfo=datetime.UTC).timestamp())
    moments = begin + np.arange(0, 3 * 86_400, 701)  # over the end of summer time
    zone = zoneinfo.ZoneInfo(name)
    local = [datetime.datetime.fromtimestamp(int(moment), zone) for moment in moments]
    written = [
        int(moment.replace(tzinfo=datetime.UTC).timestamp()) for moment in local
    ]  # what the wall shows, read as if it were UTC
    assert site_clock(name).shows(moments).tolist() == written


def test_a_zone_that_is_not_known_is_utc_and_says_so() -> None:
    assert site_clock(None) == UTC
    assert site_clock("Mars/X") == ("UTC ('Mars/X' is no time zone)", datetime.UTC)
    with pytest.raises(InputError, match="time zone 'Mars/X' is unknown; give a name like"):
        zone_of("Mars/X")


def test_hours_of_the_week_are_the_sites() -> None:
    # An hour of Tuesday's morning in Kolkata, 9:30 to 10:30 there, which is 4:00 to 5:00 in UTC.
    tuesday = int(datetime.datetime(2024, 1, 2, 4, tzinfo=datetime.UTC).timestamp())
    jobs = generate(1_201, processors=64, load=0.5)
    weeks = np.repeat(np.arange(4) * 7 * 86_400, 300)
    submit = np.concatenate((weeks + np.tile(np.arange(300) * 12, 4), [28 * 86_400]))
    workload = replace(jobs, submit_time=submit, unix_start_time=tuesday)
    rates = WeekProfile.of(workload, site_clock("Asia/Kolkata")).rates
    assert np.argsort(rates)[-2:].tolist() in ([33, 34], [34, 33])  # Tuesday's tenth and eleventh
    assert np.argmax(WeekProfile.of(workload).rates) == 28
    found = describe(workload, site_clock("Asia/Kolkata")).submissions
    assert found is not None
    assert found.hours_of == "Asia/Kolkata"
    assert found.weekend is not None
    unknown = describe(replace(workload, unix_start_time=None)).submissions
    assert unknown is not None
    assert unknown.weekend is None
    assert unknown.hours_of == "UTC"
