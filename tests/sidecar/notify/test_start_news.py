"""What is news of a waiting job, and what is only a flutter of its forecast."""

from __future__ import annotations

import itertools

import pytest
from foretime_sidecar.notify.start_news import (
    LEAST_MOVE_S,
    News,
    NewsRule,
    Outlook,
    Told,
    next_news,
)
from hypothesis import given
from hypothesis import strategies as st

HOUR = 3600
NOW = 1_700_000_000
RULE = NewsRule()


def outlook(likely_h: float, sure_h: float) -> Outlook:
    return Outlook(NOW + int(likely_h * HOUR), NOW + int(sure_h * HOUR))


KNOWN = Told(outlook(5, 8))


@pytest.mark.parametrize(
    ("likely_h", "sure_h", "moved_h"),
    [
        (5, 8, 0),
        (8, 12, 0),  # not after the bound that was told
        (8.1, 12, 3.1),
        (4, 5, 0),  # the new bound is not before the start that was told
        (3, 4.9, -2),
        (3, 7, 0),
    ],
)
def test_a_move_counts_only_beyond_the_uncertainty_that_was_shown(
    likely_h: float, sure_h: float, moved_h: float
) -> None:
    news, told = next_news("17", KNOWN, outlook(likely_h, sure_h), NOW, RULE)
    if not moved_h:
        assert news is None
        assert told == KNOWN
        return
    assert news is not None
    assert (news.event, news.moved_s) == ("moved", int(moved_h * HOUR))
    assert told == Told(outlook(likely_h, sure_h), soon=False, moved_at=NOW)


def test_a_sure_start_that_moves_a_little_is_no_news() -> None:
    sure = Told(outlook(5, 5))
    for moved_s, counts in ((LEAST_MOVE_S - 1, False), (LEAST_MOVE_S, True)):
        for sign in (1, -1):
            moved = Outlook(NOW + 5 * HOUR + sign * moved_s, NOW + 5 * HOUR + sign * moved_s)
            news, _ = next_news("17", sure, moved, NOW, RULE)
            assert (news is not None) is counts


def test_moves_of_one_start_are_told_some_time_apart() -> None:
    _, told = next_news("17", KNOWN, outlook(9, 10), NOW, RULE)
    early, kept = next_news("17", told, outlook(12, 13), NOW + RULE.between_s - 1, RULE)
    assert early is None
    assert kept == told
    later, _ = next_news("17", told, outlook(12, 13), NOW + RULE.between_s, RULE)
    assert later is not None
    assert later.moved_s == 3 * HOUR


def test_a_soon_start_is_told_once_and_again_only_after_it_has_moved_away() -> None:
    near = Outlook(NOW + 600, NOW + 900)
    news, told = next_news("17", KNOWN, near, NOW, RULE)
    assert news is not None
    assert news.event == "soon"
    assert next_news("17", told, Outlook(NOW + 600, NOW + 960), NOW + 60, RULE)[0] is None
    away, told = next_news("17", told, outlook(2, 3), NOW + 120, RULE)
    assert away is not None
    assert away.event == "moved"
    again, _ = next_news("17", told, Outlook(NOW + 700, NOW + 900), NOW + 180, RULE)
    assert again is not None
    assert again.event == "soon"


def test_a_soon_start_that_comes_sooner_still_is_no_more_news() -> None:
    rule = NewsRule(soon_s=2 * HOUR)
    news, told = next_news("17", KNOWN, outlook(1.9, 1.95), NOW, rule)
    assert news is not None
    assert news.event == "soon"
    assert next_news("17", told, outlook(0.5, 0.6), NOW + 60, rule)[0] is None


def test_a_start_that_is_soon_at_the_first_forecast_is_told_at_once() -> None:
    far, told = next_news("17", Told(), outlook(5, 8), NOW, RULE)
    assert far is None
    assert told.outlook == outlook(5, 8)
    near, _ = next_news("17", Told(), Outlook(NOW + 60, NOW + 60), NOW, RULE)
    assert near is not None
    assert near.event == "soon"


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=60))
def test_however_a_forecast_flutters_moves_are_few(forecasts: list[tuple[int, int]]) -> None:
    told, moves, now = Told(), [], NOW
    for likely_s, more_s in forecasts:
        news, told = next_news("17", told, Outlook(now + likely_s, now + likely_s + more_s), now,
                               RULE)  # fmt: skip
        if news is not None and news.event == "moved":
            moves.append(now)
            assert abs(news.moved_s) >= LEAST_MOVE_S
        now += 60
    assert all(two - one >= RULE.between_s for one, two in itertools.pairwise(moves))


@pytest.mark.usefixtures("stockholm")
def test_news_in_words() -> None:
    near = Outlook(NOW + 610, NOW + 2 * HOUR)
    assert News("soon", "17", NOW, near).text == (
        "Job 17 starts in about 10 min (23:23), 95% sure by tomorrow 01:13."
    )
    assert News("moved", "17", NOW, near, 3 * HOUR).text == (
        "The start of job 17 moved by 3 h, later: likely 23:23, 95% sure by tomorrow 01:13."
    )
    assert ", sooner: likely" in News("moved", "17", NOW, near, -HOUR).text
    assert News("started", "17", NOW, started_at=NOW - 60).text == "Job 17 has started at 23:12."
    assert News("started", "17", NOW).text == "Job 17 has started."
    assert News("soon", "17", NOW, near).as_json() == {
        "text": News("soon", "17", NOW, near).text,
        "event": "soon",
        "job_id": "17",
        "at": NOW,
        "moved_s": 0,
        "started_at": None,
        "likely_start": NOW + 610,
        "sure_by": NOW + 2 * HOUR,
    }
