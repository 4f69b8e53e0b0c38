"""The interpreter's settings under which questions are answered while other threads work."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SWITCH_S = 0.0005
"""How long a thread that computes goes on while another one waits. An answer waits some ten times,
so that with Python's own 5 ms it took 50."""
_NEVER = 1_000_000
_HOUR_S = 3600.0


@contextmanager
def prompt_answers(clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[], None]]:
    """Let no other thread keep an answer waiting for long.

    Python would search all objects for garbage at most looks. No thread runs meanwhile, which takes
    .3 s where 10,000 jobs wait. Here only young objects are searched.

    Yields
    ------
    Callable
        To be called after each look: once an hour it searches all objects.
    """
    young, middle, old = gc.get_threshold()
    switch_s = sys.getswitchinterval()
    due = clock() + _HOUR_S

    def collect() -> None:
        nonlocal due
        if clock() >= due:
            gc.collect()
            due = clock() + _HOUR_S

    gc.set_threshold(young, middle, _NEVER)
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield collect
    finally:
        gc.set_threshold(young, middle, old)
        sys.setswitchinterval(switch_s)
