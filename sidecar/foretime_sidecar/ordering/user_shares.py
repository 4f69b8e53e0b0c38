"""How much each user's jobs weigh, so that nobody's make up more than a share of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

SCALE = 1_000_000
"""Weight of a job that counts in full: weights are whole numbers."""


def capped_weights(
    users: Sequence[str | None], mass: Sequence[int], most_share: float
) -> list[int]:
    """Weigh jobs down so that no user's make up more than a share of the total.

    All jobs of a user are weighed down alike, and those of users below the share not at all. With
    too few users for that share, each has the same.

    Parameters
    ----------
    users
        Of each job; those without a name are one user.
    mass
        What each job counts, at least 1, such as its processors.
    most_share
        Above 0, up to 1.

    Returns
    -------
    list
        A weight for each job, from 1 to `SCALE`.
    """
    by_user: defaultdict[str | None, int] = defaultdict(int)
    for user, counts in zip(users, mass, strict=True):
        by_user[user] += counts
    most = _most_mass(sorted(by_user.values(), reverse=True), most_share)
    factor = {
        user: max(round(SCALE * min(most / total, 1.0)), 1) for user, total in by_user.items()
    }
    return [factor[user] for user in users]


def _most_mass(masses: Sequence[int], share: float) -> float:
    """Give the mass that no user may exceed, of masses in descending order."""
    rest = sum(masses)
    for capped, mass in enumerate(masses):
        # With the first so many at the bound: bound = share * (capped * bound + rest).
        if share * capped >= 1:
            break
        bound = share * rest / (1 - share * capped)
        if mass <= bound:
            return bound
        rest -= mass
    return float(masses[-1]) if masses else 0.0
