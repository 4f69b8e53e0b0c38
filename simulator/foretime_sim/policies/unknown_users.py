"""Users of a log whom a site's associations do not name: Slurm refuses their jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.near_names import nearest
from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

NO_NAME = "unknown"
"""User of jobs that name none, where they are to be taken in."""


@dataclass(frozen=True, slots=True)
class UnknownUsers:
    """Who of a workload has no association in a site.

    Attributes
    ----------
    jobs
        How many jobs are theirs.
    pairs
        Their users and accounts, each once; ``None`` where a job names none.
    """

    jobs: int
    pairs: tuple[tuple[str | None, str | None], ...]

    @classmethod
    def of(cls, site: SlurmSite, workload: Workload) -> UnknownUsers:
        """Find them.

        Examples
        --------
        >>> from foretime_sim import generate
        >>> from foretime_sim.machines.machine import Machine
        >>> from foretime_sim.policies.unknown_users import UnknownUsers
        >>> from foretime_sim.sites.slurm.limits import Association
        >>> from foretime_sim.sites.slurm.site import SlurmSite
        >>> site = SlurmSite(Machine.flat(256), associations=(Association("root"),))
        >>> UnknownUsers.of(site, generate("lublin2003", jobs=10, seed=1))
        UnknownUsers(jobs=10, pairs=(('user2', 'group1'), ('user3', 'group1'), ('user4', 'group1')))
        """
        accounts, jobs = Accounts(site), 0
        pairs: dict[tuple[str | None, str | None], None] = {}
        for user, account, slurm_partition, count in _kinds_of(site, workload):
            if accounts.association_of(user, account, (slurm_partition,)) is None:
                jobs += count
                pairs[user, account] = None
        return cls(jobs, tuple(pairs))

    def __str__(self) -> str:
        """Name some of them."""
        named = list(dict.fromkeys(_name(*pair) for pair in self.pairs))
        more = f" and {len(named) - 5:,} more" if len(named) > 5 else ""
        return ", ".join(named[:5]) + more


def with_users(site: SlurmSite, workload: Workload, account: str) -> SlurmSite:
    """Take the users whom a site does not name in.

    Who names an account of the site joins that. An account that the site has not becomes one below
    ``account``, and who names none becomes a user of ``account`` itself. Each has one share, and
    the QOS and limits of what is above.

    Raises
    ------
    InputError
        If the site has no such account.
    """
    there = {one.account: None for one in site.associations if one.user is None}
    if account not in there:
        raise InputError(
            f"--unknown-users account:{account}: the site has no account {account!r}"
            f"{nearest(account, list(there))}"
        )
    added: dict[tuple[str, str | None], Association] = {}
    for user, named in UnknownUsers.of(site, workload).pairs:
        below = named or account
        if below not in there:
            added[below, None] = Association(below, parent=account, shares=1)
        if user is not None:
            added[below, user] = Association(below, user=user, shares=1, default=named is None)
    return replace(site, associations=(*site.associations, *added.values()))


def with_names(workload: Workload) -> Workload:
    """Give jobs without a user one of the name `NO_NAME`."""
    if workload.users is None:
        codes = np.zeros(len(workload), dtype=np.int32)
        return replace(workload, users=Labels(codes, (NO_NAME,)))
    missing = workload.users.codes < 0
    if not missing.any():
        return workload
    names = workload.users.names
    place = names.index(NO_NAME) if NO_NAME in names else len(names)
    codes = np.where(missing, place, workload.users.codes).astype(np.int32)
    return replace(workload, users=Labels(codes, tuple(dict.fromkeys((*names, NO_NAME)))))


def _kinds_of(
    site: SlurmSite, workload: Workload
) -> Iterator[tuple[str | None, str | None, str, int]]:
    """Give each user, account and first slurm_partition that jobs name, with how many do."""
    default = site.machine.slurm_partitions[site.machine.default_partition].name
    asked = None if workload.requests is None else workload.requests.slurm_partitions
    columns = (workload.users, workload.projects, asked)
    codes = np.stack(
        [
            np.full(len(workload), -1) if column is None else np.asarray(column.codes)
            for column in columns
        ],
        axis=1,
    )
    kinds, counts = np.unique(codes, axis=0, return_counts=True)
    for (user, account, part), count in zip(kinds.tolist(), counts.tolist(), strict=True):
        first = default if asked is None or part < 0 else asked.names[part].split(",")[0]
        yield (
            None if workload.users is None or user < 0 else workload.users.names[user],
            None if workload.projects is None or account < 0 else workload.projects.names[account],
            first,
            count,
        )


def _name(user: str | None, account: str | None) -> str:
    if user is None:
        return "jobs without a user"
    return user if account is None else f"{user} (account {account})"
