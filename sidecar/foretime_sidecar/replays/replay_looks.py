"""When the sidecar of a replay looks at the queue to put it in order: as things happen.

A daemon looks every minute or so, whatever happens. Between two events of the scheduler a look
finds what the last one found, so in a replay one look after each event does, at the next time on
the daemon's clock; or, to see what looking late costs, at the very second of the event.
"""

from __future__ import annotations

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.replays.replay_schedulers import MockedScheduler


class OrderingLooks:
    """Moves a mock scheduler on, and has the sidecar look at it.

    Parameters
    ----------
    scheduler, sidecar
        What is looked at, and who looks.
    polls_s
        Before a look the sidecar reads what has finished, if it has not for so long, seconds;
        ``None``: somebody else has it do so.
    interval_s
        Looks come at multiples of this after the clock's first reading, seconds; 0: at each event,
        before the scheduling pass that follows it.

    Attributes
    ----------
    looks
        How many there were.
    """

    def __init__(
        self,
        scheduler: MockedScheduler,
        sidecar: Sidecar,
        interval_s: int,
        polls_s: int | None = None,
    ) -> None:
        self._mock = scheduler.mock
        self._sidecar = sidecar
        self._interval_s = interval_s
        self._polls_s = polls_s
        self._next_poll = self._begin = scheduler.mock.now
        self._due: int | None = None  # as something has happened since the last look
        self.looks = 0

    def happened(self) -> None:
        """Take note that something has just happened: a look is due."""
        now = self._mock.now
        self._due = now
        if self._interval_s:
            self._due = now + (self._begin - now) % self._interval_s

    def advance(self, until: int) -> None:
        """Bring the clock up to ``until`` (epoch seconds), with every look that is due before."""
        self._live_before(until)
        if until > self._mock.now:
            ends_then = self._mock.next_event_time == until
            self._mock.advance(until)
            if ends_then:
                self.happened()

    def _live_before(self, until: int) -> None:
        while (at := self._next(until)) is not None:
            if at > self._mock.now:
                self._mock.advance(at)
                self.happened()
            if self._due is not None and self._due <= self._mock.now:
                self._look()
            else:
                self._mock.settle()

    def finish(self) -> None:
        """Run until the queue is empty and the last job has ended."""
        while (event := self._mock.next_event_time) is not None:
            self._live_before(event + 1)
        self._mock.finish()

    def _next(self, until: int) -> int | None:
        """Give when the next look or event before ``until`` is, ``None`` if there is none."""
        times = (self._due, self._mock.next_event_time)
        before = [time for time in times if time is not None and time < until]
        return min(before) if before else None

    def _look(self) -> None:
        self._due = None
        self.looks += 1
        now = self._mock.now
        if self._polls_s is not None and now >= self._next_poll:
            self._sidecar.poll(now)
            self._next_poll = now + self._polls_s
        self._sidecar.look(now)
        if self._sidecar.beside is not None:
            self._sidecar.beside.refresh()
