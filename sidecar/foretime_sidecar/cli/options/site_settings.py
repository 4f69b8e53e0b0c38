"""The site's settings, all of them, for the commands that go by more than where the daemon is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options import daemon_options
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import read_settings


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """What a command goes by.

    Attributes
    ----------
    settings
        The settings.
    file
        Where they stand; ``None`` if there is no file and all are at their defaults.
    """

    settings: Settings
    file: Path | None

    @property
    def missing(self) -> str:
        """That there is no file, in words; "" if there is one."""
        if self.file is not None:
            return ""
        return (
            f"no settings file: {daemon_options.SETTINGS_FILE} is not there, so every setting is "
            "at its default"
        )


def find_settings(given: Path | None) -> SiteSettings:
    """Read the settings that --settings, $FORETIME_SETTINGS or the site have.

    Raises
    ------
    InputError
        As of `foretime_sidecar.cli.options.daemon_options.read_site`.
    """
    found = daemon_options.read_site(given, read_settings)
    return SiteSettings(Settings(), None) if found is None else SiteSettings(*found)


def site_settings(given: Path | None) -> Settings:
    """Give the settings that `find_settings` finds, `noted`."""
    return noted(find_settings(given))


def noted(found: SiteSettings) -> Settings:
    """Give the settings; without a file say on stderr that the defaults count."""
    if found.missing:
        say(f"note: {found.missing}", err=True)
    return found.settings
