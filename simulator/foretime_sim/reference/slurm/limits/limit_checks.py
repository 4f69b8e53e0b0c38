"""What QOS and associations say of one job: before nodes are looked for, and once they are known.

Source: acct_policy_job_runnable_pre_select, acct_policy_get_max_nodes and
acct_policy_job_runnable_post_select with all that they call (src/slurmctld/acct_policy.c, 22.05.8
and 25.11.7). Limits of the first QOS hide those of the second, and both hide those of associations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foretime_sim.reference.slurm.limits.limit_counts import (
    AssociationGroup,
    Counts,
    Group,
    QosGroup,
)
from foretime_sim.sites.slurm import reasons
from foretime_sim.sites.slurm.limits import Limits, Tres
from foretime_sim.sites.slurm.reasons import TresLimit, in_slurms_order, word
from foretime_sim.sites.slurm.releases import RUN_MINUTES_PER_USER_SINCE


@dataclass(frozen=True)
class PolicyCase:
    """A job, and whose limits it has.

    Attributes
    ----------
    user
        Whose it is.
    minutes
        Its time limit.
    qos
        The QOS that count, the stronger first (``acct_policy_set_qos_order``).
    own_qos
        The job's own QOS; ``None``: it has none.
    line
        Its association and those above it.
    safe
        Whether a job starts only if what is left lasts for all of it.
    version
        Release of Slurm.
    """

    user: str | None
    minutes: int
    qos: tuple[QosGroup, ...]
    own_qos: QosGroup | None
    line: tuple[AssociationGroup, ...]
    safe: bool
    version: tuple[int, int]

    @property
    def usage_factor(self) -> float:
        """UsageFactor of its own QOS."""
        return self.own_qos.qos.usage_factor if self.own_qos else 1.0

    @property
    def limit_factor(self) -> float | None:
        """LimitFactor of the first QOS that has one."""
        factors = (qos.qos.limit_factor for qos in self.qos)
        return next((factor for factor in factors if factor is not None), None)

    def weighed(self, minutes: int) -> int:
        """Give minutes as they count under the QOS flag UsageFactorSafe."""
        if self.own_qos and "UsageFactorSafe" in self.own_qos.qos.flags:
            return int(minutes * self.usage_factor)
        return minutes


class Imposed:
    """Limits that a QOS has set: those after it are not looked at."""

    def __init__(self) -> None:
        self._set: set[tuple[str, str]] = set()

    def has(self, limit: str, kind: str = "") -> bool:
        """Say whether a limit, of a kind, has been set."""
        return (limit, kind) in self._set

    def add(self, limit: str, kind: str = "") -> None:
        """Note that a limit has been set."""
        self._set.add((limit, kind))

    def takes(self, limits: Limits, name: str) -> bool:
        """Say whether a limit of a QOS counts, and note it."""
        if getattr(limits, name) is None or self.has(name):
            return False
        self.add(name)
        return True


def why_not_considered(case: PolicyCase) -> str | None:
    """Say what keeps a job from being looked at (``acct_policy_job_runnable_pre_select``)."""
    imposed = Imposed()
    for qos in case.qos:
        reason = _qos_before_nodes(case, qos, imposed)
        if reason:
            return reason
    for level, group in enumerate(case.line):
        limits, counts = group.limits, group.counts
        if (
            limits.grp_jobs is not None
            and not imposed.has("grp_jobs")
            and counts.jobs >= limits.grp_jobs
        ):
            return reasons.ASSOC_GROUP_JOBS
        if limits.grp_wall_s is not None and not imposed.has("grp_wall_s"):
            used, most = int(group.used_wall_s / 60.0), limits.grp_wall_s // 60
            if used >= most or (case.safe and used + case.weighed(case.minutes) > most):
                return reasons.ASSOC_GROUP_WALL
        if level:
            continue
        if (
            limits.max_jobs is not None
            and not imposed.has("max_jobs")
            and not imposed.has("max_jobs_per_account")
            and counts.jobs >= limits.max_jobs
        ):
            return reasons.ASSOC_JOBS
        if (
            limits.max_wall_s is not None
            and not imposed.has("max_wall_s")
            and case.weighed(case.minutes) > limits.max_wall_s // 60
        ):
            return reasons.ASSOC_WALL
    return None


def _qos_before_nodes(case: PolicyCase, qos: QosGroup, imposed: Imposed) -> str | None:
    limits = qos.limits
    minutes = case.minutes
    if imposed.takes(limits, "grp_jobs") and qos.counts.jobs >= _count(limits.grp_jobs):
        return reasons.QOS_GROUP_JOBS
    if imposed.takes(limits, "grp_wall_s"):
        minutes = case.weighed(minutes)
        used, most = int(qos.used_wall_s / 60.0), _count(limits.grp_wall_s) // 60
        if used >= most or (case.safe and used + minutes > most):
            return reasons.QOS_GROUP_WALL
    account = case.line[0].account
    if imposed.takes(limits, "max_jobs_per_account") and qos.of_account(account).jobs >= _count(
        limits.max_jobs_per_account
    ):
        return reasons.QOS_ACCOUNT_JOBS
    if imposed.takes(limits, "max_jobs") and qos.of_user(case.user).jobs >= _count(limits.max_jobs):
        return reasons.QOS_USER_JOBS
    # After GrpWall of the same QOS, Slurm weighs the same minutes a second time.
    if (
        imposed.takes(limits, "max_wall_s")
        and case.weighed(minutes) > _count(limits.max_wall_s) // 60
    ):
        return reasons.QOS_WALL
    return None


def why_too_many_nodes(case: PolicyCase, nodes: int) -> str | None:
    """Say which limit has fewer nodes than a job needs (``acct_policy_get_max_nodes``)."""
    most: int | None = None
    reason = ""

    def lower(limit: int | None, told: str) -> None:
        nonlocal most, reason
        if limit is not None and (most is None or limit < most):
            most, reason = limit, told

    of_qos: dict[str, int | None] = {}
    for name in ("max_tres_per_account", "max_tres_per_job", "max_tres_per_user", "grp_tres"):
        of_each = [getattr(qos.limits, name).get("node") for qos in case.qos]
        of_qos[name] = next((limit for limit in of_each if limit is not None), None)
    lower(of_qos["max_tres_per_account"], word(TresLimit.QOS_ACCOUNT, "node"))
    lower(of_qos["max_tres_per_job"], word(TresLimit.QOS_JOB, "node"))
    lower(of_qos["max_tres_per_user"], word(TresLimit.QOS_USER, "node"))
    no_qos_limit = most is None
    lower(of_qos["grp_tres"], word(TresLimit.QOS_GROUP, "node"))
    # Here Slurm asks the first QOS alone for its factor.
    factor = case.qos[0].qos.limit_factor if case.qos else None
    for level, group in enumerate(case.line):
        before = most
        if of_qos["grp_tres"] is None:
            lower(
                _weighed_limit(group.limits.grp_tres.get("node"), factor),
                word(TresLimit.ASSOC_GROUP, "node"),
            )
        of_a_group = most != before
        if not level and no_qos_limit:
            lower(
                _weighed_limit(group.limits.max_tres_per_job.get("node"), factor),
                word(TresLimit.ASSOC_JOB, "node"),
            )
        if of_a_group:
            break
    return reason if most is not None and most < nodes else None


def why_not_started(case: PolicyCase, tres: Tres, nodes: list[int]) -> str | None:
    """Say what keeps a job from starting with resources (``..._job_runnable_post_select``).

    Parameters
    ----------
    tres
        What it would get, by kind.
    nodes
        On which nodes; empty if that is not known: then each counts as one more.
    """
    minutes = case.weighed(case.minutes)
    asked = {kind: minutes * count for kind, count in tres.items()}
    imposed = Imposed()
    for qos in case.qos:
        reason = _qos_with_nodes(case, qos, tres, asked, nodes, imposed)
        if reason:
            return reason
    factor = case.limit_factor
    for level, group in enumerate(case.line):
        reason = _association_with_nodes(
            case, group, level, factor, tres, asked, nodes, imposed
        )  # fmt: skip
        if reason:
            return reason
    return None


def _qos_with_nodes(
    case: PolicyCase,
    qos: QosGroup,
    tres: Tres,
    asked: Tres,
    nodes: list[int],
    imposed: Imposed,
) -> str | None:
    limits = qos.limits
    by_user = qos.of_user(case.user)
    by_account = qos.of_account(case.line[0].account)
    usage = _UsageCheck(imposed, imposes=True)
    used, left = _minutes(case, qos)
    reason = (
        usage.why(
            "grp_tres_mins", limits.grp_tres_mins, asked,
            left, used, TresLimit.QOS_GROUP_MINUTES, safe=case.safe,
        )
        or usage.why(
            "grp_tres", limits.grp_tres, _unique(tres, qos.counts, nodes),
            qos.counts.tres, None, TresLimit.QOS_GROUP,
        )
        or usage.why(
            "grp_tres_run_mins", limits.grp_tres_run_mins, asked,
            left, None, TresLimit.QOS_GROUP_RUN_MINUTES,
        )
    )  # fmt: skip
    if reason:
        return reason
    divisor = tres.get("node", 0)
    for name, of_job, divided_by, least, limit in (
        ("max_tres_mins_per_job", asked, 0, False, TresLimit.QOS_JOB_MINUTES),
        ("max_tres_per_job", tres, 0, False, TresLimit.QOS_JOB),
        ("max_tres_per_node", tres, divisor, False, TresLimit.QOS_JOB_NODE),
        ("min_tres_per_job", tres, 0, True, TresLimit.QOS_LEAST),
    ):
        reason = qos_job_limit(
            name, getattr(limits, name), of_job, divided_by, least, limit, imposed
        )  # fmt: skip
        if reason:
            return reason
    reason = usage.why(
        "max_tres_per_account", limits.max_tres_per_account,
        _unique(tres, by_account, nodes), by_account.tres, None, TresLimit.QOS_ACCOUNT,
    ) or usage.why(
        "max_tres_per_user", limits.max_tres_per_user,
        _unique(tres, by_user, nodes), by_user.tres, None, TresLimit.QOS_USER,
    )  # fmt: skip
    if reason or case.version < RUN_MINUTES_PER_USER_SINCE:
        return reason
    for name, counts, limit in (
        ("max_tres_run_mins_per_account", by_account, TresLimit.QOS_ACCOUNT_RUN_MINUTES),
        ("max_tres_run_mins_per_user", by_user, TresLimit.QOS_USER_RUN_MINUTES),
    ):
        left = _whole_minutes(case, counts.left_s)
        reason = usage.why(name, getattr(limits, name), asked, left, None, limit)
        if reason:
            return reason
    return None


def _association_with_nodes(
    case: PolicyCase,
    group: AssociationGroup,
    level: int,
    factor: float | None,
    tres: Tres,
    asked: Tres,
    nodes: list[int],
    imposed: Imposed,
) -> str | None:
    limits = group.limits
    usage = _UsageCheck(imposed, imposes=False)
    used, left = _minutes(case, group)
    reason = (
        usage.why(
            "grp_tres_mins", limits.grp_tres_mins, asked,
            left, used, TresLimit.ASSOC_GROUP_MINUTES, safe=case.safe,
        )
        or usage.why(
            "grp_tres", weighed_limits(limits.grp_tres, factor),
            _unique(tres, group.counts, nodes),
            group.counts.tres, None, TresLimit.ASSOC_GROUP,
        )
        or usage.why(
            "grp_tres_run_mins", limits.grp_tres_run_mins, asked,
            left, None, TresLimit.ASSOC_GROUP_RUN_MINUTES,
        )
    )  # fmt: skip
    if reason or level:
        return reason
    divisor = tres.get("node", 0)
    most = weighed_limits(limits.max_tres_per_job, factor)
    return (
        association_job_limit(
            "max_tres_mins_per_job", limits.max_tres_mins_per_job, asked, 0,
            TresLimit.ASSOC_JOB_MINUTES, imposed,
        )
        or association_job_limit(
            "max_tres_per_job", most, tres, 0, TresLimit.ASSOC_JOB, imposed
        )
        or association_job_limit(
            "max_tres_per_node", limits.max_tres_per_node, tres, divisor,
            TresLimit.ASSOC_JOB_NODE, imposed,
        )
    )  # fmt: skip


def qos_job_limit(
    name: str,
    limits: Tres,
    of_job: Tres,
    divided_by: int,
    least: bool,
    limit: TresLimit,
    imposed: Imposed,
) -> str | None:
    """Say which kind of a QOS's limit a job exceeds (``_validate_tres_limits_for_qos``)."""
    for kind in in_slurms_order(limits):
        if imposed.has(name, kind):
            continue
        imposed.add(name, kind)
        count = of_job.get(kind, 0)
        if divided_by:
            count //= divided_by
        if (count < limits[kind]) if least else (count > limits[kind]):
            return word(limit, kind)
    return None


