"""Times at which jobs may begin: as sbatch and qsub read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.job_options.begin_time import parse_begin, parse_pbs_begin
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outcomes import outcome

pytestmark = pytest.mark.usefixtures("stockholm")


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


# As sbatch of Slurm 22.05 and 26.05 took each at this time of day (scontrol's EligibleTime).
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", "2026-11-21T16:48:30"),
        ("now+60", "2026-11-21T16:49:30"),
        ("now+1hour", "2026-11-21T17:48:30"),
        ("now + 3 days", "2026-11-24T16:48:30"),
        ("now+2minutes", "2026-11-21T16:50:30"),
        ("NOW-1week", "2026-11-14T16:48:30"),
        ("16:00", "2026-11-22T16:00:00"),
        ("17:00:05", "2026-11-21T17:00:05"),
        ("4:00PM", "2026-11-22T16:00:00"),
        ("12:30am", "2026-11-22T00:30:00"),
        ("12:30 pm", "2026-11-22T12:30:00"),
        ("midnight", "2026-11-22T00:00:00"),
        ("Noon", "2026-11-22T12:00:00"),
        ("fika", "2026-11-22T15:00:00"),
        ("teatime", "2026-11-22T16:00:00"),
        ("today", "2026-11-21T00:00:00"),
        ("tomorrow", "2026-11-22T00:00:00"),
        ("tomorrow noon", "2026-11-22T12:00:00"),
        ("tomorrowT10:00", "2026-11-22T10:00:00"),
        ("noon tomorrow", "2026-11-22T12:00:00"),
        ("6:00 pm tomorrow", "2026-11-22T18:00:00"),
        ("10:00 12/24", "2026-12-24T10:00:00"),
        ("2026-12-24", "2026-12-24T00:00:00"),
        ("2026-12-24T18:00", "2026-12-24T18:00:00"),
        ("2026-12-24 18:00:05", "2026-12-24T18:00:05"),
        ("12/24", "2026-12-24T00:00:00"),
        ("12/24/26", "2026-12-24T00:00:00"),
        ("1/5", "2027-01-05T00:00:00"),
        ("11/21", "2027-11-21T00:00:00"),
        ("122426", "2026-12-24T00:00:00"),
        ("122426 10:00", "2026-12-24T10:00:00"),
        ("2027-07-01T12:00", "2027-07-01T12:00:00"),  # summer time
    ],
)
def test_times_as_sbatch_takes_them(text: str, moment: str) -> None:
    assert parse_begin(text, at("2026-11-21T16:48:30")) == at(moment)


def test_epoch_seconds_are_read_as_they_stand() -> None:
    assert parse_begin("uts1800000000", 0) == 1_800_000_000


@pytest.mark.parametrize(
    "text",
    [
        *("", "18", "soon", "now+", "now+2min", "now+1h", "now+1month", "now+5 fortnights"),
        *("2026-12-24T18", "2026-12-24T6PM", "2026-1-2", "26-12-24", "25:00", "13:00pm", "0:30am"),
        *("2026-02-30", "12/24/2026", "131326", "10:60"),
    ],
)
def test_times_that_sbatch_refuses_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="; write"):
        parse_begin(text, at("2026-11-21T16:48:30"))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1830", "2026-11-21T18:30:00"),
        ("1600", "2026-11-22T16:00:00"),
        ("1830.15", "2026-11-21T18:30:15"),
        ("051200", "2026-12-05T12:00:00"),
        ("311200", "2026-12-31T12:00:00"),
        ("11201200", "2027-11-20T12:00:00"),
        ("02291200", "2028-02-29T12:00:00"),
        ("2612241800", "2026-12-24T18:00:00"),
        ("202612241800.30", "2026-12-24T18:00:30"),
    ],
)
def test_times_as_qsub_takes_them(text: str, moment: str) -> None:
    assert parse_pbs_begin(text, at("2026-11-21T16:48:30")) == at(moment)


@pytest.mark.parametrize("text", ["", "18:30", "2460", "02301200", "202613011200", "1"])
def test_times_that_qsub_refuses_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no time"):
        parse_pbs_begin(text, at("2026-11-21T16:48:30"))


@given(st.text(alphabet="now+-0123456789:/TAMPsecdy ", max_size=16))
def test_any_text_is_a_time_or_a_clear_error(text: str) -> None:
    for parse in (parse_begin, parse_pbs_begin):
        found = outcome(lambda parse=parse: parse(text, 1_800_000_000))  # type: ignore[misc]
        assert isinstance(found, int) or ";" in str(found)


@given(st.integers(1_800_000_000, 2_100_000_000))
def test_a_full_date_comes_back(moment: int) -> None:
    whole = datetime.fromtimestamp(moment, UTC).replace(tzinfo=None)
    assert parse_begin(whole.isoformat(), 1_800_000_000) == whole.timestamp()
    assert parse_pbs_begin(whole.strftime("%Y%m%d%H%M.%S"), 1_800_000_000) == whole.timestamp()
