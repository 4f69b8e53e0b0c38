"""Advance reservations: the file of them, and what can't be reserved."""

from __future__ import annotations

from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.advance_reservations import check_reservations, read_reservations


def test_reservations_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "maintenance.csv"
    path.write_text("start, processors, duration\n3600,4,60\n\n-5,1,100\n", encoding="utf-8")
    assert read_reservations(path) == (
        AdvanceReservation(3600, 60, 4),
        AdvanceReservation(-5, 100, 1),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "maintenance.csv: the file is empty; name another CSV file"),
        ("start,duration\n", "maintenance.csv:1: the columns are start, duration"),
        ("start,duration,processors\n1,2,3\n1,x,3\n", "maintenance.csv:3: duration is 'x'"),
        ("start,duration,processors\n1,2\n", "maintenance.csv:2: processors is ''"),
        ("start,duration,processors\n1,0,3\n", "maintenance.csv:2: duration is 0: it must be"),
        ("start,duration,processors\n1,1.5,3\n", "give a whole number"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "maintenance.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_reservations(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.csv: there is no such file"):
        read_reservations(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([AdvanceReservation(0, 0, 1)], "advance reservation 0: duration 0 s"),
        ([AdvanceReservation(0, 1, 1), AdvanceReservation(0, 1, 0)], "advance reservation 1: .* 0"),
        ([AdvanceReservation(2**60, 1, 1)], "advance reservation 0: start"),
        (
            [AdvanceReservation(0, 9, 3), AdvanceReservation(4, 9, 3)],
            "advance reservation 1: 6 processors are claimed at 4 s, the machine has 4",
        ),
    ],
)
def test_what_cannot_be_reserved_is_refused(claims: list[AdvanceReservation], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_reservations(claims, 4)
    with pytest.raises(InputError, match=message):
        Engine(4, reservations=claims)


def test_one_may_follow_another() -> None:
    check_reservations([AdvanceReservation(5, 5, 4), AdvanceReservation(0, 5, 4)], 4)
