"""What a run does with the jobs of users whom its site does not name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.policies.unknown_users import UnknownUsers, with_names, with_users
from foretime_sim.workloads.job_log import count_jobs
from foretime_sim.workloads.workload import Workload

_ACCOUNT = "account:"


@dataclass(frozen=True, slots=True)
class UnknownUsersChoice:
    """The value of ``--unknown-users``.

    Attributes
    ----------
    text
        As given.
    """

    text: str

    def __post_init__(self) -> None:
        if self.text not in ("error", "refuse") and not self._account:
            raise InputError(
                f"--unknown-users {self.text}: take error, refuse, or an account that takes them"
                " in, account:NAME"
            )

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
            If a site does not name some users, and nothing was said of them.
        """
        notes: dict[str, None] = {}
        if self._account and any(isinstance(each.backfill, Slurm) for each in policies):
            workload = with_names(workload)
        found = []
        for policy in policies:
            if isinstance(policy.backfill, Slurm) and policy.backfill.site.associations:
                policy, note = self._of_site(policy, policy.backfill, workload)
                notes |= {note: None} if note else {}
            found.append(policy)
        return found, workload, tuple(notes)

    def _of_site(
        self, policy: Policy, backfill: Slurm, workload: Workload
    ) -> tuple[Policy, str | None]:
        site = backfill.site
        unknown = UnknownUsers.of(site, workload)
        if not unknown.jobs:
            return policy, None
        whose = f"{count_jobs(unknown.jobs)} of users whom the site does not name"
        if self._account:
            taken = replace(policy, backfill=Slurm(with_users(site, workload, self._account)))
            return taken, f"{whose} ({unknown}) run as those of account {self._account}."
        if not site.enforced:
            return policy, None
        if self.text == "refuse":
            return policy, f"{whose} ({unknown}) are refused."
        raise InputError(
            f"{workload.name}: {unknown.jobs:,} of {count_jobs(len(workload))} are of users whom"
            f" the associations of the site do not name: {unknown}. Its Slurm refuses them. Take"
            " them in as users of an account (--unknown-users account:NAME), or let them be"
            " refused (--unknown-users refuse)"
        )
