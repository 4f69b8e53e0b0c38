"""One question to the daemon, asked again and again until the job has started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foretime_sidecar.answers.daemon_client import DaemonError, RefusedError

if TYPE_CHECKING:  # the command imports this before it has asked anything
    from foretime_sidecar.forecast_answer.forecast import ForecastAnswer

_NOT_FOUND, _TOO_MANY = 404, 429


@dataclass(frozen=True, slots=True)
class Update:
    """What is known after one more try.

    Attributes
    ----------
    forecast
        The daemon's latest answer.
    trouble
        Why it is not of now; ``None`` if it is.
    gone
        Whether the job, which was in the queue, no longer is.
    """

    forecast: ForecastAnswer
    trouble: str | None = None
    gone: bool = False

    @property
    def last(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.gone or self.forecast.state == "running"


def updates(ask_once: Callable[[], ForecastAnswer], pause: Callable[[], None]) -> Iterator[Update]:
    """Ask until the job has started or is gone; a daemon that is away for a while is asked again.

    Parameters
    ----------
    ask_once
        Gives the daemon's answer.
    pause
        Waits between two tries.

    Raises
    ------
    ForetimeError
        If there is no first answer, or the daemon finds the question wrong.
    """
    forecast: ForecastAnswer | None = None
    while True:
        try:
            forecast = ask_once()
            update = Update(forecast)
        except (DaemonError, RefusedError) as error:
            if forecast is None:
                raise
            status = error.status if isinstance(error, RefusedError) else None
            if status not in (None, _NOT_FOUND, _TOO_MANY):
                raise
            update = Update(forecast, str(error), gone=status == _NOT_FOUND)
        yield update
        if update.last:
            return
        pause()
