"""What QOS and associations say of a job that is submitted.

Source: acct_policy_validate with all that it calls (src/slurmctld/acct_policy.c, 22.05.8 and
25.11.7). A QOS with DenyOnLimit has a job refused that could never run; otherwise it waits, and
only the limits on jobs submitted refuse.
"""

from __future__ import annotations

from foretime_sim.reference.slurm.limits.limit_checks import (
    Imposed,
    PolicyCase,
    association_job_limit,
    qos_job_limit,
    weighed_limits,
)
from foretime_sim.reference.slurm.limits.limit_counts import AssociationGroup, QosGroup
from foretime_sim.sites.slurm import reasons
from foretime_sim.sites.slurm.limits import Tres
from foretime_sim.sites.slurm.reasons import TresLimit, in_slurms_order, word
from foretime_sim.sites.slurm.releases import (
    RUN_MINUTES_PER_USER_SINCE,
    USER_AND_GROUP_APART_SINCE,
)


def why_refused(case: PolicyCase, tres: Tres, jobs: int) -> str | None:
    """Say which limit has jobs refused as they are submitted (``acct_policy_validate``).

    Parameters
    ----------
    tres
        What each asks for, by kind.
    jobs
        How many come at once: tasks of an array.
    """
    strict = not case.qos or any("DenyOnLimit" in qos.qos.flags for qos in case.qos)
    imposed = Imposed()
    for qos in case.qos:
        reason = _why_qos_refuses(case, qos, tres, jobs, strict, imposed)
        if reason:
            return reason
    for level, group in enumerate(case.line):
        reason = _why_association_refuses(case, group, level, tres, jobs, strict, imposed)
        if reason:
            return reason
    return None


def _why_qos_refuses(
    case: PolicyCase, qos: QosGroup, tres: Tres, jobs: int, strict: bool, imposed: Imposed
) -> str | None:
    limits = qos.limits
    account = case.line[0].account
    if strict:
        reason = qos_job_limit(
            "max_tres_per_account", limits.max_tres_per_account, tres, 0, False,
            TresLimit.QOS_ACCOUNT, imposed,
        ) or _user_or_group(case, qos, tres, imposed)  # fmt: skip
        if reason:
            return reason
    if imposed.takes(limits, "grp_submit_jobs") and qos.counts.submitted + jobs > (
        limits.grp_submit_jobs or 0
    ):
        return reasons.QOS_GROUP_SUBMITTED
    if strict:
        reason = _too_long_for_qos(case, qos, tres, imposed)
        if reason:
            return reason
    # Without DenyOnLimit, too, the limits of a QOS on times hide those of associations.
    for name, told in (
        ("max_wall_s", reasons.QOS_WALL),
        ("grp_wall_s", reasons.QOS_GROUP_WALL),
    ):
        if imposed.takes(limits, name) and strict and case.minutes > getattr(limits, name) // 60:
            return told
    if strict:
        nodes = tres.get("node", 0)
        reason = qos_job_limit(
            "max_tres_per_job", limits.max_tres_per_job, tres, 0, False, TresLimit.QOS_JOB, imposed
        ) or qos_job_limit(
            "max_tres_per_node", limits.max_tres_per_node, tres, nodes, False,
            TresLimit.QOS_JOB_NODE, imposed,
        )  # fmt: skip
        if reason:
            return reason
    if imposed.takes(limits, "max_submit_jobs_per_account"):
        submitted = qos.of_account(account).submitted + jobs
        if submitted > (limits.max_submit_jobs_per_account or 0):
            return reasons.QOS_ACCOUNT_SUBMITTED
    if imposed.takes(limits, "max_submit_jobs") and qos.of_user(case.user).submitted + jobs > (
        limits.max_submit_jobs or 0
    ):
        return reasons.QOS_USER_SUBMITTED
    if strict:
        return qos_job_limit(
            "min_tres_per_job", limits.min_tres_per_job, tres, 0, True, TresLimit.QOS_LEAST, imposed
        )
    return None


def _user_or_group(case: PolicyCase, qos: QosGroup, tres: Tres, imposed: Imposed) -> str | None:
    """Compare with MaxTRESPerUser and GrpTRES, kind by kind."""
    of_user, of_group = qos.limits.max_tres_per_user, qos.limits.grp_tres
    apart = case.version >= USER_AND_GROUP_APART_SINCE
    for kind in in_slurms_order({*of_user, *of_group}):
        had = [imposed.has(name, kind) for name in ("max_tres_per_user", "grp_tres")]
        if any(had) and not apart:
            continue
        for name, limits, hidden in (
            ("grp_tres", of_group, had[1]),
            ("max_tres_per_user", of_user, had[0]),
        ):
            if kind not in limits or hidden:
                continue
            imposed.add(name, kind)
            if tres.get(kind, 0) > limits[kind]:
                # Whichever was found, Slurm names the user's where both are exceeded.
                over = kind in of_user and tres.get(kind, 0) > of_user[kind]
                return word(TresLimit.QOS_USER if over else TresLimit.QOS_GROUP, kind)
    return None


