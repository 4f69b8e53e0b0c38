"""A moment as a site's Slurm has it, for forward runs by its priorities, fair share and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation, NodeReservation
from foretime_sim.policies.advance_reservations import node_reservations
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.same_site import kept_for_the_same
from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.inherited_limits import inherited_associations
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.moment import Moment


def under_slurm(moment: Moment, site: SlurmSite) -> Moment:
    """Give a moment under the site's Slurm, with its priorities, fair share and limits.

    The queue has the order that Slurm has it in now, and changes it as the site's rules say. Where
    the settings name another order, or nobody tells whose the jobs are, it is that of submissions.

    Raises
    ------
    InputError
        If the nodes are not known.
    """
    snapshot = moment.snapshot
    if snapshot.machine is None:
        raise InputError("which nodes and partitions there are is not known")
    correction = moment.policy.correction
    if correction is not Correction.SLURM:
        correction = Correction.REQUESTED
    site = on_machine(site, snapshot.machine, snapshot.reservations)
    policy = Policy(backfill=Slurm(site), correction=correction)
    told = None
    if moment.policy.order is Order.PRIORITY and snapshot.told is not None:
        told = tuple(known_to(site, job) for job in snapshot.told if isinstance(job, ToldJob))
    snapshot = replace(snapshot, machine=site.machine, told=told)
    return replace(moment, snapshot=snapshot, policy=policy, since=moment.waits_from())


def check_qos(
    site: SlurmSite, qos: str, user: str | None, account: str | None, slurm_partition: str | None
) -> None:
    """Refuse a QOS that the site does not have, or does not let this user have.

    Raises
    ------
    InputError
        Naming those that there are, or that the user may have.
    """
    if qos not in site.qos:
        raise InputError(f"qos = {qos!r}: there is no such QOS; {_there_are(sorted(site.qos))}")
    accounts = Accounts(site)
    asked = tuple(filter(None, (slurm_partition or "").split(",")))
    place = accounts.association_of(user, account, asked)
    if place is None or "qos" not in site.enforced:
        return
    allowed = inherited_associations(site.associations)[place].allowed_qos
    if qos not in allowed:
        raise InputError(
            f"qos = {qos!r}: {user} may not have it in account"
            f" {site.associations[place].account}; {_there_are(sorted(allowed))}"
        )


def _there_are(names: Sequence[str]) -> str:
    if len(names) <= 1:
        return f"the only one is {names[0]}" if names else "there is none here: leave qos out"
    return f"there are {', '.join(names)}"


def known_to(site: SlurmSite, job: ToldJob) -> ToldJob:
    """Leave out what the site does not know, which may have come since it was read."""
    said = job.said
    names = [word.partition(":")[0] for word in (said.licenses or "").split(",")]
    reservation = job.reservation if job.reservation in _names(site) else None
    qos = said.qos if said.qos in site.qos else None
    licenses = said.licenses if set(names) <= set(site.licenses) else None
    if (reservation, qos, licenses) == (job.reservation, said.qos, said.licenses):
        return job
    return replace(job, reservation=reservation, said=replace(said, qos=qos, licenses=licenses))


def _names(site: SlurmSite) -> set[str]:
    return {each.name for each in site.reservations}


@kept_for_the_same
def on_machine(
    site: SlurmSite, machine: Machine, reservations: Sequence[AdvanceReservation | NodeReservation]
) -> SlurmSite:
    """Give a site with the nodes, partitions and reservations that there are now.

    Those partitions are on the machine that start jobs, whatever state the site had them in.
    """
    there = {part.name for part in machine.slurm_partitions}
    known = {part.name: part.max_nodes_in_use for part in site.machine.slurm_partitions}
    parts = tuple(
        replace(part, max_nodes_in_use=known.get(part.name)) for part in machine.slurm_partitions
    )
    return replace(
        site,
        machine=replace(machine, slurm_partitions=parts),
        rules={
            name: replace(rules, state="UP") for name, rules in site.rules.items() if name in there
        },
        reservations=node_reservations(reservations),
    )
