"""What is news of a job that waits: it starts soon, its start has moved, it no longer waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from foretime_estimators.time_units import MINUTE_S

from foretime_sidecar.wording.clocks import spoken_clock
from foretime_sidecar.wording.waits import spoken_wait

LEAST_MOVE_S = 15 * MINUTE_S
"""A start that has moved by less is no news, however sure the forecast is."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """When a waiting job is forecast to start, epoch seconds.

    Attributes
    ----------
    likely_start
        Half of such jobs have started by then.
    sure_by
        The 95% bound.
    """

    likely_start: int
    sure_by: int

    def moved_s(self, earlier: Outlook) -> int:
        """Give by how much the start has moved, seconds, later above 0; 0 if it is no news.

        It is news only if it is more than the uncertainty that was shown: the likely start lies
        after the earlier 95% bound, or the 95% bound before the earlier likely start.
        """
        moved = self.likely_start - earlier.likely_start
        clear = self.likely_start > earlier.sure_by or self.sure_by < earlier.likely_start
        return moved if clear and abs(moved) >= LEAST_MOVE_S else 0


@dataclass(frozen=True, slots=True)
class Told:
    """What a job's user knows of its start.

    Attributes
    ----------
    outlook
        As last told; ``None``: nothing yet.
    soon
        Whether they were told that it starts soon.
    moved_at
        When they were last told of a move, epoch seconds.
    """

    outlook: Outlook | None = None
    soon: bool = False
    moved_at: int = 0


@dataclass(frozen=True, slots=True)
class NewsRule:
    """When to tell.

    Attributes
    ----------
    soon_s
        A job starts soon if it likely does within this time, seconds.
    between_s
        Moves of one job's start are told at least so far apart, seconds.
    """

    soon_s: int = 10 * MINUTE_S
    between_s: int = 30 * MINUTE_S


@dataclass(frozen=True, slots=True)
class News:
    """One thing to tell the user of a job.

    Attributes
    ----------
    event
        What has happened; ``gone``: the job is neither waiting nor running.
    job_id
        Whose.
    at
        When this was found, epoch seconds.
    outlook
        Of a job that waits.
    moved_s
        By how much its start has moved, seconds; later above 0.
    started_at
        Of one that has started, epoch seconds; ``None`` if that is not known.

    Examples
    --------
    >>> from foretime_sidecar.notify.start_news import News
    >>> News("gone", "4711", 1_700_000_000).text
    'Job 4711 no longer waits: it has run, or was cancelled.'
    """

    event: Literal["soon", "moved", "started", "gone"]
    job_id: str
    at: int
    outlook: Outlook | None = None
    moved_s: int = 0
    started_at: int | None = None

    @property
    def text(self) -> str:
        """The news in one sentence."""
        if self.event == "gone":
            return f"Job {self.job_id} no longer waits: it has run, or was cancelled."
        if self.outlook is None:
            at = "" if self.started_at is None else f" at {spoken_clock(self.started_at, self.at)}"
            return f"Job {self.job_id} has started{at}."
        likely = spoken_clock(self.outlook.likely_start, self.at)
        bound = f"95% sure by {spoken_clock(self.outlook.sure_by, self.at)}"
        if self.event == "soon":
            within = spoken_wait(max(self.outlook.likely_start - self.at, 0))
            return f"Job {self.job_id} starts in about {within} ({likely}), {bound}."
        way = "later" if self.moved_s > 0 else "sooner"
        moved = spoken_wait(abs(self.moved_s))
        return f"The start of job {self.job_id} moved by {moved}, {way}: likely {likely}, {bound}."

    def as_json(self) -> Mapping[str, Any]:
        """Give it as JSON holds it."""
        told = {name: value for name, value in asdict(self).items() if name != "outlook"}
        outlook = {"likely_start": None, "sure_by": None}
        return {"text": self.text, **told, **(asdict(self.outlook) if self.outlook else outlook)}


def next_news(
    job_id: str, told: Told, outlook: Outlook, now: int, rule: NewsRule
) -> tuple[News | None, Told]:
    """Say what is news of a job that waits, and what its user then knows.

    Parameters
    ----------
    job_id
        The job's.
    told
        What its user knows.
    outlook
        The latest forecast.
    now
        Epoch seconds.
    rule
        When to tell.

    Examples
    --------
    >>> from foretime_sidecar.notify.start_news import NewsRule, Outlook, Told, next_news
    >>> news, told = next_news("17", Told(), Outlook(9_000, 12_000), 0, NewsRule())
    >>> news is None
    True
    >>> news, told = next_news("17", told, Outlook(13_000, 14_000), 1_800, NewsRule())
    >>> news.event, news.moved_s
    ('moved', 4000)
    """
    soon = outlook.likely_start - now <= rule.soon_s
    if told.outlook is None:
        told = replace(told, outlook=outlook)
    if soon and not told.soon:
        return News("soon", job_id, now, outlook), Told(outlook, soon=True, moved_at=told.moved_at)
    moved_s = outlook.moved_s(told.outlook or outlook)
    is_due = not 0 <= now - told.moved_at < rule.between_s
    if moved_s and is_due and not (told.soon and moved_s < 0):
        news = News("moved", job_id, now, outlook, moved_s)
        return news, Told(outlook, soon=soon, moved_at=now)
    return None, told
