"""Users of a log whom a site's associations do not name: Slurm refuses their jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.near_names import nearest
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.job_log import count_jobs
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

NO_NAME = "unknown"
"""User of jobs that name none, where they are to be taken in."""
_ACCOUNT = "account:"


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


def with_users(
    site: SlurmSite, workload: Workload, account: str, said: str | None = None
) -> SlurmSite:
    """Take the users whom a site does not name in.

    Who names an account of the site joins that. An account that the site has not becomes one below
    ``account``, and who names none becomes a user of ``account`` itself. Each has one share, and
    the QOS and limits of what is above. ``said`` is how that was asked for.

    Raises
    ------
    InputError
        If the site has no such account.
    """
    there = {one.account: None for one in site.associations if one.user is None}
    if account not in there:
        raise InputError(
            f"{said or f'--unknown-users account:{account}'}: the site has no account {account!r}"
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


@dataclass(frozen=True, slots=True)
class UnknownUsersChoice:
    """What is to become of their jobs.

    Attributes
    ----------
    text
        ``error``, ``refuse`` or ``account:NAME``.
    said
        How that is given, for messages: ``{}`` stands for the text.

    Raises
    ------
    InputError
        If the text is another.

    Examples
    --------
    >>> from foretime_sim.policies.unknown_users import UnknownUsersChoice
    >>> UnknownUsersChoice("account:physics").takes_in
    True
    """

    text: str
    said: str = "--unknown-users {}"

    def __post_init__(self) -> None:
        if self.text not in ("error", "refuse") and not self._account:
            raise InputError(
                f"{self.said.format(self.text)}: take error, refuse, or an account that takes them"
                " in, account:NAME"
            )

    @property
    def takes_in(self) -> bool:
        """Whether users are taken in, as those of an account."""
        return bool(self._account)

    @property
    def _account(self) -> str:
        """Name the account; empty: none."""
        return self.text.removeprefix(_ACCOUNT) if self.text.startswith(_ACCOUNT) else ""

    def applied(
        self, policies: Sequence[Policy], workload: Workload
    ) -> tuple[list[Policy], Workload, tuple[str, ...]]:
        """Give the policies with their sites as asked for, the jobs, and notes on what was done.

        Raises
        ------
        InputError
            If a site does not name some users, and nothing was said of them; if something was, and
            no site names users.
        """
        sites = [each.backfill.site for each in policies if isinstance(each.backfill, Slurm)]
        if self.text != "error" and not any(site.associations for site in sites):
            raise InputError(
                f"{self.said.format(self.text)}: no site here names users; give one that does, or"
                " leave it out"
            )
        notes: dict[str, None] = {}
        if sites:
            workload = self.named(workload)
        found = []
        for policy in policies:
            if isinstance(policy.backfill, Slurm):
                site, note = self.of_site(policy.backfill.site, workload)
                policy = replace(policy, backfill=replace(policy.backfill, site=site))
                notes |= {note: None} if note else {}
            found.append(policy)
        return found, workload, tuple(notes)

    def named(self, workload: Workload) -> Workload:
        """Give jobs without a user a name, if that is to be taken in."""
        return with_names(workload) if self.takes_in else workload

    def of_site(self, site: SlurmSite, workload: Workload) -> tuple[SlurmSite, str | None]:
        """Give a site as asked for, and a note on what was done.

        Raises
        ------
        InputError
            If the site does not name some users, and nothing was said of them.
        """
        unknown = UnknownUsers.of(site, workload) if site.associations else UnknownUsers(0, ())
        if not unknown.jobs:
            return site, None
        whose = f"{count_jobs(unknown.jobs)} of users whom the site does not name"
        if self._account:
            taken = with_users(site, workload, self._account, self.said.format(self.text))
            return taken, f"{whose} ({unknown}) run as those of account {self._account}."
        if not site.enforced:
            return site, None
        if self.text == "refuse":
            return site, f"{whose} ({unknown}) are refused."
        raise InputError(
            f"{workload.name}: {unknown.jobs:,} of {count_jobs(len(workload))} are of users whom"
            f" the associations of the site do not name: {unknown}. Its Slurm refuses them. Take"
            f" them in as users of an account ({self.said.format('account:NAME')}), or let them be"
            f" refused ({self.said.format('refuse')})"
        )


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
