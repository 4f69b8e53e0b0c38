"""What jobs have, counted under one heading: an association, a QOS, a user or account of a QOS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from foretime_sim.sites.slurm.inherited_limits import InheritedAssociation
from foretime_sim.sites.slurm.limits import Limits, Qos


@dataclass
class Counts:
    """Jobs under one heading (``slurmdb_used_limits_t`` and the usage of QOS and associations).

    Attributes
    ----------
    jobs, submitted
        Running, and pending or running.
    tres
        In use, by kind; nodes once each, however many of its jobs run there.
    left_s
        TRES-seconds that running jobs may still use, by kind, as of the last look of the decay
        thread (``tres_run_secs``).
    jobs_on
        Its running jobs on each node.
    unnamed_nodes
        Nodes of jobs whose nodes are not known.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.limits.limit_counts import Counts
    >>> counts = Counts()
    >>> counts.start({"cpu": 4, "node": 1}, {"cpu": 240, "node": 60}, nodes=[7])
    >>> counts.start({"cpu": 4, "node": 1}, {"cpu": 240, "node": 60}, nodes=[7])
    >>> counts.jobs, counts.tres["cpu"], counts.tres["node"], counts.nodes_more([6, 7], 2)
    (2, 8, 1, 1)
    """

    jobs: int = 0
    submitted: int = 0
    tres: dict[str, int] = field(default_factory=dict)
    left_s: dict[str, int] = field(default_factory=dict)
    jobs_on: dict[int, int] = field(default_factory=dict)
    unnamed_nodes: int = 0

    def start(self, tres: Mapping[str, int], left_s: Mapping[str, int], nodes: list[int]) -> None:
        """Count a job that starts; ``nodes`` empty: each of its nodes is one more."""
        self.jobs += 1
        for kind, count in tres.items():
            self.tres[kind] = self.tres.get(kind, 0) + count
        for kind, seconds in left_s.items():
            self.left_s[kind] = self.left_s.get(kind, 0) + seconds
        if not nodes:
            self.unnamed_nodes += tres.get("node", 0)
        for node in nodes:
            self.jobs_on[node] = self.jobs_on.get(node, 0) + 1
        self.tres["node"] = len(self.jobs_on) + self.unnamed_nodes

    def end(self, tres: Mapping[str, int], nodes: list[int]) -> None:
        """Take away a job that has ended; what it left over is for `take_left`."""
        self.jobs -= 1
        for kind, count in tres.items():
            self.tres[kind] -= count
        if not nodes:
            self.unnamed_nodes -= tres.get("node", 0)
        for node in nodes:
            self.jobs_on[node] -= 1
            if not self.jobs_on[node]:
                del self.jobs_on[node]
        self.tres["node"] = len(self.jobs_on) + self.unnamed_nodes

    def take_left(self, left_s: Mapping[str, int]) -> None:
        """Take TRES-seconds away that have been used, or will not be."""
        for kind, seconds in left_s.items():
            self.left_s[kind] = max(self.left_s.get(kind, 0) - seconds, 0)

    def nodes_more(self, nodes: Iterable[int], count: int) -> int:
        """Say how many of a job's nodes none of its jobs has (``_get_unique_job_node_cnt``)."""
        return count - sum(node in self.jobs_on for node in nodes)


@dataclass
class Group:
    """A QOS or an association: its limits, what its jobs have, and what they have used.

    Attributes
    ----------
    limits
        Its own; of an association those of one job with those that it has from accounts above.
    counts
        Of all its jobs, with those of the associations below it.
    used_tres_s, used_wall_s
        Used in all, decayed.
    decays
        Whether what has been used decays (QOS flag ``NoDecay``).

    Examples
    --------
    >>> from foretime_sim.reference.slurm.limits.limit_counts import Group
    >>> from foretime_sim.sites.slurm.limits import Limits
    >>> Group(Limits(grp_jobs=2)).counts.jobs
    0
    """

    limits: Limits
    counts: Counts = field(default_factory=Counts)
    used_tres_s: dict[str, float] = field(default_factory=dict)
    used_wall_s: float = 0.0
    decays: bool = True

    def used_minutes(self, kind: str) -> int:
        """Give what has been used of a kind, in whole minutes."""
        return int(self.used_tres_s.get(kind, 0.0) / 60.0)


@dataclass
class QosGroup(Group):
    """A QOS, with what the users and accounts of its jobs have under it.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.limits.limit_counts import QosGroup
    >>> from foretime_sim.sites.slurm.limits import Limits, Qos
    >>> QosGroup(Limits(), qos=Qos("normal")).of_user("ann").jobs
    0
    """

    qos: Qos = field(default_factory=lambda: Qos(""))
    users: dict[str | None, Counts] = field(default_factory=dict)
    accounts: dict[str, Counts] = field(default_factory=dict)

    def of_user(self, user: str | None) -> Counts:
        """Give the counts of a user."""
        return self.users.setdefault(user, Counts())

    def of_account(self, account: str) -> Counts:
        """Give the counts of an account; those of accounts below it are not in them."""
        return self.accounts.setdefault(account, Counts())


@dataclass
class AssociationGroup(Group):
    """An association, and those above it.

    Attributes
    ----------
    association
        With what it has from above.
    line
        Itself first, root last.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.limits.limit_counts import AssociationGroup
    >>> from foretime_sim.sites.slurm.inherited_limits import inherited_associations
    >>> from foretime_sim.sites.slurm.limits import Association
    >>> (physics,) = inherited_associations((Association("physics"),))
    >>> AssociationGroup(physics.limits, association=physics).account
    'physics'
    """

    association: InheritedAssociation = field(kw_only=True)
    line: list[AssociationGroup] = field(default_factory=list)

    @property
    def account(self) -> str:
        """Name of its account."""
        return self.association.association.account
