"""Slurm's own scheduling, as one site has set it up."""

from __future__ import annotations

from dataclasses import dataclass

from foretime_sim.policies.backfilling import Backfilling, Place
from foretime_sim.sites.slurm.releases import release_text
from foretime_sim.sites.slurm.site import SlurmSite


@dataclass(frozen=True, slots=True)
class Slurm(Backfilling):
    """Slurm's two loops, with the priorities, limits and partitions of a site.

    The main loop starts jobs in the order of the queue, until the first one that has to wait blocks
    its slurm_partition; the backfill loop plans the queue anew every ``bf_interval`` and starts
    whoever delays nobody (job_scheduler.c, backfill.c). The order of the queue is that of the
    site's priorities, not of `Policy.order`.

    With ``time_min_as_soft_limit`` a job's scheduled times are its TimeMin; without, they are the
    limit that Slurm plans with.

    Attributes
    ----------
    site
        How the cluster is set up; its machine is the one that jobs run on.
    coarse
        Whether backfill plans for no more than 30 jobs of a partition, and runs the less often the
        longer the run has gone on: for forward runs of long queues, which take a tenth of the time
        so (docs/slurm_model.md has what that costs).

    Examples
    --------
    >>> from foretime_sim import Policy, generate, simulate
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.policies.slurm import Slurm
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> from foretime_sim.workloads.resource_requests import with_machine
    >>> site = SlurmSite(Machine.flat(256))
    >>> workload = with_machine(generate("lublin2003", jobs=100, seed=1), site.machine)
    >>> len(simulate(workload, Policy(backfill=Slurm(site))))
    100
    """

    site: SlurmSite
    coarse: bool = False

    @property
    def name(self) -> str:
        """The same for all sites."""
        return "slurm"

    @property
    def shown(self) -> dict[str, str | int]:
        """The release."""
        return {"slurm": release_text(self.site.version)}

    def refusal(self, place: Place) -> str | None:
        """Say that it plans around reservations of nodes, not of processors."""
        if place is Place.RESERVATIONS:
            return (
                "backfilling is slurm: reservations of processors are not Slurm's; put reservations"
                " of nodes into the site"
            )
        return None
