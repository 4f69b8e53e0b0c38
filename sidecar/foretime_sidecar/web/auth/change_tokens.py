"""Tokens for requests that change anything: who sends one has first read an answer of the daemon's.

A page of another site can have a browser send requests, but neither read the answers nor, without
leave, add a header.
"""

from __future__ import annotations

import hmac
import math
import secrets
import time
from collections.abc import Callable

VALID_S = 600


class ChangeTokens:
    """Makes tokens and checks them; those of before the daemon's start are none.

    Parameters
    ----------
    clock
        Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._key = secrets.token_bytes(32)
        self._clock = clock

    def make(self, who: str) -> str:
        """Give a caller a token, for `VALID_S`."""
        return self._signed(math.ceil(self._clock()) + VALID_S, who)

    def fault(self, token: str, who: str) -> str | None:
        """Say what is wrong with a token that a caller shows; ``None`` if nothing is."""
        until, _, _ = token.partition(".")
        if not (until.isascii() and until.isdigit() and len(until) < 16):
            return "this is no token"
        shown = token.encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(shown, self._signed(int(until), who).encode()):
            return "this is no token of yours, or one of before the daemon's start"
        return "the token has expired" if int(until) < self._clock() else None

    def _signed(self, until: int, who: str) -> str:
        return f"{until}.{hmac.digest(self._key, f'{until}.{who}'.encode(), 'sha256').hex()}"
