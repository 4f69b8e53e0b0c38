"""News of a job for the person who asks, found by watching it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from foretime_sidecar.notify.start_news import News, NewsRule, Outlook, Told, next_news

if TYPE_CHECKING:
    from foretime_sidecar.answers.wait_watch import Update
    from foretime_sidecar.forecast_answer.forecast import ForecastAnswer


def notices(
    found: Iterable[Update], job_id: str, clock: Callable[[], float]
) -> Iterator[tuple[Update, News | None]]:
    """Give each update with what is news in it; a daemon that is away is none.

    Parameters
    ----------
    found
        As `foretime_sidecar.answers.wait_watch.updates` gives them.
    job_id
        As the person has named the job.
    clock
        Epoch seconds.
    """
    told, rule = Told(), NewsRule()
    for update in found:
        now, news = int(clock()), None
        if update.gone:
            news = News("gone", job_id, now)
        elif update.forecast.state == "running":
            news = News("started", job_id, now, started_at=update.forecast.started_at)
        elif update.trouble is None and (outlook := _outlook(update.forecast)) is not None:
            news, told = next_news(job_id, told, outlook, now, rule)
        yield update, news


def _outlook(forecast: ForecastAnswer) -> Outlook | None:
    if (times := forecast.times) is None:
        return None
    return Outlook(times.start_time["0.5"], times.start_time["0.95"])