def association_job_limit(
    name: str, limits: Tres, of_job: Tres, divided_by: int, limit: TresLimit, imposed: Imposed
) -> str | None:
    """Say which kind of an association's limit a job exceeds (``..._limits_for_assoc``)."""
    for kind in in_slurms_order(limits):
        count = of_job.get(kind, 0)
        if imposed.has(name, kind) or not count:
            continue
        if divided_by:
            count //= divided_by
        if count > limits[kind]:
            return word(limit, kind)
    return None


@dataclass(frozen=True)
class _UsageCheck:
    """``_validate_tres_usage_limits``; a QOS hides its limits from those after it."""

    imposed: Imposed
    imposes: bool

    def why(
        self,
        name: str,
        limits: Tres,
        asked: Tres,
        in_use: Mapping[str, int],
        used: Mapping[str, int] | None,
        limit: TresLimit,
        *,
        safe: bool = True,
    ) -> str | None:
        for kind in in_slurms_order(limits):
            if self.imposed.has(name, kind):
                continue
            if self.imposes:
                self.imposed.add(name, kind)
            most, count = limits[kind], asked.get(kind, 0)
            if used is not None and count and used.get(kind, 0) >= most:
                return word(limit, kind)
            if not safe:
                continue
            gone = used.get(kind, 0) if used is not None else 0
            if count > most or (count and count + in_use.get(kind, 0) > most - gone):
                return word(limit, kind)
        return None


