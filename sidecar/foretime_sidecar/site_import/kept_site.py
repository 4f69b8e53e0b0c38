"""The site of a live scheduler, kept fresh beside the daemon's polls: read seldom, never trusted.

It serves forecasts alone. Whatever the scheduler's commands do, the last good site stays, polls do
not wait for it, and what is wrong is said.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from foretime_estimators.jobs.errors import ForetimeError
from foretime_sim.engine.site_refusals import site_refusals
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite

from foretime_sidecar.site_import.site_sources import SiteSource

logger = logging.getLogger("foretime")

_AGAIN_S = 60.0
"""Between two readings at least; after failures twice as long each time."""
_LONGEST_AGAIN_S = 3600.0
_SHARE = 0.05
"""Of the time that reading may keep the scheduler's daemons busy."""
_BUSY_TIMES = 4
"""So many times the interval a reading is put off while the scheduler is busy."""


@dataclass(frozen=True, slots=True)
class SiteStanding:
    """What is known of the site, for whoever administers it.

    Attributes
    ----------
    source
        Where it is read: "Slurm", "PBS", or a file.
    version
        Its release, such as "26.05"; ``None`` before it was read.
    slurm_partitions, queues
        How many it has: Slurm the one, PBS the other.
    read_at
        Epoch seconds of the last good reading.
    problem
        Why the reading after that failed; "" if it did not.
    why_not
        Why the queue is not run forward as this site schedules; "" if it is, or nobody has waited.
    """

    source: str
    version: str | None = None
    slurm_partitions: int = 0
    queues: int = 0
    read_at: int | None = None
    problem: str = ""
    why_not: str = ""

    def as_json(self, now: float) -> dict[str, Any]:
        """Give it as the API does."""
        age_s = None if self.read_at is None else max(int(now) - self.read_at, 0)
        return {**asdict(self), "age_s": age_s}


class KeptSite:
    """Keeps a site; `foretime_sidecar.queue.background_thread.BackgroundWork`.

    Parameters
    ----------
    source
        Where it is read.
    interval_s
        Seconds between two readings, if nothing is seen to change.
    clock
        Epoch seconds.
    monotonic
        Seconds that never run back.

    Attributes
    ----------
    site
        The last good one that can be simulated; ``None``: there is none.
    failures, last_failure
        How often it could not be read, and why the last time; "" if it could.
    """

    def __init__(
        self,
        source: SiteSource,
        interval_s: int,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.site: SlurmSite | PbsSite | None = None
        self.failures = 0
        self.last_failure = ""
        self._source = source
        self._interval_s = interval_s
        self._clock = clock
        self._monotonic = monotonic
        self._busy = False
        self._refused = ""
        self._runs_refused = ""
        self._standing = SiteStanding(source.name, problem="it has not been read yet")
        self._known: object = None  # sign of the last reading that was tried
        self._tried_at: float | None = None
        self._pause_s = _AGAIN_S

    def looked(self, seen: object, *, busy: bool = False) -> None:
        """Leave what a look saw of the scheduler's configuration, and whether it is busy."""
        self._source.looked(seen)
        self._busy = busy

    def note_runs(self, why_not: str) -> None:
        """Note why the queue was not run forward as the site schedules; "": it was."""
        self._runs_refused = why_not

    @property
    def standing(self) -> SiteStanding:
        """How things stand."""
        known = self._standing
        why_not = self._refused or (self._runs_refused if self.site is not None else known.problem)
        return replace(known, why_not=why_not)

    @property
    def read_at(self) -> int | None:
        """When `site` was read, epoch seconds; ``None``: it is as given, at any time."""
        return self._standing.read_at if self._source.changes else None

    def refresh(self, *, hurried: bool = False) -> bool:
        """Read the site if that is due; never raises, and never has more to do at once."""
        began, sign = self._monotonic(), self._source.sign()
        if not self._is_due(began, changed=sign != self._known):
            return False
        self._known, self._tried_at = sign, began
        try:
            site = self._source.read()
        except ForetimeError as error:
            self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - rubbish that no parser foresaw
            self._failed(f"{type(error).__name__}: {error}")
        else:
            took_s = self._monotonic() - began
            self._pause_s = max(_AGAIN_S, took_s / _SHARE)
            self._take(site)
        return False

    def save(self) -> None:
        """Save nothing: the scheduler has it."""

    def _is_due(self, now: float, *, changed: bool) -> bool:
        if self._tried_at is None:
            return True
        age_s = now - self._tried_at
        if age_s < self._pause_s:
            return False
        due = changed or bool(self.last_failure) or age_s >= self._interval_s
        return due and not (self._busy and age_s < _BUSY_TIMES * self._interval_s)

    def _failed(self, why: str) -> None:
        self.failures += 1
        again_s = 2 * self._pause_s if self.last_failure else _AGAIN_S
        self._pause_s = min(again_s, _LONGEST_AGAIN_S)
        if why != self.last_failure:
            kept = "forecasts go by what was read before" if self.site else "forecasts do without"
            logger.warning("the site of %s was not read, and %s: %s", self._source.name, kept, why)
        self.last_failure = why
        self._standing = replace(self._standing, problem=why)

    def _take(self, site: SlurmSite | PbsSite) -> None:
        if self.last_failure:
            logger.warning("the site of %s was read again", self._source.name)
        self.last_failure = ""
        refused = "; ".join(site_refusals(site))
        if refused and refused != self._refused:
            logger.warning("forecasts can't run the queue as this site schedules: %s", refused)
        self._refused = refused
        self.site = None if refused else site
        self._standing = SiteStanding(
            self._source.name,
            _release_of(site),
            len(site.machine.slurm_partitions) if isinstance(site, SlurmSite) else 0,
            len(site.queues) if isinstance(site, PbsSite) else 0,
            int(self._clock()),
        )


def _release_of(site: SlurmSite | PbsSite) -> str:
    """Give the release of a site as people write it, such as "26.05"."""
    if isinstance(site, PbsSite):
        return site.version
    return f"{site.version[0]}.{site.version[1]:02}"


def schedules_as(site: SlurmSite | PbsSite) -> str:
    """Say as whose scheduler a queue goes on, and by what."""
    if isinstance(site, PbsSite):
        by = "order, fair share and limits" if site.scheduler.fair_share else "order and limits"
        return f"this site's PBS {_release_of(site)} schedules, by its {by}"
    return f"this site's Slurm {_release_of(site)} schedules, by its priorities and limits"
