"""The site of a live Slurm, kept fresh beside the daemon's polls: read seldom, and never trusted.

It serves forecasts alone. Whatever Slurm's commands do, the last good site stays, polls do not wait
for it, and what is wrong is said.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Any, Protocol

from foretime_estimators.jobs.errors import ForetimeError, InputError, SchedulerError
from foretime_sim.engine.native.slurm_core import core_refusals
from foretime_sim.sites.site_file import read_site
from foretime_sim.sites.slurm.site import SlurmSite

from foretime_sidecar.clients.slurm.json import configuration_digest, configuration_values
from foretime_sidecar.site_import.live_output import ask_slurm
from foretime_sidecar.site_import.saved_output import kind_of
from foretime_sidecar.site_import.slurm_site import import_site

logger = logging.getLogger("foretime")

_AGAIN_S = 60.0
"""Between two readings at least; after failures twice as long each time."""
_LONGEST_AGAIN_S = 3600.0
_SHARE = 0.05
"""Of the time that reading may keep Slurm's daemons busy."""
_MOST_SAID = 120
_BUSY_TIMES = 4
"""So many times the interval a reading is put off while slurmctld is busy."""


class SiteSource(Protocol):
    """Where a site is read.

    Attributes
    ----------
    name
        What it is called: "Slurm", or a file's path.
    """

    name: str

    def sign(self) -> object:
        """Give what is another once the site may have changed; takes no time."""
        ...

    def read(self) -> SlurmSite:
        """Read it.

        Raises
        ------
        ForetimeError
            If it can't be read.
        """
        ...


class LiveSlurm:
    """A `SiteSource`: the Slurm that the daemon looks at.

    Parameters
    ----------
    run
        Runs one of its commands, within bounds, and gives what it prints.
    """

    name = "Slurm"

    def __init__(self, run: Callable[[Sequence[str]], object]) -> None:
        self._run = run
        self.seen: object = None  # of its configuration, at the last look

    def sign(self) -> object:
        """Give what the last look saw of its configuration."""
        return self.seen

    def read(self) -> SlurmSite:
        """Ask it one thing after another; refuses what was changed between two of them."""
        output = ask_slurm(self._run)
        for kind, text in output.texts.items():
            if kind_of(text) != kind:  # an error can come without an exit code
                said = " ".join(text.split())[:_MOST_SAID]
                raise SchedulerError(
                    f"{output.sources[kind]} printed {said!r}, nothing that can be read"
                )
        before = configuration_values(output.text("config"))
        after = configuration_values(str(self._run(["scontrol", "show", "config"])))
        if configuration_digest(before) != configuration_digest(after):
            raise SchedulerError("Slurm was configured anew while its site was read")
        return import_site(output, UTC).site


class SiteFile:
    """A `SiteSource`: a site.toml.

    Parameters
    ----------
    path
        Of the file.
    """

    def __init__(self, path: str) -> None:
        self.name = path

    def sign(self) -> object:
        """Give when it was written, and its size."""
        try:
            stat = Path(self.name).stat()
        except OSError as error:
            return error.strerror
        return stat.st_mtime_ns, stat.st_size

    def read(self) -> SlurmSite:
        """Read the file; InputError if it is of another scheduler."""
        site = read_site(self.name)
        if not isinstance(site, SlurmSite):
            raise InputError(
                f"{self.name}: is a site under PBS, and the daemon's scheduler is Slurm: give one"
                " under Slurm"
            )
        return site


class GivenSite:
    """A `SiteSource` that never changes: what a replay's scheduler schedules as.

    Parameters
    ----------
    site
        That site.
    """

    name = "what is given"

    def __init__(self, site: SlurmSite) -> None:
        self._site = site

    def sign(self) -> object:
        """Give nothing that changes."""
        return None

    def read(self) -> SlurmSite:
        """Give the site."""
        return self._site


@dataclass(frozen=True, slots=True)
class SiteStanding:
    """What is known of the site, for whoever administers it.

    Attributes
    ----------
    source
        Where it is read: "Slurm", or a file.
    version
        Its release, such as "26.05"; ``None`` before it was read.
    slurm_partitions
        How many it has.
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
        self.site: SlurmSite | None = None
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
        """Leave what a look saw of Slurm's configuration, and whether slurmctld is busy."""
        if isinstance(self._source, LiveSlurm):
            self._source.seen = seen
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
        """Save nothing: Slurm has it."""

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

    def _take(self, site: SlurmSite) -> None:
        if self.last_failure:
            logger.warning("the site of %s was read again", self._source.name)
        self.last_failure = ""
        refused = "; ".join(core_refusals(site))
        if refused and refused != self._refused:
            logger.warning("forecasts can't run the queue as this site schedules: %s", refused)
        self._refused = refused
        self.site = None if refused else site
        self._standing = SiteStanding(
            self._source.name,
            release_of(site),
            len(site.machine.slurm_partitions),
            int(self._clock()),
        )


def release_of(site: SlurmSite) -> str:
    """Give the release of a site as people write it, such as "26.05"."""
    return f"{site.version[0]}.{site.version[1]:02}"
