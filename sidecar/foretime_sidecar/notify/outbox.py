"""Messages on their way: a bounded queue, and a thread that sends them one after the other."""

from __future__ import annotations

import logging
import threading
from collections import deque

import tenacity

from foretime_sidecar.notify.mail import NotSentError
from foretime_sidecar.notify.ways import Attempt

logger = logging.getLogger("foretime")

_MOST = 1000
_PAUSE_S = 2.0  # before the second attempt; it doubles
_LONGEST_PAUSE_S = 60.0


class Outbox:
    """Sends messages, and never lets anybody wait for one.

    Parameters
    ----------
    attempts
        How often a message is tried while it may still work.
    most
        Messages that wait at a time; one more is dropped.
    pause_s
        Before the second attempt, seconds; it doubles.

    Attributes
    ----------
    sent, failed, dropped
        Messages so far: taken by the other side, given up, and not even tried.

    Examples
    --------
    >>> from foretime_sidecar.notify.outbox import Outbox
    >>> outbox = Outbox(most=0)
    >>> outbox.put("ann", print)
    >>> outbox.dropped
    1
    """

    def __init__(self, attempts: int = 3, most: int = _MOST, pause_s: float = _PAUSE_S) -> None:
        self.sent = self.failed = self.dropped = 0
        self._most = most
        self._waiting: deque[tuple[str, Attempt]] = deque()
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._fails = False
        self._retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(attempts) | tenacity.stop_when_event_set(self._ending),
            wait=tenacity.wait_exponential(multiplier=pause_s, max=_LONGEST_PAUSE_S),
            retry=tenacity.retry_if_exception(_may_work),
            sleep=tenacity.sleep_using_event(self._ending),
            reraise=True,
        )

    def put(self, user: str, attempt: Attempt) -> None:
        """Have a message to a user sent; takes no time."""
        with self._changed:
            if len(self._waiting) >= self._most or self._ending.is_set():
                self.dropped += 1
                return
            self._waiting.append((user, attempt))
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
                self._thread.start()

    def forget(self, user: str) -> None:
        """Drop what waits for a user."""
        with self._changed:
            kept = [one for one in self._waiting if one[0] != user]
            self.dropped += len(self._waiting) - len(kept)
            self._waiting = deque(kept)

    def end(self) -> None:
        """Send no more; what is tried just now is not waited for."""
        self._ending.set()
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending.is_set())
                if self._ending.is_set():
                    self.dropped += len(self._waiting)
                    self._waiting.clear()
                    return
                _, attempt = self._waiting.popleft()
            self._send(attempt)
            del attempt

    def _send(self, attempt: Attempt) -> None:
        try:
            self._retrying(attempt)
        except NotSentError as error:
            self.failed += 1
            # A server that is down would fill the log.
            if not self._fails:
                logger.warning("notifications are not sent: %.300s", error)
            self._fails = True
        except Exception:
            self.failed += 1
            logger.exception("a notification was not sent")
        else:
            self.sent += 1
            if self._fails:
                logger.warning("notifications are sent again")
            self._fails = False


def _may_work(error: BaseException) -> bool:
    return isinstance(error, NotSentError) and error.passing
