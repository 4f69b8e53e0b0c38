"""A site's priorities, and what they need to know of jobs, by number, as the native core has them.

All factors that don't change with time are worked out here, of associations, QOS and
slurm_partitions; those of jobs are left to the core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.site import SlurmSite

NO_ASSOCIATION = -1
_ON_NODES = ("cpu", "mem", "node")


@dataclass(frozen=True, slots=True)
class PriorityTables:
    """See ``simulator/cpp/slurm/priorities.hpp``; factors are weighed.

    Attributes
    ----------
    kinds
        Kinds of TRES: cpu, mem, node, then the others by name. Every row of counts or weights is
        in this order.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.priority_tables import PriorityTables
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> PriorityTables.of(SlurmSite(Machine.flat(8))).partition_tres
    ((8, 0, 8, 0),)
    """

    multifactor: bool
    fair_share: str
    dampening_factor: int
    parents: tuple[int, ...]
    fair_parents: tuple[int, ...]
    are_users: tuple[bool, ...]
    shares: tuple[int | None, ...]
    raw_usage: tuple[float, ...]
    association_factors: tuple[float, ...]
    reset_period: str
    half_life_s: int
    calc_period_s: int
    usage_at: int | None
    charges_ends: bool
    shows_running: bool
    only_up: bool
    accrues_always: bool
    weight_age: float
    max_age_s: int
    weight_fair_share: float
    weight_job_size: float
    weight_partition: float
    favors_small: bool
    small_relative_to_time: bool
    cpus: int
    nodes: int
    kinds: tuple[str, ...]
    are_gres: tuple[bool, ...]
    weight_tres: tuple[float, ...]
    weight_billing: float
    tres_normalised: bool
    billing_by: str
    partition_factors: tuple[float, ...]
    billing_weights: tuple[tuple[float, ...], ...]
    partition_tres: tuple[tuple[int, ...], ...]
    qos_factors: Mapping[str, float] = field(default_factory=dict)
    """By name of a QOS, weighed."""
    usage_factors: Mapping[str, float | None] = field(default_factory=dict)
    """By name of a QOS; ``None``: usage under it counts as it is."""

    @classmethod
    def of(cls, site: SlurmSite) -> PriorityTables:
        """Make the tables of a site.

        Raises
        ------
        InputError
            As `Accounts`.
        """
        settings, accounts = site.priority, Accounts(site)
        flags, associations = settings.flags, site.associations
        kinds = _kinds_of(site)
        names = [part.name for part in site.machine.slurm_partitions]
        weights = settings.weight_tres
        return cls(
            multifactor=settings.multifactor,
            fair_share=_fair_share_of(flags),
            dampening_factor=settings.dampening_factor,
            parents=_numbers(accounts.parents),
            fair_parents=_numbers(accounts.fair_parents),
            are_users=tuple(one.user is not None for one in associations),
            shares=tuple(one.shares for one in associations),
            raw_usage=tuple(one.raw_usage for one in associations),
            association_factors=_scaled(
                [one.priority for one in associations],
                0,
                settings.weight_assoc,
                normalised=not _any(flags, "NO_NORMAL_ASSOC"),
            ),
            reset_period=settings.usage_reset_period.upper(),
            half_life_s=settings.decay_half_life_s,
            calc_period_s=settings.calc_period_s,
            usage_at=site.usage_at,
            charges_ends=bool({"limits", "safe", "all"} & site.enforced),
            shows_running="CALCULATE_RUNNING" in flags,
            only_up="INCR_ONLY" in flags,
            accrues_always="ACCRUE_ALWAYS" in flags,
            weight_age=float(settings.weight_age),
            max_age_s=settings.max_age_s,
            weight_fair_share=float(settings.weight_fair_share),
            weight_job_size=float(settings.weight_job_size),
            weight_partition=float(settings.weight_partition),
            favors_small=settings.favor_small,
            small_relative_to_time="SMALL_RELATIVE_TO_TIME" in flags,
            cpus=site.machine.cpus,
            nodes=site.machine.nodes,
            kinds=kinds,
            are_gres=tuple(kind.startswith("gres/") for kind in kinds),
            weight_tres=tuple(weights.get(kind, 0.0) for kind in kinds) if weights else (),
            weight_billing=weights.get("billing", 0.0),
            tres_normalised=not _any(flags, "NO_NORMAL_TRES"),
            billing_by=billing_by(flags),
            # The core weighs these: one at least counts as the highest.
            partition_factors=_scaled(
                [site.rules_of(name).priority_job_factor for name in names],
                1,
                1,
                normalised=not _any(flags, "NO_NORMAL_PART"),
            ),
            billing_weights=tuple(
                _row(site.rules_of(name).billing_weights, kinds) for name in names
            ),
            partition_tres=tuple(
                tuple(_tres_of(site, place).get(kind, 0) for kind in kinds)
                for place in range(len(names))
            ),
            qos_factors=dict(
                zip(
                    site.qos,
                    _scaled(
                        [qos.priority for qos in site.qos.values()],
                        0,
                        settings.weight_qos,
                        normalised=not _any(flags, "NO_NORMAL_QOS"),
                    ),
                    strict=True,
                )
            ),
            usage_factors={
                name: None if qos.usage_factor < 0 else qos.usage_factor
                for name, qos in site.qos.items()
            },
        )

    def counts(self, tres: Mapping[str, int]) -> tuple[int, ...]:
        """Put counts by kind in the order of the tables; kinds that weigh nothing are left out.

        A job that says nothing of its nodes asks for one.
        """
        return tuple(tres.get(kind, 1 if kind == "node" else 0) for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class PricedJobTables:
    """What priorities need to know of jobs, a place for each (``PricedJob`` of the core).

    Examples
    --------
    >>> from foretime_sim.sites.slurm.priority_tables import PricedJobTables
    >>> PricedJobTables([-1], [[0]], [0], [60], [0], [0], [0.0], [None], [(1, 0, 1)]).nices
    [0]
    """

    associations: Sequence[int]
    slurm_partitions: Sequence[Sequence[int]]
    submit_times: Sequence[int]
    time_limits_s: Sequence[int]
    nices: Sequence[int]
    site_factors: Sequence[int]
    qos_factors: Sequence[float]
    usage_factors: Sequence[float | None]
    tres: Sequence[Sequence[int]]


def _kinds_of(site: SlurmSite) -> tuple[str, ...]:
    kinds = {"gres/gpu", *(f"license/{name}" for name in site.licenses), *site.priority.weight_tres}
    for part in site.machine.slurm_partitions:
        kinds |= set(site.rules_of(part.name).billing_weights)
    return (*_ON_NODES, *sorted(kinds - {*_ON_NODES, "billing"}))


def _fair_share_of(flags: frozenset[str]) -> str:
    if "DEPTH_OBLIVIOUS" in flags:
        return "depth-oblivious"
    return "classic" if "NO_FAIR_TREE" in flags else "fair-tree"


def billing_by(flags: frozenset[str]) -> str:
    """Say how the billing TRES is worked out, as the core has it.

    >>> from foretime_sim.sites.slurm.priority_tables import billing_by
    >>> billing_by(frozenset({"MAX_TRES"}))
    'maximum'
    """
    if "MAX_TRES_GRES" in flags:
        return "maximum-and-gres"
    return "maximum" if "MAX_TRES" in flags else "sum"


def _any(flags: frozenset[str], flag: str) -> bool:
    return flag in flags or "NO_NORMAL_ALL" in flags


def _numbers(places: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(NO_ASSOCIATION if place is None else place for place in places)


def _scaled(
    values: Sequence[int], least_highest: int, weight: int, *, normalised: bool
) -> tuple[float, ...]:
    highest = max([least_highest, *values])
    if not normalised:
        return tuple(float(value) * float(weight) for value in values)
    if not highest:
        return tuple(0.0 for _ in values)
    return tuple(float(value) / float(highest) * float(weight) for value in values)


def _row(weights: Mapping[str, float], kinds: Sequence[str]) -> tuple[float, ...]:
    return tuple(weights.get(kind, 0.0) for kind in kinds) if weights else ()


def _tres_of(site: SlurmSite, place: int) -> dict[str, int]:
    machine = site.machine
    groups = [machine.node_groups[group] for group in machine.groups_of(place)]
    there = {f"license/{name}": count for name, count in site.licenses.items()}
    for group in groups:
        of_node = {
            "cpu": group.cpus,
            "mem": group.memory_mib,
            "node": 1,
            "gres/gpu": group.gpus,
        }
        for kind, count in of_node.items():
            there[kind] = there.get(kind, 0) + group.nodes * count
    return there
