"""What of a Slurm site nothing here can simulate: such a site is refused, with what to change."""

from __future__ import annotations

from collections.abc import Iterator

from foretime_sim.sites.slurm.site import SlurmSite

_PREEMPTING = ("preempt/qos", "preempt/partition_prio")
_REMEDY = "Set PreemptMode to OFF to see the site without it"


def unmodelled_refusal(site: SlurmSite) -> str | None:
    """Say why a site can't be simulated, and what to change in its file; ``None``: it can.

    Jobs that Slurm suspends, requeues or cancels for others: nothing here has that.

    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.refusals import unmodelled_refusal
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> site = SlurmSite(Machine.flat(8), preempt_type="preempt/qos", preempt_mode="SUSPEND,GANG")
    >>> unmodelled_refusal(site)[:48]
    'PreemptMode=SUSPEND,GANG is not simulated: jobs '
    """
    for where, mode in _modes(site):
        words = {word.strip().upper() for word in mode.split(",")}
        if not words.isdisjoint({"SUSPEND", "GANG"}):
            return (
                f"{where}PreemptMode={mode} is not simulated: jobs that are suspended or"
                f" share CPUs in turn. {_REMEDY}"
            )
    preempts = (
        site.preempt_type.lower() in _PREEMPTING
        and site.preempt_mode.strip().upper() not in ("", "OFF")
        and (
            site.preempt_type.lower() != "preempt/qos"
            or any(qos.preempt for qos in site.qos.values())
            or any("WITHIN" in mode.upper() for _, mode in _modes(site))
        )
    )
    if preempts:
        return (
            f"PreemptType={site.preempt_type} with PreemptMode={site.preempt_mode} is not"
            f" simulated: no job is requeued or cancelled for another. {_REMEDY}"
        )
    return None


def _modes(site: SlurmSite) -> Iterator[tuple[str, str]]:
    yield "", site.preempt_mode
    for name, rules in site.rules.items():
        if rules.preempt_mode is not None:
            yield f"partition {name}: ", rules.preempt_mode
    for name, qos in site.qos.items():
        if qos.preempt_mode is not None:
            yield f"QOS {name}: ", qos.preempt_mode
