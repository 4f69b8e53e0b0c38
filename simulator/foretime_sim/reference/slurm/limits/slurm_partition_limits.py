"""What a partition says of a job: at submission, and at each look at the queue.

Source: _part_access_check, _valid_job_part, job_limits_check (src/slurmctld/job_mgr.c),
part_policy_valid_qos and part_policy_valid_acct (partition_mgr.c), get_node_cnts
(node_scheduler.c), in 22.05.8 and 25.11.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from foretime_sim.machines.machine import SlurmPartition
from foretime_sim.sites.slurm import reasons
from foretime_sim.sites.slurm.limits import Qos, Tres
from foretime_sim.sites.slurm.releases import ACCOUNTS_BELOW_SINCE
from foretime_sim.sites.slurm.site import SlurmSite

Accounts: TypeAlias = tuple[str, ...]
"""A job's account and those above it, its own first; empty: it has no association."""

_REASONS = {
    reasons.BAD_TIME_LIMIT: reasons.PARTITION_TIME,
    reasons.BAD_NODE_COUNT: reasons.PARTITION_NODES,
}


class PartitionLimits:
    """The limits of a site's partitions.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.limits.slurm_partition_limits import PartitionLimits
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> PartitionLimits(SlurmSite(Machine.flat(4))).why_not_considered(
    ...     "all", 10, {"cpu": 1, "node": 1}, None, ()
    ... ) is None
    True
    """

    def __init__(self, site: SlurmSite) -> None:
        self._site = site
        self._enforced = site.enforce_part_limits.upper() in ("YES", "ALL", "ANY")
        self._any = site.enforce_part_limits.upper() == "ANY"
        nodes = {group.name: group for group in site.machine.node_groups}
        self._slurm_partitions = {found.name: found for found in site.machine.slurm_partitions}
        self._nodes = {
            found.name: sum(nodes[name].nodes for name in found.node_groups)
            for found in site.machine.slurm_partitions
        }
        self._cpus = {
            found.name: sum(nodes[name].nodes * nodes[name].cpus for name in found.node_groups)
            for found in site.machine.slurm_partitions
        }

    def why_refused(
        self,
        slurm_partitions: Sequence[str],
        minutes: int,
        tres: Tres,
        qos: Qos | None,
        accounts: Accounts,
    ) -> str | None:
        """Give what sbatch says of a job that its partitions refuse; ``None``: accepted."""
        open_ones = [
            name
            for name in slurm_partitions
            if self._site.rules_of(name).state in ("UP", "DOWN")
        ]  # fmt: skip
        if not open_ones:
            return reasons.PARTITION_CLOSED
        if not self._enforced:
            return None
        found = [self._why_not(name, minutes, tres, qos, accounts) for name in open_ones]
        wrong = [reason for reason in found if reason is not None]
        if wrong and not (self._any and len(wrong) < len(found)):
            return wrong[-1] if self._any else wrong[0]
        return None

    def why_not_considered(
        self, slurm_partition: str, minutes: int, tres: Tres, qos: Qos | None, accounts: Accounts
    ) -> str | None:
        """Give the reason of a job that its partition keeps waiting (``job_limits_check``)."""
        reason = self._why_not(slurm_partition, minutes, tres, qos, accounts)
        if reason is not None:
            return _REASONS.get(reason, reasons.PARTITION_CONFIG)
        state = self._site.rules_of(slurm_partition).state
        if state == "DOWN":
            return reasons.PARTITION_DOWN
        return reasons.PARTITION_INACTIVE if state == "INACTIVE" else None

    def why_not_allowed(
        self, slurm_partition: str, qos: Qos | None, accounts: Accounts
    ) -> str | None:
        """Give the reason of a job whose QOS or account the partition doesn't take."""
        if self._qos_denied(slurm_partition, qos):
            return reasons.QOS_NOT_ALLOWED
        if self._account_denied(slurm_partition, accounts):
            # Newer ones leave the reason that the job had since its submission.
            old = self._site.version < ACCOUNTS_BELOW_SINCE
            return reasons.ACCOUNT_NOT_ALLOWED if old else reasons.PARTITION_CONFIG
        return None

    def why_too_many_nodes(self, slurm_partition: str, nodes: int, qos: Qos | None) -> str | None:
        """Give the reason of a job that needs more nodes than MaxNodes (``get_node_cnts``)."""
        most = self._partition(slurm_partition).max_nodes
        if most is None or nodes <= most or (qos and "PartitionMaxNodes" in qos.flags):
            return None
        return reasons.PARTITION_NODES

    def _why_not(
        self, name: str, minutes: int, tres: Tres, qos: Qos | None, accounts: Accounts
    ) -> str | None:
        found, rules = self._partition(name), self._site.rules_of(name)
        flags = qos.flags if qos else frozenset()
        nodes, cpus = tres.get("node", 0), tres.get("cpu", 0)
        if rules.state in ("UP", "DRAIN"):
            per_node = rules.max_cpus_per_node
            if cpus > self._cpus[name] or (per_node and cpus > per_node * self._nodes[name]):
                return reasons.TOO_MANY_CPUS
            if nodes > self._nodes[name]:
                return reasons.BAD_NODE_COUNT
            if nodes < rules.min_nodes and "PartitionMinNodes" not in flags:
                return reasons.BAD_NODE_COUNT
            if (
                found.max_nodes is not None
                and nodes > found.max_nodes
                and "PartitionMaxNodes" not in flags
            ):
                return reasons.BAD_NODE_COUNT
            if (
                found.max_time_s is not None
                and minutes > found.max_time_s // 60
                and "PartitionTimeLimit" not in flags
            ):
                return reasons.BAD_TIME_LIMIT
        if not self._enforced:
            return None
        if self._qos_denied(name, qos):
            return reasons.BAD_QOS
        return reasons.BAD_ACCOUNT if self._account_denied(name, accounts) else None

    def _qos_denied(self, name: str, qos: Qos | None) -> bool:
        rules = self._site.rules_of(name)
        if rules.allow_qos is not None:
            return qos is None or qos.name not in rules.allow_qos
        return rules.deny_qos is not None and qos is not None and qos.name in rules.deny_qos

    def _account_denied(self, name: str, accounts: Accounts) -> bool:
        rules = self._site.rules_of(name)
        if not accounts or not self._site.enforced:
            return False
        if self._site.version < ACCOUNTS_BELOW_SINCE:
            accounts = accounts[:1]
        if rules.allow_accounts is not None:
            return rules.allow_accounts.isdisjoint(accounts)
        return rules.deny_accounts is not None and not rules.deny_accounts.isdisjoint(accounts)

    def _partition(self, name: str) -> SlurmPartition:
        return self._slurm_partitions[name]