def _too_long_for_qos(case: PolicyCase, qos: QosGroup, tres: Tres, imposed: Imposed) -> str | None:
    names = [
        ("max_tres_mins_per_job", TresLimit.QOS_JOB_MINUTES),
        ("grp_tres_mins", TresLimit.QOS_GROUP_MINUTES),
        ("grp_tres_run_mins", TresLimit.QOS_GROUP_RUN_MINUTES),
    ]
    if case.version >= RUN_MINUTES_PER_USER_SINCE:
        names += [
            ("max_tres_run_mins_per_account", TresLimit.QOS_ACCOUNT_RUN_MINUTES),
            ("max_tres_run_mins_per_user", TresLimit.QOS_USER_RUN_MINUTES),
        ]
    for name, limit in names:
        reason = _too_long(name, getattr(qos.limits, name), case, tres, limit, imposed)
        if reason:
            return reason
    return None


def _too_long(
    name: str, limits: Tres, case: PolicyCase, tres: Tres, limit: TresLimit, imposed: Imposed
) -> str | None:
    """Compare a time limit with what a limit of TRES-minutes leaves (``_validate_time_limit``)."""
    for kind in in_slurms_order(limits):
        count = tres.get(kind, 0)
        if not count or imposed.has(name, kind):
            continue
        imposed.add(name, kind)
        if case.minutes > limits[kind] // count:
            return word(limit, kind)
    return None


def _why_association_refuses(
    case: PolicyCase,
    group: AssociationGroup,
    level: int,
    tres: Tres,
    jobs: int,
    strict: bool,
    imposed: Imposed,
) -> str | None:
    limits, factor = group.limits, case.limit_factor
    submitted = group.counts.submitted + jobs
    if strict:
        reason = association_job_limit(
            "grp_tres", weighed_limits(limits.grp_tres, factor), tres, 0,
            TresLimit.ASSOC_GROUP, imposed,
        )  # fmt: skip
        if reason:
            return reason
    if (
        limits.grp_submit_jobs is not None
        and not imposed.has("grp_submit_jobs")
        and submitted > limits.grp_submit_jobs
    ):
        return reasons.ASSOC_GROUP_SUBMITTED
    if strict:
        # The nearest association with a limit of minutes hides those above it, as a QOS does.
        reason = _too_long(
            "grp_tres_mins", limits.grp_tres_mins, case, tres,
            TresLimit.ASSOC_GROUP_MINUTES, imposed,
        ) or _too_long(
            "grp_tres_run_mins", limits.grp_tres_run_mins, case, tres,
            TresLimit.ASSOC_GROUP_RUN_MINUTES, imposed,
        )  # fmt: skip
        if reason:
            return reason
        if imposed.takes(limits, "grp_wall_s") and case.minutes > (limits.grp_wall_s or 0) // 60:
            return reasons.ASSOC_GROUP_WALL
    if level:
        return None
    if strict:
        nodes = tres.get("node", 0)
        reason = association_job_limit(
            "max_tres_per_job", weighed_limits(limits.max_tres_per_job, factor), tres, 0,
            TresLimit.ASSOC_JOB, imposed,
        ) or association_job_limit(
            "max_tres_per_node", limits.max_tres_per_node, tres, nodes,
            TresLimit.ASSOC_JOB_NODE, imposed,
        )  # fmt: skip
        if reason:
            return reason
    hidden = imposed.has("max_submit_jobs") or imposed.has("max_submit_jobs_per_account")
    if limits.max_submit_jobs is not None and not hidden and submitted > limits.max_submit_jobs:
        return reasons.ASSOC_SUBMITTED
    if strict:
        reason = _too_long(
            "max_tres_mins_per_job", limits.max_tres_mins_per_job, case, tres,
            TresLimit.ASSOC_JOB_MINUTES, imposed,
        )  # fmt: skip
        if reason:
            return reason
        if imposed.takes(limits, "max_wall_s") and case.minutes > (limits.max_wall_s or 0) // 60:
            return reasons.ASSOC_WALL
    return None
