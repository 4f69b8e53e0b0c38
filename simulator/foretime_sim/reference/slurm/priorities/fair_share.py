"""Fair share as Slurm has it: classic, depth oblivious, and Fair Tree.

Sources: src/plugins/priority/multifactor/priority_multifactor.c and fair_tree.c, and
src/common/assoc_mgr.c (shares), of 22.05.8 and 25.11.7, which agree in all that is here.

Usage is in C's long double as in Slurm: ties in Fair Tree depend on its last bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.site import SlurmSite

_NO_VAL = np.longdouble(0xFFFFFFFE)
_UNSET_LEVEL_SHARES = 0xFFFFFFFE
_OBLIVIOUS_STRENGTH = np.longdouble(5.0)
"""``f`` of ``_depth_oblivious_set_usage_efctv``."""
_OWN_USAGE_OF_USERS = (23, 2)
"""``_get_fairshare_priority`` of 22.05 passes over the usage of users with the parent's shares.

That of 25.11 does not. Which release changed it is not known."""


@dataclass(slots=True, eq=False)
class Member:
    """An association in the tree, with what Slurm keeps of it (``slurmdb_assoc_usage_t``).

    Attributes
    ----------
    association
        What the site says of it.
    parent, fair_parent
        See `Accounts`.
    children
        Those whose ``fair_parent`` it is.
    level_shares
        Shares of all its siblings and its own.
    shares_norm
        Its part of the whole; under Fair Tree of its level.
    usage_raw
        Billing seconds, decayed.
    usage_norm, usage_effective
        Its part of all usage, and that with what its account used beside it. ``None``: a user's is
        worked out when it is asked for.
    level_fs
        Fair Tree's share divided by usage; infinite where nothing was used.
    factor
        Fair share, from 0 to 1; of users.
    """

    association: Association
    parent: Member | None = None
    fair_parent: Member | None = None
    children: list[Member] = field(default_factory=list)
    level_shares: int = _UNSET_LEVEL_SHARES
    shares_norm: float = 1.0
    usage_raw: np.longdouble = field(default_factory=lambda: np.longdouble(0))
    usage_norm: np.longdouble = field(default_factory=lambda: np.longdouble(0))
    usage_effective: np.longdouble | None = field(default_factory=lambda: np.longdouble(0))
    level_fs: np.longdouble = field(default_factory=lambda: np.longdouble(0))
    factor: float = 0.0


class FairShare:
    """Shares and usage of a site's associations.

    Parameters
    ----------
    site
        Its associations with their raw usage, and the settings of fair share.

    Raises
    ------
    InputError
        As `Accounts`.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.priorities.fair_share import FairShare
    >>> from foretime_sim.sites.slurm.limits import Association
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> tree = (Association("root", raw_usage=60.0), Association("root", user="ann"),
    ...         Association("root", user="bob", raw_usage=60.0))
    >>> fair_share = FairShare(SlurmSite(Machine.flat(8), associations=tree))
    >>> fair_share.apply_fair_tree()
    >>> [member.factor for member in fair_share.members[1:]]
    [1.0, 0.5]
    """

    def __init__(self, site: SlurmSite) -> None:
        accounts = Accounts(site)
        self._dampening = site.priority.dampening_factor
        self.is_fair_tree = "NO_FAIR_TREE" not in site.priority.flags
        self._looks_at_own = site.version >= _OWN_USAGE_OF_USERS
        self._is_oblivious = "DEPTH_OBLIVIOUS" in site.priority.flags
        if self._is_oblivious:
            self.is_fair_tree = False
        self.members = [Member(association) for association in site.associations]
        for place, member in enumerate(self.members):
            above, fair = accounts.parents[place], accounts.fair_parents[place]
            member.parent = None if above is None else self.members[above]
            if fair is not None:
                member.fair_parent = self.members[fair]
                self.members[fair].children.append(member)
            member.usage_raw = np.longdouble(member.association.raw_usage)
        self._users = sum(member.association.user is not None for member in self.members)
        for member in self.members:
            level = sum(child.association.shares or 0 for child in member.children)
            for child in member.children:
                child.level_shares = level
        for member in self.members:
            member.shares_norm = self._shares_norm(member)
        if self.members:
            self.members[0].usage_effective = np.longdouble(1)

    # Shares ---------------------------------------------------------------------------------------

    def _shares_norm(self, member: Member) -> float:
        """``_normalize_assoc_shares_fair_tree`` and ``..._traditional`` of assoc_mgr.c."""
        fair_parent = member.fair_parent
        if self.is_fair_tree:
            own = member
            if member.association.shares is None and fair_parent is not None:
                own = fair_parent
            return (own.association.shares or 0) / own.level_shares if own.level_shares else 0.0
        if member.association.shares is None and fair_parent is not None:
            return fair_parent.shares_norm
        norm, one = 1.0, member
        while one.parent is not None:
            if one.association.shares is not None:
                norm = norm * (one.association.shares / one.level_shares) if one.level_shares else 0
            one = one.parent
        return norm

    # Usage ----------------------------------------------------------------------------------------

    def charge(self, place: int, billing_seconds: float) -> None:
        """Add usage to an association and all above it."""
        member: Member | None = self.members[place]
        while member is not None:
            member.usage_raw += np.longdouble(billing_seconds)
            member = member.parent

    def decay(self, kept: float) -> None:
        """Multiply all usage (``_apply_decay``)."""
        for member in self.members:
            member.usage_raw *= np.longdouble(kept)

    def reset(self) -> None:
        """Forget all usage (``_reset_usage``)."""
        for member in self.members:
            member.usage_raw = np.longdouble(0)

    def _set_usage_norm(self, member: Member) -> None:
        total = self.members[0].usage_raw
        norm = member.usage_raw / total if total else np.longdouble(0)
        member.usage_norm = min(norm, np.longdouble(1))

    # Classic --------------------------------------------------------------------------------------

    def begin_classic(self) -> None:
        """Work out the effective usage of all accounts, and leave that of users for later.

        Slurm does so at the beginning of a calculation, before it decays or charges anything, so
        accounts are a period behind their users (``_set_children_usage_efctv``).
        """
        if self.members:
            self._begin_classic_below(self.members[0])

    def _begin_classic_below(self, account: Member) -> None:
        for child in account.children:
            if child.association.user is not None:
                child.usage_effective = None
            else:
                self._set_usage(child)
                self._begin_classic_below(child)

    def _set_usage(self, member: Member) -> np.longdouble:
        """Set usage_norm and usage_effective (``priority_p_set_assoc_usage``)."""
        self._set_usage_norm(member)
        parent = member.fair_parent
        if parent is None or parent.parent is None:
            effective = member.usage_norm
        elif member.association.shares is None:
            effective = _known(parent)
        elif self._is_oblivious:
            effective = self._oblivious_usage(member, parent)
        elif not member.level_shares:
            effective = _known(parent)
        else:
            part = np.longdouble(member.association.shares) / np.longdouble(member.level_shares)
            effective = member.usage_norm + (_known(parent) - member.usage_norm) * part
        member.usage_effective = effective
        return effective

    def _oblivious_usage(self, member: Member, parent: Member) -> np.longdouble:
        """``_depth_oblivious_set_usage_efctv``."""
        of_parent, used = _known(parent), member.usage_norm
        if not (member.shares_norm and parent.shares_norm and of_parent and used):
            return used
        ratio_parent = of_parent / np.longdouble(parent.shares_norm)
        siblings = np.longdouble(0)
        for sibling in parent.children:
            if sibling.association.shares is not None:
                siblings += sibling.usage_norm
        siblings /= np.longdouble(parent.shares_norm)
        ratio_level = (used / np.longdouble(member.shares_norm)) / siblings
        power = np.longdouble(1)
        if np.log(ratio_parent) * np.log(ratio_level) < 0:
            strength = _OBLIVIOUS_STRENGTH * np.log(ratio_parent)
            power = np.longdouble(1) / (np.longdouble(1) + strength * strength)
        raised = math.pow(float(ratio_level), float(power))
        return ratio_parent * np.longdouble(raised) * np.longdouble(member.shares_norm)

    # Fair Tree ------------------------------------------------------------------------------------

    def apply_fair_tree(self) -> None:
        """Rank all users (``_apply_priority_fs`` of fair_tree.c).

        Accounts with the same level_fs are not merged, though Slurm's documentation and comments
        say so: ``_count_tied_accounts`` stops at the next account instead of at the next user. The
        first user of the second one has the rank of the user before it. Who comes first of them is
        decided by the order of the site's associations: in slurmctld that is by name on 26.05; on
        22.05 after a start the newest first, as slurmdbd gives them.
        """
        if self.members:
            rank = [self._users, self._users]
            self._rank_below(self.members[0].children, rank, tied_before=False)

    def _rank_below(self, siblings: list[Member], rank: list[int], *, tied_before: bool) -> None:
        for member in siblings:
            self._set_level_fs(member)
        previous = _NO_VAL
        in_order = sorted(siblings, key=lambda one: (-one.level_fs, one.association.user is None))
        for number, member in enumerate(in_order):
            tied = (number == 0 and tied_before) or previous == member.level_fs
            if member.association.user is not None:
                if not tied:
                    rank[0] = rank[1]
                member.factor = rank[0] / self._users
                rank[1] -= 1
            else:
                self._rank_below(member.children, rank, tied_before=tied)
            previous = member.level_fs

    def _set_level_fs(self, member: Member) -> None:
        """``_calc_assoc_fs``."""
        parent = member.fair_parent
        used = np.longdouble(0)
        if parent is not None and parent.usage_raw:
            used = member.usage_raw / parent.usage_raw
        member.usage_effective = used
        self._set_usage_norm(member)
        if member.association.shares is None:
            member.level_fs = np.longdouble(np.inf) if member.association.user else _NO_VAL
        elif not member.shares_norm:
            member.level_fs = np.longdouble(0)
        elif not used:
            member.level_fs = np.longdouble(np.inf)
        else:
            member.level_fs = np.longdouble(member.shares_norm) / used

    # What jobs get --------------------------------------------------------------------------------

    def factor_of(self, place: int) -> float:
        """Give the fair share of an association's jobs, from 0 to 1 (``_get_fairshare_priority``).

        The classic one is 2 to the power of minus effective usage / shares / dampening factor.
        """
        member = self.members[place]
        if self.is_fair_tree:
            return member.factor
        if member.association.shares is None and member.fair_parent is not None:
            if self._looks_at_own and member.usage_effective is None:
                self._set_usage(member)  # which sshare shows, and nothing goes by
            member = member.fair_parent
        used = member.usage_effective
        if used is None:
            used = self._set_usage(member)
        return self.classic_factor(used, member.shares_norm)

    def classic_factor(self, used: np.longdouble, shares_norm: float) -> float:
        """2 to the power of minus usage / shares / dampening factor; 0 without shares."""
        if shares_norm <= 0:
            return 0.0
        power = used / np.longdouble(shares_norm) / np.longdouble(self._dampening)
        return math.pow(2.0, -float(power))

    def effective_usage_of(self, place: int) -> np.longdouble:
        """Give the effective usage of an association; a user's is worked out if it is not known.

        So does ``sshare``: to look at it is to fix it until the next calculation.
        """
        member = self.members[place]
        return self._set_usage(member) if member.usage_effective is None else member.usage_effective


def _known(member: Member) -> np.longdouble:
    """Give the effective usage of an account, which is always known."""
    if member.usage_effective is None:
        raise RuntimeError("only a user's effective usage is left for later")
    return member.usage_effective
