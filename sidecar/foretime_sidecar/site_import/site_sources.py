"""Where the daemon reads the site whose scheduler it runs the queue forward as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path
from typing import Literal, Protocol

from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.site_file import read_site
from foretime_sim.sites.slurm.site import SlurmSite

from foretime_sidecar.clients.slurm.control_texts import configuration_digest, configuration_values
from foretime_sidecar.site_import.live_output import ask_slurm
from foretime_sidecar.site_import.pbs_live_output import ask_pbs
from foretime_sidecar.site_import.pbs_site import import_pbs_site
from foretime_sidecar.site_import.saved_output import kind_of
from foretime_sidecar.site_import.slurm_site import import_site

_MOST_SAID = 120


class SiteSource(Protocol):
    """Where a site is read.

    Attributes
    ----------
    name
        What it is called: "Slurm", "PBS", or a file's path.
    changes
        Whether it is the site of some moment, and another later.
    """

    name: str
    changes: bool

    def looked(self, seen: object) -> None:
        """Take what a look at the queue saw of the scheduler's configuration."""
        ...

    def sign(self) -> object:
        """Give what is another once the site may have changed; takes no time."""
        ...

    def read(self) -> SlurmSite | PbsSite:
        """Read it.

        Raises
        ------
        ForetimeError
            If it can't be read.
        """
        ...


class LiveSite:
    """A `SiteSource`: the scheduler that the daemon looks at.

    Parameters
    ----------
    name
        The scheduler's.
    read
        Asks it for its site.
    """

    changes = True

    def __init__(self, name: str, read: Callable[[], SlurmSite | PbsSite]) -> None:
        self.name = name
        self._read = read
        self._seen: object = None  # of its configuration, at the last look

    def looked(self, seen: object) -> None:
        """Keep what the look saw."""
        self._seen = seen

    def sign(self) -> object:
        """Give what the last look saw of its configuration."""
        return self._seen

    def read(self) -> SlurmSite | PbsSite:
        """Ask the scheduler."""
        return self._read()


def live_slurm(run: Callable[[Sequence[str]], object]) -> LiveSite:
    """Give the site of a live Slurm; ``run`` runs one of its commands, and gives what it prints."""
    return LiveSite("Slurm", lambda: _read_slurm(run))


def _read_slurm(run: Callable[[Sequence[str]], object]) -> SlurmSite:
    """Ask it one thing after another; refuses what was changed between two of them."""
    output = ask_slurm(run)
    for kind, text in output.texts.items():
        if kind_of(text) != kind:  # an error can come without an exit code
            said = " ".join(text.split())[:_MOST_SAID]
            raise SchedulerError(
                f"{output.sources[kind]} printed {said!r}, nothing that can be read"
            )
    before = configuration_values(output.text("config"))
    after = configuration_values(str(run(["scontrol", "show", "config"])))
    if configuration_digest(before) != configuration_digest(after):
        raise SchedulerError("Slurm was configured anew while its site was read")
    return import_site(output, UTC).site


def live_pbs(run: Callable[[Sequence[str]], str]) -> LiveSite:
    """Give the site of a live PBS; ``run`` runs one of its commands, with times in UTC."""
    # Its files have dates of this machine's own time.
    return LiveSite("PBS", lambda: import_pbs_site(ask_pbs(run), None, UTC))


class SiteFile:
    """A `SiteSource`: a site.toml.

    Parameters
    ----------
    path
        Of the file.
    kind
        Of the daemon's scheduler.
    """

    changes = False

    def __init__(self, path: str, kind: Literal["slurm", "pbs"] = "slurm") -> None:
        self.name = path
        self._kind = kind

    def looked(self, seen: object) -> None:
        """Take no note: the file says how the site is set up."""

    def sign(self) -> object:
        """Give when it was written, and its size."""
        try:
            stat = Path(self.name).stat()
        except OSError as error:
            return error.strerror
        return stat.st_mtime_ns, stat.st_size

    def read(self) -> SlurmSite | PbsSite:
        """Read the file; InputError if it is of another scheduler."""
        site = read_site(self.name)
        names = {"slurm": "Slurm", "pbs": "PBS"}
        kind = "pbs" if isinstance(site, PbsSite) else "slurm"
        if kind != self._kind:
            raise InputError(
                f"{self.name}: is a site under {names[kind]}, and the daemon's scheduler is"
                f" {names[self._kind]}: give one under {names[self._kind]}"
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
    changes = False

    def __init__(self, site: SlurmSite | PbsSite) -> None:
        self._site = site

    def looked(self, seen: object) -> None:
        """Take no note."""

    def sign(self) -> object:
        """Give nothing that changes."""
        return None

    def read(self) -> SlurmSite | PbsSite:
        """Give the site."""
        return self._site
