"""What the daemon sets in the interpreter while it polls."""

from __future__ import annotations

import gc
import sys
import weakref

from foretime_sidecar.web.prompt_answers import prompt_answers


class _Circle:
    def __init__(self) -> None:
        self.itself = self


def test_threads_take_turns_quickly_and_all_is_as_before_afterwards() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    with prompt_answers():
        assert sys.getswitchinterval() < before[0]
        assert gc.get_threshold()[:2] == before[1][:2]
        assert gc.isenabled()
    assert (sys.getswitchinterval(), gc.get_threshold()) == before


def test_old_garbage_is_searched_for_once_an_hour() -> None:
    now = 0.0
    with prompt_answers(lambda: now) as collect_garbage:
        for hour in (3_600.0, 7_200.0):
            circle = _Circle()
            for generation in (0, 1):
                gc.collect(generation)  # it is old now
            gone = weakref.ref(circle)
            del circle
            now = hour - 1
            collect_garbage()
            assert gone() is not None
            now = hour
            collect_garbage()
            assert gone() is None
