"""A site that is scheduled by Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.switches import Switch


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """What of a partition is not about its nodes; the rest is a `SlurmPartition` of the machine.

    Attributes
    ----------
    priority_job_factor
        PriorityJobFactor.
    qos
        QOS of the partition, whose limits its jobs have; ``None``: none.
    allow_accounts, deny_accounts, allow_qos, deny_qos
        ``None``: all, or none denied.
    min_nodes
        MinNodes.
    max_cpus_per_node
        MaxCPUsPerNode.
    max_memory_per_cpu_mib, max_memory_per_node_mib, default_memory_per_node_mib
        0: no limit, nothing.
    default_time_s
        DefaultTime; ``None``: that of MaxTime.
    over_time_limit_s
        OverTimeLimit; ``None``: that of the cluster.
    billing_weights
        TRESBillingWeights by kind; empty: CPUs.
    preempt_mode
        ``None``: that of the cluster.
    grace_time_s
        GraceTime.
    state
        ``UP``, ``DOWN`` (no starts), ``DRAIN`` (no submissions), ``INACTIVE`` (neither).

    Examples
    --------
    >>> from foretime_sim.sites.slurm.site import PartitionRules
    >>> PartitionRules(priority_job_factor=10, qos="short").state
    'UP'
    """

    priority_job_factor: int = 1
    qos: str | None = None
    allow_accounts: frozenset[str] | None = None
    deny_accounts: frozenset[str] | None = None
    allow_qos: frozenset[str] | None = None
    deny_qos: frozenset[str] | None = None
    min_nodes: int = 0
    max_cpus_per_node: int | None = None
    max_memory_per_cpu_mib: int = 0
    max_memory_per_node_mib: int = 0
    default_memory_per_node_mib: int = 0
    default_time_s: int | None = None
    over_time_limit_s: int | None = None
    billing_weights: Mapping[str, float] = field(default_factory=dict)
    preempt_mode: str | None = None
    grace_time_s: int = 0
    state: str = "UP"


@dataclass(frozen=True, slots=True)
class SlurmSite:
    """A cluster under Slurm: its nodes and partitions, and all that its scheduler goes by.

    Attributes
    ----------
    machine
        Nodes and slurm_partitions.
    version
        Release of Slurm, such as (26, 5).
    parameters, priority
        How its loops and its priorities are set up.
    rules
        Of each slurm_partition by name; of those that are missing the defaults.
    qos
        By name; empty: there are none.
    associations
        Accounts and users; empty: nobody is accounted for. Accounts are put before users, as a
        site's file has them.
    enforced
        Of AccountingStorageEnforce, in lower case: ``associations``, ``limits``, ``qos``, ``safe``.
    reservations
        Of nodes.
    switches
        Of topology/tree, in the order of topology.conf; empty: nodes are chosen by their order.
    licenses
        How many there are of each.
    enforce_part_limits
        EnforcePartLimits: ``NO``, ``ALL`` or ``ANY``.
    preempt_type, preempt_mode
        ``preempt/none``, ``preempt/qos`` or ``preempt/partition_prio``; ``OFF``, ``REQUEUE``,
        ``CANCEL``, ``SUSPEND`` (with ``,GANG``).
    preempt_exempt_time_s
        PreemptExemptTime.
    preempt_parameters
        Of PreemptParameters, in lower case: ``youngest_first``, ``min_exempt_priority=...``, ...
    usage_at
        Epoch seconds of the raw usages; ``None`` where nothing has been used.
    not_modelled
        What of the site nothing here knows, a sentence each.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> site = SlurmSite(Machine.flat(64))
    >>> site.parameters.bf_window, site.rules_of("all").state
    (86400, 'UP')
    """

    machine: Machine
    version: tuple[int, int] = (26, 5)
    parameters: SlurmParameters = field(default_factory=SlurmParameters)
    priority: SlurmPriority = field(default_factory=SlurmPriority)
    rules: Mapping[str, PartitionRules] = field(default_factory=dict)
    qos: Mapping[str, Qos] = field(default_factory=dict)
    associations: tuple[Association, ...] = ()
    enforced: frozenset[str] = frozenset()
    reservations: tuple[NodeReservation, ...] = ()
    switches: tuple[Switch, ...] = ()
    licenses: Mapping[str, int] = field(default_factory=dict)
    enforce_part_limits: str = "NO"
    preempt_type: str = "preempt/none"
    preempt_mode: str = "OFF"
    preempt_exempt_time_s: int = 0
    preempt_parameters: tuple[str, ...] = ()
    usage_at: int | None = None
    not_modelled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(self.associations, key=lambda each: each.user is not None)
        object.__setattr__(self, "associations", tuple(ordered))

    def __hash__(self) -> int:
        """Hash what most sites differ in; mappings can't be hashed."""
        return hash((self.machine, self.version, self.parameters))

    def rules_of(self, slurm_partition: str) -> PartitionRules:
        """Give the rules of a slurm_partition by name; the defaults where it has none."""
        return self.rules.get(slurm_partition, _DEFAULT_RULES)

    def over_time_limit_s(self, slurm_partition: str) -> int:
        """Give OverTimeLimit of a slurm_partition by name, or of the cluster, seconds."""
        own = self.rules_of(slurm_partition).over_time_limit_s
        return self.parameters.over_time_limit_s if own is None else own


_DEFAULT_RULES = PartitionRules()
