"""Who stands where in a site's accounts, and which association and QOS a job goes by."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_estimators.jobs.errors import InputError

from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.site import SlurmSite

ROOT = "root"
"""The account above all."""


class Accounts:
    """The tree of a site's associations, by their positions in `SlurmSite.associations`.

    Parameters
    ----------
    site
        Whose associations; an account is before those below it. There may be none.

    Attributes
    ----------
    parents
        By association, the account that it belongs to; ``None`` of root.
    fair_parents
        By association, the nearest account above it that has shares of its own (``fs_assoc_ptr``
        of Slurm); ``None`` of root.

    Raises
    ------
    InputError
        If there are associations, but none of the account root; if one is there twice, or one
        belongs to an account that is not before it.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.accounts import Accounts
    >>> from foretime_sim.sites.slurm.limits import Association
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> tree = (Association("root"), Association("physics", parent="root"),
    ...         Association("physics", user="ann", default=True))
    >>> accounts = Accounts(SlurmSite(Machine.flat(8), associations=tree))
    >>> accounts.parents, accounts.association_of("ann", None, ("all",))
    ((None, 0, 1), 2)
    """

    def __init__(self, site: SlurmSite) -> None:
        self._site = site
        self._places: dict[tuple[str, str | None, str | None], int] = {}
        self._default_accounts: dict[str, str] = {}
        parents: list[int | None] = []
        for place, one in enumerate(site.associations):
            parents.append(self._parent_of(one, place))
            key = (one.account, one.user, one.slurm_partition)
            if key in self._places:
                raise InputError(f"associations: {_name(one)} is there twice; leave one out")
            self._places[key] = place
            if one.user is not None and (one.default or one.user not in self._default_accounts):
                self._default_accounts[one.user] = one.account
        self.parents: tuple[int | None, ...] = tuple(parents)
        self.fair_parents = tuple(self._fair_parent_of(place) for place in range(len(parents)))

    def _parent_of(self, one: Association, place: int) -> int | None:
        if one.user is None and one.account == ROOT:
            return None
        if place == 0:
            raise InputError(
                f"associations: {_name(one)} is the first; put the account {ROOT!r} before it"
            )
        name = one.account if one.user is not None else one.parent or ROOT
        if (name, None, None) not in self._places:
            raise InputError(
                f"associations: {_name(one)} belongs to the account {name!r}, which is not before"
                " it; put an association of that account there"
            )
        return self._places[name, None, None]

    def _fair_parent_of(self, place: int) -> int | None:
        above = self.parents[place]
        while above is not None and self._site.associations[above].shares is None:
            if self.parents[above] is None:
                break
            above = self.parents[above]
        return above

    def association_of(
        self, user: str | None, account: str | None, slurm_partitions: Sequence[str]
    ) -> int | None:
        """Find the association that a job goes by; ``None`` if its user has none there.

        One for the job's first slurm_partition goes before one for all. A job that names no account
        goes by its user's default account, or the first that there is.
        """
        if user is None:
            return None
        if account is None:
            account = self._default_accounts.get(user)
        if account is None:
            return None
        first = slurm_partitions[0] if slurm_partitions else None
        found = self._places.get((account, user, first))
        return found if found is not None else self._places.get((account, user, None))

    def qos_of(self, association: int | None, qos: str | None) -> str | None:
        """Give the QOS that a job goes by: its own, or the default; ``None`` where there is none.

        The default is that of the association, the only one that it allows, that of root, or
        ``normal`` (``assoc_mgr_get_default_qos_info``, src/common/assoc_mgr.c).

        Raises
        ------
        InputError
            If the site has no such QOS.
        """
        if qos is None:
            qos = self._default_qos(association)
        elif self._site.qos and qos not in self._site.qos:
            raise InputError(
                f"qos: there is no {qos!r}. There are: {', '.join(sorted(self._site.qos))}"
            )
        return qos if qos in self._site.qos else None

    def _default_qos(self, association: int | None) -> str:
        associations = self._site.associations
        if association is not None:
            own = associations[association]
            if own.default_qos is not None:
                return own.default_qos
            if len(own.qos) == 1:
                return own.qos[0]
        if associations and associations[0].default_qos is not None:
            return associations[0].default_qos
        return "normal"


def _name(one: Association) -> str:
    user = "" if one.user is None else f" user={one.user!r}"
    where = "" if one.slurm_partition is None else f" partition={one.slurm_partition!r}"
    return f"account={one.account!r}{user}{where}"
