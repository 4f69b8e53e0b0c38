"""How often one caller may ask: a token bucket each, and 429 with Retry-After when it is empty."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.auth.callers import FOR_MONITORING, ApiError, Caller, caller_of

# Advice runs the queue forward once for each other shape of the work.
_TOKENS = {"/v1/advice": 5}
_MOST_BUCKETS = 10_000
# Of a token: a caller who comes back exactly when told is not sent away again by the last bit.
_ROUNDING = 1e-9


class RateLimits:
    """A bucket of tokens for each caller, filled at ``api.requests_per_minute``.

    Parameters
    ----------
    settings
        Rate and size of the buckets.
    clock
        Seconds that only grow.
    """

    def __init__(self, settings: ApiSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = settings.requests_per_minute / 60
        self._size = max(settings.request_burst, *_TOKENS.values())
        self._clock = clock
        self._lock = threading.Lock()
        # What is in each bucket, and since when.
        self._buckets: dict[str, tuple[float, float]] = {}

    async def check(self, request: Request, caller: Annotated[Caller, Depends(caller_of)]) -> None:
        """Refuse a request of a caller whose bucket is empty; a FastAPI dependency of every path.

        Raises
        ------
        ApiError
            429, with the seconds until there are tokens enough.
        """
        self.charge(request.url.path, caller)

    def charge(self, path: str, caller: Caller) -> None:
        """Take what an answer of a path costs out of a caller's bucket.

        Raises
        ------
        ApiError
            429, with the seconds until there are tokens enough.
        """
        if path in FOR_MONITORING or caller.sees_everybody:
            return
        wait_s = self.take(caller.whom, _TOKENS.get(path, 1))
        if wait_s:
            raise ApiError(
                429,
                f"{caller.whom} asks too often: {round(60 * self._per_s)} requests a minute are "
                "answered (api.requests_per_minute)",
                path,
                f"ask again in {wait_s} s",
                {"Retry-After": str(wait_s)},
            )

    def take(self, whom: str, tokens: int) -> int:
        """Take tokens out of a caller's bucket; give 0, or if it has too few in how many seconds.

        Nothing is taken then.
        """
        now = self._clock()
        with self._lock:
            held, since = self._buckets.get(whom, (self._size, now))
            held = min(held + (now - since) * self._per_s, self._size)
            if held < tokens - _ROUNDING:
                return math.ceil((tokens - held) / self._per_s)
            self._buckets[whom] = max(held - tokens, 0), now
            if len(self._buckets) > _MOST_BUCKETS:
                self._forget_full(now)
        return 0

    def _forget_full(self, now: float) -> None:
        """Drop the buckets that are full again, which is what a new one is; else the fullest."""
        full = {
            whom: min(held + (now - since) * self._per_s, self._size)
            for whom, (held, since) in self._buckets.items()
        }
        fullest = max(full.values())
        self._buckets = {
            whom: bucket for whom, bucket in self._buckets.items() if full[whom] < fullest
        }
