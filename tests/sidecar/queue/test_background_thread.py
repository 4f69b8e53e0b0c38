"""Work beside the polls."""

from __future__ import annotations

import os
import threading
from typing import Any, NoReturn

import pytest
from foretime_sidecar.queue.background_thread import BackgroundThread


class Work:
    failures = 0
    last_failure = ""

    def __init__(self) -> None:
        self.worked = threading.Event()

    def refresh(self, *, hurried: bool = False) -> bool:
        self.worked.set()
        return False

    def save(self) -> None: ...


def test_it_works_where_its_priority_may_not_be_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under a unit whose filter of system calls leaves setpriority out."""

    def refuse(*_: Any) -> NoReturn:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setpriority", refuse)
    work = Work()
    thread = BackgroundThread("trial", work, 100)
    thread.start()
    thread.wake()
    assert work.worked.wait(60)
    thread.end()
    assert thread.has_ended(60)
