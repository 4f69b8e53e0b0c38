"""Messages on their way: tried again, given up, dropped; nobody waits for one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from foretime_sidecar.notify.mail import NotSentError
from foretime_sidecar.notify.outbox import Outbox


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def outbox() -> Iterator[Outbox]:
    outbox = Outbox(attempts=3, most=2, pause_s=0.01)
    yield outbox
    outbox.end()


class Attempts:
    """Fails as it is told to, and counts."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.made = 0

    def __call__(self) -> None:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)


def passing() -> NotSentError:
    return NotSentError("it is down", passing=True)


def test_what_may_still_work_is_tried_again(outbox: Outbox) -> None:
    attempts = Attempts(passing(), passing())
    outbox.put("ann", attempts)
    wait_until(lambda: outbox.sent == 1)
    assert (attempts.made, outbox.failed, outbox.dropped) == (3, 0, 0)


@pytest.mark.parametrize(
    ("errors", "made"),
    [
        ([passing(), passing(), passing()], 3),
        ([NotSentError("no such user", passing=False)], 1),
        ([ZeroDivisionError()], 1),
    ],
)
def test_what_fails_is_given_up_and_the_next_is_sent(
    outbox: Outbox, errors: list[Exception], made: int
) -> None:
    fails, works = Attempts(*errors), Attempts()
    outbox.put("ann", fails)
    outbox.put("ann", works)
    wait_until(lambda: outbox.sent == 1)
    assert (fails.made, works.made, outbox.failed) == (made, 1, 1)


def test_a_server_that_is_down_does_not_fill_the_log(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "foretime")
    for failed in range(1, 6):
        outbox.put("ann", Attempts(NotSentError("it is down", passing=False)))
        wait_until(lambda failed=failed: outbox.failed == failed)  # type: ignore[misc]
    outbox.put("ann", Attempts())
    wait_until(lambda: outbox.sent == 1)
    assert [record.getMessage() for record in caplog.records] == [
        "notifications are not sent: it is down",
        "notifications are sent again",
    ]


def test_a_full_queue_drops_at_once_and_counts(outbox: Outbox) -> None:
    stuck, began = threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        assert stuck.wait(30)

    outbox.put("ann", slow)
    assert began.wait(30)
    put_at = time.monotonic()
    for _ in range(100):
        outbox.put("ann", Attempts())
    assert time.monotonic() - put_at < 1
    assert outbox.dropped == 98
    stuck.set()
    wait_until(lambda: outbox.sent == 3)


def test_what_waits_for_a_user_can_be_forgotten() -> None:
    outbox, stuck, began = Outbox(), threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        assert stuck.wait(30)

    ann, bob = Attempts(), Attempts()
    outbox.put("eve", slow)
    assert began.wait(30)
    outbox.put("ann", ann)
    outbox.put("bob", bob)
    outbox.forget("ann")
    stuck.set()
    wait_until(lambda: outbox.sent == 2)
    assert (ann.made, bob.made, outbox.dropped) == (0, 1, 1)
    outbox.end()


def test_its_end_waits_for_no_server() -> None:
    outbox = Outbox(attempts=10, pause_s=60)
    attempts = Attempts(*[passing() for _ in range(10)])
    outbox.put("ann", attempts)
    wait_until(lambda: attempts.made == 1)
    began = time.monotonic()
    outbox.end()
    wait_until(lambda: outbox.failed == 1)
    assert time.monotonic() - began < 5
    assert attempts.made <= 2
    outbox.put("ann", Attempts())
    assert outbox.dropped == 1