def _minutes(case: PolicyCase, group: Group) -> tuple[dict[str, int], dict[str, int]]:
    """Give the minutes that a group has used, and that its running jobs may still use."""
    if case.usage_factor == 0.0:
        return {}, {}
    used = {kind: group.used_minutes(kind) for kind in group.used_tres_s}
    return used, _whole_minutes(case, group.counts.left_s)


def _whole_minutes(case: PolicyCase, seconds: Mapping[str, int]) -> dict[str, int]:
    if case.usage_factor == 0.0:
        return {}
    return {kind: left // 60 for kind, left in seconds.items()}


def _unique(tres: Tres, counts: Counts, nodes: list[int]) -> dict[str, int]:
    """Give what a job would get, with the nodes alone that none of the group's jobs has."""
    return {**tres, "node": counts.nodes_more(nodes, tres.get("node", 0))}


def weighed_limits(limits: Tres, factor: float | None) -> Tres:
    """Give limits of an association under a QOS's LimitFactor (``_apply_limit_factor``)."""
    if factor is None or factor <= 0:
        return limits
    return {kind: int(limit * factor) for kind, limit in limits.items()}


def _weighed_limit(limit: int | None, factor: float | None) -> int | None:
    return limit if limit is None or factor is None or factor <= 0 else int(limit * factor)


def _count(limit: int | None) -> int:
    """Give a limit that `Imposed.takes` has found."""
    return limit if limit is not None else 0
