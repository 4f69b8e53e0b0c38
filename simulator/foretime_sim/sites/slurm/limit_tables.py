"""A site's limits with numbers for names, as the native core takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foretime_estimators.jobs.errors import InputError

from foretime_sim.sites.same_site import kept_for_the_same
from foretime_sim.sites.slurm.inherited_limits import (
    AccountsOfJobs,
    inherited_associations,
)
from foretime_sim.sites.slurm.limits import Limits, Qos, Tres
from foretime_sim.sites.slurm.priority_tables import billing_by
from foretime_sim.sites.slurm.reasons import in_slurms_order
from foretime_sim.sites.slurm.releases import (
    ACCOUNTS_BELOW_SINCE,
    RUN_MINUTES_PER_USER_SINCE,
    USER_AND_GROUP_APART_SINCE,
)
from foretime_sim.sites.slurm.site import SlurmSite

NUMBERS = (
    "grp_jobs", "grp_submit_jobs", "grp_wall_s", "max_jobs", "max_submit_jobs",
    "max_jobs_per_account", "max_submit_jobs_per_account", "max_wall_s",
)  # fmt: skip
"""Limits that are one number, as `NumberLimit` of the core (``slurm/limit_setup.hpp``) has them."""

BY_KIND = (
    "grp_tres", "grp_tres_mins", "grp_tres_run_mins", "max_tres_per_job", "max_tres_per_node",
    "max_tres_mins_per_job", "max_tres_per_user", "max_tres_per_account",
    "max_tres_run_mins_per_user", "max_tres_run_mins_per_account", "min_tres_per_job",
)  # fmt: skip
"""Limits by kind of resource, as `TresLimit` of the core has them."""


@dataclass(frozen=True, slots=True)
class LimitTable:
    """The limits of one QOS or association.

    Attributes
    ----------
    numbers
        In the order of `NUMBERS`, walls in minutes; ``None``: no limit.
    by_kind
        In the order of `BY_KIND`: places of kinds with their limits, in Slurm's order.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.limit_tables import limit_table
    >>> from foretime_sim.sites.slurm.limits import Limits
    >>> table = limit_table(Limits(grp_wall_s=600, grp_tres={"cpu": 8}), {"cpu": 0, "node": 1})
    >>> table.numbers[2], table.by_kind[0]
    (10, ((0, 8),))
    """

    numbers: tuple[int | None, ...]
    by_kind: tuple[tuple[tuple[int, int], ...], ...]


def limit_table(limits: Limits, places: Mapping[str, int]) -> LimitTable:
    """Give the table of the limits of a QOS or an association."""
    numbers = []
    for name in NUMBERS:
        limit = getattr(limits, name)
        numbers.append(limit // 60 if limit is not None and name.endswith("_s") else limit)
    by_kind = tuple(
        tuple((places[kind], getattr(limits, name)[kind]) for kind in in_slurms_order(limits_of))
        for name in BY_KIND
        for limits_of in (getattr(limits, name),)
    )
    return LimitTable(tuple(numbers), by_kind)


def kinds_of(limits: Sequence[Limits], licenses: Sequence[str]) -> tuple[str, ...]:
    """Give every kind of resource that limits or licenses name, and those of every job.

    >>> from foretime_sim.sites.slurm.limit_tables import kinds_of
    >>> from foretime_sim.sites.slurm.limits import Limits
    >>> kinds_of([Limits(grp_tres={"gres/gpu": 4})], ["matlab"])
    ('cpu', 'mem', 'node', 'billing', 'gres/gpu', 'license/matlab')
    """
    kinds = {"cpu", "mem", "node", "billing", "gres/gpu", *(f"license/{name}" for name in licenses)}
    for those in limits:
        for name in BY_KIND:
            named: Tres = getattr(those, name)
            kinds |= set(named)
    return tuple(in_slurms_order(kinds))


@dataclass(frozen=True, slots=True)
class QosTable:
    """A QOS as the core has it (``QosSetup``); names are those of `Qos` and its flags."""

    limits: LimitTable
    deny_on_limit: bool
    over_partition_qos: bool
    weighs_minutes: bool
    decays: bool
    any_most_nodes: bool
    any_least_nodes: bool
    any_time_limit: bool
    usage_factor: float
    limit_factor: float | None
    used_s: tuple[float, ...]
    used_wall_s: float


@dataclass(frozen=True, slots=True)
class AssociationTable:
    """An association as the core has it (``AssociationSetup``)."""

    limits: LimitTable
    parent: int | None
    account: int
    used_s: tuple[float, ...]
    used_wall_s: float


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """A slurm_partition as the core has it (``PartitionSetup``)."""

    submits: bool
    starts: bool
    qos: int | None
    cpus: int
    nodes: int
    least_nodes: int
    most_nodes: int | None
    most_cpus_per_node: int | None
    most_minutes: int | None
    denied_qos: tuple[bool, ...]
    denied_associations: tuple[bool, ...]
    billing_weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LimitTables:
    """A site's limits as the core has them (``LimitsSetup`` of ``slurm/limit_setup.hpp``).

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.limit_tables import limit_tables
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> limit_tables(SlurmSite(Machine.flat(64))).kinds
    ('cpu', 'mem', 'node', 'billing', 'gres/gpu')
    """

    kinds: tuple[str, ...]
    are_gres: tuple[bool, ...]
    are_node: tuple[bool, ...]
    billing_by: str
    qos_names: tuple[str, ...]
    qos: tuple[QosTable, ...]
    associations: tuple[AssociationTable, ...]
    slurm_partition_names: tuple[str, ...]
    slurm_partitions: tuple[PartitionTable, ...]
    license_names: tuple[str, ...]
    licenses: tuple[int, ...]
    associations_count: bool
    limits_count: bool
    qos_counts: bool
    safe: bool
    assoc_limit_stop: bool
    run_minutes_of_users: bool
    user_and_group_apart: bool
    names_accounts: bool
    part_limits: str
    multifactor: bool
    decay_half_life_s: float
    accounts: AccountsOfJobs


@kept_for_the_same
def limit_tables(site: SlurmSite) -> LimitTables:
    """Give the tables of a site's limits.

    Raises
    ------
    InputError
        If associations or partitions name what is not there.

    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.limit_tables import limit_tables
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> limit_tables(SlurmSite(Machine.flat(64), licenses={"matlab": 2})).licenses
    (2,)
    """
    found = AccountsOfJobs(inherited_associations(site.associations))
    limits = [*(qos.limits for qos in site.qos.values()), *(each.limits for each in found.all)]
    kinds = kinds_of(limits, tuple(site.licenses))
    places = {kind: place for place, kind in enumerate(kinds)}
    qos_names = tuple(site.qos)
    check_partition_qos(site)
    enforced = {word.lower() for word in site.enforced}
    numbers = {name: number for number, name in enumerate(sorted(_accounts(found)))}
    part_limits = site.enforce_part_limits.upper()
    return LimitTables(
        kinds=kinds,
        are_gres=tuple(kind.startswith("gres/") for kind in kinds),
        are_node=tuple(kind in ("cpu", "mem", "node") for kind in kinds),
        billing_by=billing_by(site.priority.flags),
        qos_names=qos_names,
        qos=tuple(_qos_table(qos, places) for qos in site.qos.values()),
        associations=tuple(
            AssociationTable(
                limit_table(each.limits, places),
                each.parent,
                numbers[each.association.account],
                _row(each.association.used_tres_s, kinds),
                each.association.used_wall_s,
            )
            for each in found.all
        ),
        slurm_partition_names=tuple(part.name for part in site.machine.slurm_partitions),
        slurm_partitions=tuple(
            _partition_table(site, part.name, qos_names, found, kinds)
            for part in site.machine.slurm_partitions
        ),
        license_names=tuple(site.licenses),
        licenses=tuple(site.licenses.values()),
        associations_count=bool(enforced),
        limits_count=not enforced.isdisjoint({"limits", "safe", "all"}),
        qos_counts=not enforced.isdisjoint({"qos", "all"}),
        safe=not enforced.isdisjoint({"safe", "all"}),
        assoc_limit_stop=site.parameters.assoc_limit_stop,
        run_minutes_of_users=site.version >= RUN_MINUTES_PER_USER_SINCE,
        names_accounts=site.version < ACCOUNTS_BELOW_SINCE,
        user_and_group_apart=site.version >= USER_AND_GROUP_APART_SINCE,
        part_limits={"YES": "all", "ALL": "all", "ANY": "any"}.get(part_limits, "no"),
        multifactor=site.priority.multifactor,
        decay_half_life_s=float(site.priority.decay_half_life_s),
        accounts=found,
    )


def check_partition_qos(site: SlurmSite) -> None:
    """Refuse a site whose partitions name a QOS that is not there.

    Raises
    ------
    InputError
        If one does.

    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.limit_tables import check_partition_qos
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> check_partition_qos(SlurmSite(Machine.flat(64)))
    """
    for name, rules in site.rules.items():
        if rules.qos is not None and rules.qos not in site.qos:
            raise InputError(
                f"site: partition {name} has the QOS {rules.qos}, which is not there:"
                f" add [qos.{rules.qos}], or take it from the partition"
            )


def _qos_table(qos: Qos, places: Mapping[str, int]) -> QosTable:
    return QosTable(
        limits=limit_table(qos.limits, places),
        deny_on_limit="DenyOnLimit" in qos.flags,
        over_partition_qos="OverPartQOS" in qos.flags,
        weighs_minutes="UsageFactorSafe" in qos.flags,
        decays="NoDecay" not in qos.flags,
        any_most_nodes="PartitionMaxNodes" in qos.flags,
        any_least_nodes="PartitionMinNodes" in qos.flags,
        any_time_limit="PartitionTimeLimit" in qos.flags,
        usage_factor=qos.usage_factor,
        limit_factor=qos.limit_factor,
        used_s=_row(qos.used_tres_s, tuple(places)),
        used_wall_s=qos.used_wall_s,
    )


def _partition_table(
    site: SlurmSite,
    name: str,
    qos_names: tuple[str, ...],
    found: AccountsOfJobs,
    kinds: tuple[str, ...],
) -> PartitionTable:
    (part,) = (each for each in site.machine.slurm_partitions if each.name == name)
    rules = site.rules_of(name)
    groups = [group for group in site.machine.node_groups if group.name in part.node_groups]
    return PartitionTable(
        submits=rules.state in ("UP", "DOWN"),
        starts=rules.state in ("UP", "DRAIN"),
        qos=qos_names.index(rules.qos) if rules.qos is not None else None,
        cpus=sum(group.nodes * group.cpus for group in groups),
        nodes=sum(group.nodes for group in groups),
        least_nodes=rules.min_nodes,
        most_nodes=part.max_nodes,
        most_cpus_per_node=rules.max_cpus_per_node or None,
        most_minutes=part.max_time_s // 60 if part.max_time_s is not None else None,
        denied_qos=tuple(_qos_denied(site, name, qos) for qos in (*qos_names, None)),
        denied_associations=tuple(
            _accounts_denied(site, name, [above.association.account for above in found.line(each)])
            for each in found.all
        ),
        billing_weights=_row(rules.billing_weights, kinds) if rules.billing_weights else (),
    )


def _qos_denied(site: SlurmSite, name: str, qos: str | None) -> bool:
    rules = site.rules_of(name)
    if rules.allow_qos is not None:
        return qos is None or qos not in rules.allow_qos
    return rules.deny_qos is not None and qos is not None and qos in rules.deny_qos


def _accounts_denied(site: SlurmSite, name: str, accounts: list[str]) -> bool:
    rules = site.rules_of(name)
    if not site.enforced:
        return False
    if site.version < ACCOUNTS_BELOW_SINCE:
        accounts = accounts[:1]
    if rules.allow_accounts is not None:
        return rules.allow_accounts.isdisjoint(accounts)
    return rules.deny_accounts is not None and not rules.deny_accounts.isdisjoint(accounts)


def _accounts(found: AccountsOfJobs) -> set[str]:
    return {each.association.account for each in found.all}


def _row(by_kind: Mapping[str, float], kinds: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(float(by_kind.get(kind, 0.0)) for kind in kinds)
