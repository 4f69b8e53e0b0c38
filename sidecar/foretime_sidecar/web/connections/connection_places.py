"""Places for connections: how many each user may hold, and which one makes room for another."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.auth.identity import uid_of


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the places, which no other kind of user can take.

    Attributes
    ----------
    of_one
        Connections of one user at a time.
    of_all
        Of all users of this kind.
    """

    of_one: int
    of_all: int


# All together stay well below the 1,024 files that a process may usually open.
USERS = Share(of_one=32, of_all=256)
OPERATORS = Share(of_one=32, of_all=64)
PROXIES = Share(of_one=128, of_all=128)  # each of which is many callers
SPARE = 32  # for asking after the daemon's health, once it is at work on all others


class Held(Protocol):
    """A connection that holds a place."""

    @property
    def owner(self) -> int | None:
        """Uid of the process at its other end; ``None`` for all whom nothing tells apart."""

    @property
    def gives_way(self) -> tuple[int, float] | None:
        """When it makes room, the least first; ``None``: not now, as it is being answered."""

    def give_way(self) -> None:
        """Close it."""


class Places:
    """Hands out places.

    A user who holds as many as one may, and all users once all places are taken, get a new one by
    closing an old one: of their own, or of those who hold more than they do. So a place is never
    refused because clients are slow, but only because the daemon is at work on all. Then there are
    spare ones.

    Parameters
    ----------
    settings
        Who is an operator, and who a proxy.
    """

    def __init__(self, settings: ApiSettings) -> None:
        # Looked up once: a directory of users may be too slow to be asked at each connection.
        self._operators = {0, os.geteuid(), *map(uid_of, settings.operators)} - {None}
        self._proxies = set(map(uid_of, settings.proxy_users)) - {None}
        self._held: defaultdict[int | None, set[Held]] = defaultdict(set)
        self._spare: set[Held] = set()

    def enter(self, newcomer: Held) -> bool:
        """Give a connection a place, if need be that of another; say whether it is no spare one.

        One for which there is not even a spare one is closed.
        """
        share, own = self._share(newcomer.owner), self._held[newcomer.owner]
        if len(own) >= share.of_one:
            has_place = self._close_one(own)
        elif self._taken(share) < share.of_all:
            has_place = True
        else:
            # Of those who hold most first; they may be at work on all of theirs.
            rivals = [
                held
                for owner, held in self._held.items()
                if self._share(owner) is share and (held is own or len(held) > len(own))
            ]
            has_place = any(map(self._close_one, sorted(rivals, key=len, reverse=True)))
        if has_place:
            self._held[newcomer.owner].add(newcomer)
        elif len(self._spare) < SPARE or self._close_one(self._spare):
            self._spare.add(newcomer)
        else:
            newcomer.give_way()
        return has_place

    def leave(self, connection: Held) -> None:
        """Take a connection's place back, if it has one."""
        self._spare.discard(connection)
        held = self._held[connection.owner]
        held.discard(connection)
        if not held:
            del self._held[connection.owner]

    def _share(self, owner: int | None) -> Share:
        if owner in self._proxies:
            return PROXIES
        return OPERATORS if owner in self._operators else USERS

    def _taken(self, share: Share) -> int:
        return sum(len(held) for owner, held in self._held.items() if self._share(owner) is share)

    @staticmethod
    def _close_one(held: set[Held]) -> bool:
        """Have one of these make room; say whether one does."""
        ways = [(way, id(each), each) for each in held if (way := each.gives_way) is not None]
        if not ways:
            return False
        *_, loser = min(ways)
        held.discard(loser)
        loser.give_way()
        return True
