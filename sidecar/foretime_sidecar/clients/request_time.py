"""How long our requests have kept the scheduler's servers busy, as far as a client can tell.

A request waits for its answer while the server works on it. It also takes time in which this
machine runs our side of it, or lets it queue for a processor: a busy service node would make a
quick scheduler look slow. Linux tells that time of each task, so it is left out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NANOSECOND = 1e-9


@dataclass(slots=True)
class Request:
    """A request that is under way.

    Attributes
    ----------
    own_s
        How long child processes of ours have run for it, or queued for a processor, seconds.
    """

    own_s: float = 0.0


@dataclass(slots=True)
class RequestTime:
    """Adds up how long requests have waited for answers; those that failed count, too.

    Attributes
    ----------
    controller_s
        Seconds that slurmctld (with slurmrestd) or pbs_server has taken so far.
    accounting_s
        Seconds that slurmdbd has.
    """

    controller_s: float = 0.0
    accounting_s: float = 0.0

    @contextlib.contextmanager
    def request(self, *, accounting: bool = False) -> Iterator[Request]:
        """Count one request, which this thread waits for; ``accounting``: slurmdbd answers it."""
        request, began, own_s = Request(), time.monotonic(), processor_time_s()
        try:
            yield request
        finally:
            own_s = processor_time_s() - own_s + request.own_s
            waited_s = max(time.monotonic() - began - own_s, 0.0)
            if accounting:
                self.accounting_s += waited_s
            else:
                self.controller_s += waited_s


def processor_time_s(task: int | str = "thread-self") -> float:
    """Give how long a task has run, or queued for a processor, seconds.

    Parameters
    ----------
    task
        A process that has not been waited for yet, by its number; else this thread.

    Returns
    -------
    float
        0 where the kernel does not tell: then all of a request's time counts as waiting.
    """
    try:
        ran, queued, _ = Path(f"/proc/{task}/schedstat").read_bytes().split()
    except (OSError, ValueError):
        return 0.0
    return (int(ran) + int(queued)) * _NANOSECOND
