"""What Foretime has brought: sums, signs, and how sure they are."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from foretime_estimators.time_units import DAY_S
from foretime_sidecar.plain_beside.account import BYS, account_of, size_class, week_of
from foretime_sidecar.plain_beside.worse_days import why_worse
from foretime_sidecar.store.plain_starts import JudgedJob
from hypothesis import given
from hypothesis import strategies as st

HOUR = 3600
TIMES = st.integers(0, 30 * DAY_S)
WAITS = st.integers(0, 5 * DAY_S)


@st.composite
def judged(draw: st.DrawFn) -> JudgedJob:
    """Draw a job that started, some of which the model does not know."""
    could = draw(TIMES)
    known = st.one_of(st.none(), WAITS.map(lambda wait: could + wait))
    return JudgedJob(
        draw(st.sampled_from([None, "ann", "bob", "cleo"])),
        draw(st.integers(1, 5_000)),
        could,
        could + draw(WAITS),
        draw(known),
        draw(known),
        draw(st.booleans()),
    )


@given(st.lists(judged(), max_size=30))
def test_rows_of_every_kind_add_up_to_the_total(jobs: list[JudgedJob]) -> None:
    accounts = [account_of(jobs, 0, by) for by in BYS]
    for account in accounts:
        for total, rows in (
            (account.brought, account.brought_rows),
            (account.would_bring, account.would_bring_rows),
        ):
            for hours in ("jobs", "without_hours", "with_hours", "saved_hours"):
                added = sum(asdict(row)[hours] for row in rows)
                assert added == pytest.approx(asdict(total)[hours], abs=1e-6)
    assert len({account.brought for account in accounts}) == 1
    account = accounts[0]
    told = account.brought.jobs + account.would_bring.jobs + account.left_out_jobs
    assert told == len(jobs)


def test_on_days_with_us_the_model_is_what_would_have_been() -> None:
    """It waited one hour, and would have waited three without us."""
    job = JudgedJob("ann", 8, 0, HOUR, 3 * HOUR, None, True)
    account = account_of([job], 0, "user")
    assert (account.brought.without_hours, account.brought.with_hours) == (3, 1)
    assert (account.brought.saved_hours, account.would_bring.jobs) == (2, 0)
    assert account.brought.low_hours is None, "nothing tells how far the model is off"


def test_on_other_days_the_real_wait_is_the_one_without_us() -> None:
    job = JudgedJob("ann", 8, 0, 3 * HOUR, 4 * HOUR, HOUR, False)
    account = account_of([job], 0, "user")
    assert account.would_bring.saved_hours == 2
    assert account.model.bias_percent == pytest.approx(100 / 3)


def test_the_told_interval_is_as_wide_as_the_model_is_wrong() -> None:
    """A model 10% too long on each of ten days: what was saved is told 10% of that less or more."""
    jobs = [
        JudgedJob(
            "ann", 8, day * DAY_S, day * DAY_S + 100, day * DAY_S + 300, day * DAY_S + 110, True
        )
        for day in range(10)
    ]
    total = account_of(jobs, 0, "week").brought
    assert total.saved_hours * 3600 == 2000
    assert total.low_hours is not None
    assert total.high_hours is not None
    assert total.low_hours * 3600 == pytest.approx(2000 - 300)
    assert total.high_hours * 3600 == pytest.approx(2000 + 300)


def test_errors_of_days_that_make_up_for_each_other_count_for_less() -> None:
    def half_width(errors: list[int]) -> float:
        jobs = [
            JudgedJob("ann", 8, at, at + 1000, at + 3000, at + 1000 + error, True)
            for at, error in ((day * DAY_S, error) for day, error in enumerate(errors))
        ]
        brought = account_of(jobs, 0, "week").brought
        assert brought.high_hours is not None
        return brought.high_hours - brought.saved_hours

    apart = [0, 300, 0, 0, 0, 0, -300, 0, 0, 0]
    in_a_row = [0, 300, -300, 0, 0, 0, 0, 0, 0, 0]
    together = [0, 300, 300, 0, 0, 0, 0, -300, -300, 0]
    assert half_width(in_a_row) < half_width(apart) < half_width(together) / 1.5


def test_what_would_come_is_told_with_the_error_that_nothing_shows_yet() -> None:
    """The model without us is exact on each day: that of us need not be."""
    jobs = [
        JudgedJob("ann", 8, at, at + 3 * HOUR, at + 3 * HOUR, at + HOUR, False)
        for at in (day * DAY_S for day in range(10))
    ]
    would = account_of(jobs, 0, "week").would_bring
    assert (would.saved_hours, would.low_hours, would.high_hours) == pytest.approx((20, 19.2, 20.8))


def test_sizes_and_weeks_have_names_that_people_know() -> None:
    assert [size_class(each) for each in (1, 2, 4, 5, 16, 17, 64, 65)] == [
        *("1", "2-4", "2-4", "5-16", "5-16", "17-64", "17-64", "65-256")
    ]
    assert week_of(1_795_000_000) == "2026-W47"


def _days(
    with_s: list[int], without_s: list[int], model_with_s: int | None = None
) -> list[JudgedJob]:
    jobs = []
    for day, (ours, plain) in enumerate(zip(with_s, without_s, strict=True)):
        at = day * DAY_S
        modelled = None if model_with_s is None else at + model_with_s
        jobs += [JudgedJob("ann", 1, at, at + ours, at + plain, modelled, True)] * 20
    return jobs


def test_waits_that_are_longer_day_after_day_are_told() -> None:
    worse = _days([2000, 2100, 1900, 2050, 2000, 1950, 2010], [1000] * 7)
    assert why_worse(worse) == (
        "on 7 days jobs waited 00:33:21 in the mean, and would have waited 00:16:40 without "
        "Foretime (foretime brought)"
    )


@pytest.mark.parametrize(
    "jobs",
    [
        _days([2000] * 6, [1000] * 6),
        _days([1000, 9000, 800, 1200, 900, 1000, 1000], [1000] * 7),
        _days([1050] * 7, [1000] * 7),
        _days([2000] * 7, [1000] * 7, model_with_s=1000),
    ],
    ids=["too few days", "one bad day", "hardly longer", "the model is as wrong with us"],
)
def test_what_may_be_chance_or_the_models_fault_opens_no_breaker(jobs: list[JudgedJob]) -> None:
    assert why_worse(jobs) == ""
