"""Limits of a PBS server or queue, from its attributes in qmgr."""

from __future__ import annotations

from collections.abc import Mapping

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs.limit_text import parse_entity_limits
from foretime_sim.sites.pbs.limits import PbsLimits

from foretime_sidecar.clients.pbs.amounts import parse_amount

_OLD = {
    "max_user_run": ("max_run", "u:PBS_GENERIC"),
    "max_group_run": ("max_run", "g:PBS_GENERIC"),
    "max_running": ("max_run", "o:PBS_ALL"),
    "max_user_res": ("max_run_res", "u:PBS_GENERIC"),
    "max_group_res": ("max_run_res", "g:PBS_GENERIC"),
    "max_queuable": ("max_queued", "o:PBS_ALL"),
}
_NEW = ("max_run", "max_queued", "queued_jobs_threshold")
SOFT = (
    "max_run_soft",
    "max_run_res_soft",
    "max_user_run_soft",
    "max_user_res_soft",
    "max_group_run_soft",
    "max_group_res_soft",
)
"""Whose jobs may run, but be preempted."""


def parse_limits(attributes: Mapping[str, str], where: str) -> PbsLimits:
    """Read the limits among the attributes of a server or a queue.

    Parameters
    ----------
    attributes
        Of `parse_qmgr`.
    where
        What to name in errors: "server" or "queue express".

    Raises
    ------
    InputError
        If a limit can't be read, or old and new ones are mixed, which PBS refuses.
    """
    counts: dict[str, dict[str, int]] = {}
    of_resources: dict[str, dict[str, dict[str, int]]] = {}
    for name, value in attributes.items():
        base, _, resource = name.partition(".")
        here = f"{where}: {name}"
        if base in _OLD:
            kind, who = _OLD[base]
            limits = {who: parse_amount(value, here)}
        elif base in _NEW or base.removesuffix("_res") in _NEW:
            kind = base
            try:
                limits = parse_entity_limits(value)
            except ValueError as error:
                raise InputError(f"{here}: {error}") from None
        else:
            continue
        if resource:
            of_resources.setdefault(kind, {}).setdefault(resource, {}).update(limits)
        else:
            counts.setdefault(kind, {}).update(limits)
    return PbsLimits(
        max_run=counts.get("max_run", {}),
        max_run_res=of_resources.get("max_run_res", {}),
        max_queued=counts.get("max_queued", {}),
        max_queued_res=of_resources.get("max_queued_res", {}),
        queued_jobs_threshold=counts.get("queued_jobs_threshold", {}),
        queued_jobs_threshold_res=of_resources.get("queued_jobs_threshold_res", {}),
    )
