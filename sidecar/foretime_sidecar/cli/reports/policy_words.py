"""What reports say of a policy beside its queue order and its backfilling."""

from __future__ import annotations

from foretime_sim.policies.families import Easy
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.site_machine import site_of

from foretime_sidecar.wording.durations import format_duration


def policy_words(policy: Policy) -> dict[str, str]:
    """Say what a policy does, by what reports call it; most of it only where it is not usual.

    Of a site's own scheduler nothing: it has none of this.
    """
    if site_of(policy) is not None:
        return {}
    said = {"correction": str(policy.correction)}
    if policy.correction_steps is not None:
        said["correction steps"] = str(policy.correction_steps)
    said["roles"] = str(policy.roles)
    guard = policy.guard
    said["guard"] = "off" if guard is None else format_duration(guard.bound_s)
    if guard is not None and guard.runs_beside:
        said["guard by"] = str(guard.by)
    if guard is not None and guard.share:
        said["guard share"] = f"{guard.share:g}"
    if isinstance(policy.backfill, Easy) and policy.backfill.ageing_s is not None:
        said["ageing"] = format_duration(policy.backfill.ageing_s)
    said["event order"] = str(policy.event_order)
    if policy.scheduling_interval_s is not None:
        said["scheduling interval"] = format_duration(policy.scheduling_interval_s)
    return said
