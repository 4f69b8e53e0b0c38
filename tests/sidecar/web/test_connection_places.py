"""Who gets a place for a connection, and whose makes room for it."""

from __future__ import annotations

import os
import pwd
from collections import Counter
from dataclasses import dataclass

import pytest
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.connections.connection_places import (
    OPERATORS,
    PROXIES,
    SPARE,
    USERS,
    Held,
    Places,
)
from hypothesis import given
from hypothesis import strategies as st

DAEMON_USER, NOBODY = 1, 65534


@dataclass(eq=False)
class Connection:
    """Held by a test; ``since`` is ``None`` while it is being answered."""

    owner: int | None
    since: float | None = 0.0
    reads: bool = False
    closed: bool = False

    @property
    def gives_way(self) -> tuple[int, float] | None:
        return None if self.since is None else (int(self.reads), self.since)

    def give_way(self) -> None:
        self.closed = True


def enter(
    places: Places, number: int, owner: int | None, *, busy: bool = False
) -> list[Connection]:
    made = [Connection(owner, None if busy else float(index)) for index in range(number)]
    for each in made:
        assert places.enter(each)
    return made


@pytest.fixture
def places() -> Places:
    return Places(ApiSettings(operators=["daemon", "nobody-of-that-name"], proxy_users=["nobody"]))


def test_the_users_are_those_of_the_settings() -> None:
    assert pwd.getpwnam("daemon").pw_uid == DAEMON_USER
    assert pwd.getpwnam("nobody").pw_uid == NOBODY


def test_ones_own_oldest_makes_room(places: Places) -> None:
    held = enter(places, USERS.of_one + 3, 1000)
    assert [each.closed for each in held] == [True] * 3 + [False] * USERS.of_one


def test_nobody_whom_nothing_tells_apart_is_one_user(places: Places) -> None:
    held = enter(places, USERS.of_one + 1, None)
    assert [each.closed for each in held].count(True) == 1


def test_who_has_not_asked_goes_before_who_has_not_read(places: Places) -> None:
    readers = [Connection(1000, index, reads=True) for index in range(USERS.of_one - 1)]
    asker = Connection(1000, 100.0)
    for each in (*readers, asker, Connection(1000, 101.0)):
        assert places.enter(each)
    assert asker.closed
    assert not any(each.closed for each in readers)


def test_what_is_being_answered_is_not_closed(places: Places) -> None:
    held = enter(places, USERS.of_one, 1000, busy=True)
    spare = [Connection(1000) for _ in range(SPARE + 2)]
    assert not any(map(places.enter, spare))
    assert [each.closed for each in spare].count(True) == 2
    assert not any(each.closed for each in held)
    places.leave(held[0])
    assert places.enter(Connection(1000))


def test_who_holds_most_makes_room_for_who_holds_less(places: Places) -> None:
    crowds = [
        enter(places, USERS.of_one, 2000 + index) for index in range(USERS.of_all // USERS.of_one)
    ]
    for newcomer in enter(places, 5, 3000):
        assert not newcomer.closed
    assert sum(each.closed for crowd in crowds for each in crowd) == 5
    # Those who hold as much as others make room of their own.
    assert places.enter(Connection(2000))
    assert sum(each.closed for each in crowds[0]) >= 1


def test_a_place_is_refused_only_while_all_are_answered(places: Places) -> None:
    for index in range(USERS.of_all // USERS.of_one):
        enter(places, USERS.of_one, 2000 + index, busy=True)
    assert not places.enter(Connection(3000))
    # Others' places are their own.
    for owner, most in ((0, OPERATORS), (DAEMON_USER, OPERATORS), (NOBODY, PROXIES)):
        enter(places, most.of_one, owner)
    assert places.enter(Connection(os.geteuid()))


def test_a_proxy_takes_nobody_elses_places(places: Places) -> None:
    held = enter(places, 3 * PROXIES.of_one, NOBODY)
    assert sum(not each.closed for each in held) == PROXIES.of_one
    for owner in (0, 1000, None):
        assert not enter(places, 1, owner)[0].closed


OWNERS = st.sampled_from((None, 0, DAEMON_USER, NOBODY, *range(2000, 2030)))


@given(
    st.lists(
        st.tuples(OWNERS, st.booleans(), st.booleans(), st.integers(1, 60)), min_size=1, max_size=40
    ),
)
def test_places_are_bounded_and_nobody_is_closed_for_who_has_more(
    asked: list[tuple[int | None, bool, bool, int]],
) -> None:
    places = Places(ApiSettings(operators=["daemon"], proxy_users=["nobody"]))
    held: list[Connection] = []
    now = 0.0
    for owner, busy, reads, number in asked:
        for _ in range(number):
            now += 1
            before = Counter(each.owner for each in held)
            newcomer = Connection(owner, None if busy else now, reads)
            taken = places.enter(newcomer)
            lost = [each for each in held if each.closed]
            assert len(lost) <= 1
            assert taken or not lost
            for each in lost:
                assert each.owner == owner or before[each.owner] > before[owner]
            held = [each for each in held if not each.closed] + [newcomer] * taken
            if not taken:
                own = [each for each in held if each.owner == owner]
                assert all(each.since is None for each in own)
                places.leave(newcomer)
        if held and len(held) % 7 == 0:
            places.leave(held.pop(0))
    counts = Counter(each.owner for each in held)
    for owner, count in counts.items():
        assert count <= (PROXIES if owner == NOBODY else USERS).of_one
    assert len(held) <= sum(share.of_all for share in (USERS, OPERATORS, PROXIES))
    assert set(held) == set().union(*places._held.values())


def test_held_is_what_places_take() -> None:
    held: Held = Connection(1)
    assert held.owner == 1
