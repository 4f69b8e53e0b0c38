"""Whose turn it is to have the queue run forward: everybody's alike, however many ask how often."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool

from foretime_sidecar.web.auth.callers import Caller

Answer = TypeVar("Answer")
# Of the 40 threads that answer. It keeps the processors busy, and the others free for the rest.
_AT_ONCE = 4


class FairTurns:
    """Has long work done in threads: of one caller one piece at a time, of all a few.

    Operators do not wait: the others never have all threads.
    """

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(_AT_ONCE)
        self._of_caller: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take(self, caller: Caller, work: Callable[[], Answer]) -> Answer:
        """Do some work of a caller's when it is their turn."""
        if caller.sees_everybody:
            return await run_in_threadpool(work)
        own = self._of_caller.setdefault(caller.whom, asyncio.Lock())
        async with own, self._all:
            return await run_in_threadpool(work)
