"""A site's associations with what they have from the accounts above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from foretime_estimators.jobs.errors import InputError

from foretime_sim.sites.slurm.limits import Association, Limits

_FROM_ABOVE = ("max_jobs", "max_submit_jobs", "max_wall_s")
_FROM_ABOVE_BY_KIND = ("max_tres_per_job", "max_tres_per_node", "max_tres_mins_per_job")

AssociationKey: TypeAlias = tuple[str, str | None, str | None]
"""Account, user, slurm_partition."""


@dataclass(frozen=True, slots=True)
class InheritedAssociation:
    """An association, and what it has from above.

    Attributes
    ----------
    association
        As the site has it.
    place, parent
        Its place, and that of the account above it; ``None`` for the topmost.
    limits
        Its own; those of one job and of one user where it has none from the nearest account above
        that has one (``sacctmgr`` shows them so, too). Limits of groups are never handed down.
    allowed_qos, default_qos
        Its own, or those of the nearest account above that has any.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.inherited_limits import inherited_associations
    >>> from foretime_sim.sites.slurm.limits import Association, Limits
    >>> _, ann = inherited_associations(
    ...     (
    ...         Association("physics", limits=Limits(max_jobs=3, grp_jobs=9)),
    ...         Association("physics", user="ann"),
    ...     )
    ... )
    >>> ann.parent, ann.limits.max_jobs, ann.limits.grp_jobs
    (0, 3, None)
    """

    association: Association
    place: int
    parent: int | None
    limits: Limits
    allowed_qos: tuple[str, ...]
    default_qos: str | None


def inherited_associations(
    associations: tuple[Association, ...],
) -> list[InheritedAssociation]:
    """Give a site's associations with what they have from above, in the order of the site.

    Raises
    ------
    InputError
        If an association stands twice, below itself, or below an account that is not there.

    >>> from foretime_sim.sites.slurm.inherited_limits import inherited_associations
    >>> inherited_associations(())
    []
    """
    places: dict[AssociationKey, int] = {}
    for place, association in enumerate(associations):
        key = (association.account, association.user, association.slurm_partition)
        if key in places:
            raise InputError(f"site: associations: {_told(key)} stands twice: leave one out")
        places[key] = place
    found: dict[AssociationKey, InheritedAssociation] = {}
    return [_inherit(key, associations, places, found, set()) for key in places]


def _inherit(
    key: AssociationKey,
    associations: tuple[Association, ...],
    places: Mapping[AssociationKey, int],
    found: dict[AssociationKey, InheritedAssociation],
    below: set[AssociationKey],
) -> InheritedAssociation:
    if key in found:
        return found[key]
    if key in below:
        raise InputError(f"site: associations: {_told(key)} stands below itself: change its parent")
    association = associations[places[key]]
    above = association.account if association.user is not None else association.parent
    if above is None and association.account != "root" and ("root", None, None) in places:
        above = "root"
    parent = None
    if above is not None:
        if (above, None, None) not in places:
            raise InputError(
                f"site: associations: {_told(key)} is below account {above}, which is not there:"
                f" add the association of account {above}"
            )
        parent = _inherit((above, None, None), associations, places, found, below | {key})
    found[key] = InheritedAssociation(
        association,
        places[key],
        parent.place if parent else None,
        _with_those_above(association.limits, parent.limits if parent else Limits()),
        association.qos or (parent.allowed_qos if parent else ()),
        association.default_qos or (parent.default_qos if parent else None),
    )
    return found[key]


def _with_those_above(own: Limits, above: Limits) -> Limits:
    changed: dict[str, Any] = {}
    for name in _FROM_ABOVE:
        if getattr(own, name) is None:
            changed[name] = getattr(above, name)
    for name in _FROM_ABOVE_BY_KIND:
        changed[name] = {**getattr(above, name), **getattr(own, name)}
    return replace(own, **changed)


def _told(key: AssociationKey) -> str:
    account, user, slurm_partition = key
    where = f" in partition {slurm_partition}" if slurm_partition else ""
    return f"{user} in account {account}{where}" if user else f"account {account}{where}"


class AccountsOfJobs:
    """Which association and which QOS a job has.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.inherited_limits import AccountsOfJobs, inherited_associations
    >>> from foretime_sim.sites.slurm.limits import Association
    >>> accounts = AccountsOfJobs(
    ...     inherited_associations(
    ...         (Association("physics"), Association("physics", user="ann", default_qos="long"))
    ...     )
    ... )
    >>> accounts.association("ann", None, "all").place, accounts.qos(None, accounts.all[1])
    (1, 'long')
    """

    def __init__(self, associations: list[InheritedAssociation]) -> None:
        self.all = associations
        self._places: dict[AssociationKey, InheritedAssociation] = {}
        self._default_accounts: dict[str, str] = {}
        for found in associations:
            own = found.association
            self._places[own.account, own.user, own.slurm_partition] = found
            if own.user is not None and (own.default or own.user not in self._default_accounts):
                self._default_accounts[own.user] = own.account

    def association(
        self, user: str | None, account: str | None, slurm_partition: str
    ) -> InheritedAssociation | None:
        """Give the association of a job that names this partition first; ``None``: it has none."""
        if user is None:
            return None
        account = account or self._default_accounts.get(user)
        if account is None:
            return None
        in_partition = self._places.get((account, user, slurm_partition))
        return in_partition or self._places.get((account, user, None))

    def line(self, association: InheritedAssociation) -> list[InheritedAssociation]:
        """Give an association and those above it, the topmost last."""
        line = [association]
        while line[-1].parent is not None:
            line.append(self.all[line[-1].parent])
        return line

    def qos(self, named: str | None, association: InheritedAssociation | None) -> str:
        """Give the name of a job's QOS (``assoc_mgr_get_default_qos_info``)."""
        if named is not None:
            return named
        if association is None:
            return "normal"
        only = association.allowed_qos[0] if len(association.allowed_qos) == 1 else None
        root = self.line(association)[-1]
        return association.default_qos or only or root.default_qos or "normal"
