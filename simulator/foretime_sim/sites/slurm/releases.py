"""Which releases of Slurm are modelled, and since which a rule of limits holds.

Read in CHANGELOG and source.
"""

from __future__ import annotations

MODELLED = ((22, 5), (26, 5))
"""The oldest and the newest release whose rules are known here."""

ACCOUNTS_BELOW_SINCE = (23, 2)
"""AllowAccounts and DenyAccounts hold for the accounts below, too."""
RUN_MINUTES_PER_USER_SINCE = (24, 5)
"""MaxTRESRunMinsPerUser and -PerAccount are enforced; 22.05.8 takes them and keeps none."""
USER_AND_GROUP_APART_SINCE = (23, 2)
"""A QOS with GrpTRES or MaxTRESPerUser no longer hides both of the next QOS at submission.

22.05.8 does, 25.11.7 does not (``_validate_tres_limits_for_qos``); the release between is a guess.
"""


def release_text(version: tuple[int, int]) -> str:
    """Write a release as Slurm does.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.releases import release_text
    >>> release_text((22, 5))
    '22.05'
    """
    return f"{version[0]}.{version[1]:02}"


def other_release_note(version: tuple[int, int]) -> str | None:
    """Say by which release's rules another one goes; ``None`` for those that are modelled.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.releases import other_release_note
    >>> other_release_note((19, 5))
    'Slurm 19.05 is not modelled, but 22.05 to 26.05: the site goes by the rules of 22.05.'
    """
    oldest, newest = MODELLED
    if oldest <= version <= newest:
        return None
    known = release_text(oldest if version < oldest else newest)
    return (
        f"Slurm {release_text(version)} is not modelled, but {release_text(oldest)} to"
        f" {release_text(newest)}: the site goes by the rules of {known}."
    )
