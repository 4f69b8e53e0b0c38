"""The arms: how Slurm is set up, and what Foretime does beside it; live and in a replay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from foretime_sidecar.settings.beside_settings import BesideSettings
from foretime_sim.machines.machine import Machine, NodeGroup, Selection, SlurmPartition
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite

Way = Literal["none", "start-now", "soft-limit"]
SLURM_PARTITION = "main"
ACCOUNT = "science"
LOOK_S = 10
"""Seconds between two looks of the daemon."""
LOOK_TAKES_S = 2
"""Until the queue is changed: 1.3 to 1.9 s were measured, on two processors with a load of 9."""
LEAST_SCHEDULED_S = 60
"""``accuracy.minimum_scheduled_time_s``: these jobs take minutes, where a site's take hours."""
MACHINE = Machine(
    (NodeGroup("all", nodes=10, cpus=10, memory_mib=1000),),
    (SlurmPartition(SLURM_PARTITION, ("all",), default=True),),
    Selection.CPU,
)

_NOBODY_IS_LATE = BesideSettings(most_late_s=0, most_behind_s=0)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run the jobs.

    Attributes
    ----------
    name, about
        In commands and files, and in tables.
    way
        What Foretime does; ``none``: it is not there.
    one_reservation
        Whether Slurm has ``bf_job_part_count_reserve=1``.
    protects_late
        Whether jobs are protected that are late over their start without Foretime.
    since
        The first release that can do it: year and month.
    """

    name: str
    about: str
    way: Way = "none"
    one_reservation: bool = False
    protects_late: bool = False
    since: tuple[int, int] = (22, 5)

    @property
    def beside(self) -> BesideSettings:
        """The settings of the plain scheduler that is run beside."""
        return BesideSettings() if self.protects_late else _NOBODY_IS_LATE


PLAIN = Arm("plain", "Slurm's defaults")
PLAIN_ONE = Arm("plain-one", "one reservation", one_reservation=True)
ARMS = {
    arm.name: arm
    for arm in (
        PLAIN,
        PLAIN_ONE,
        Arm("start", "`start-now`, late not protected", "start-now"),
        Arm("start-late", "`start-now`, the default", "start-now", protects_late=True),
        Arm("start-one", "one reservation, `start-now`", "start-now", one_reservation=True),
        Arm("enforce", "`enforce`, soft limit", "soft-limit", since=(25, 5)),
    )
}


def version_of(release: str) -> tuple[int, int]:
    """Read a release's year and month.

    Examples
    --------
    >>> from foretime_studies.live_slurm.arms import version_of
    >>> version_of("26.05")
    (26, 5)
    """
    year, month = release.split(".")
    return int(year), int(month)


def site_of(arm: Arm, users: Iterable[str], release: str) -> SlurmSite:
    """Give the site: its queue is in the order of submissions, as ages have it."""
    return SlurmSite(
        MACHINE,
        version=version_of(release),
        parameters=SlurmParameters(bf_job_part_count_reserve=int(arm.one_reservation)),
        priority=SlurmPriority(weight_age=1000, max_age_s=86_400, calc_period_s=60),
        associations=(
            Association("root", shares=1),
            Association(ACCOUNT, parent="root", shares=1),
            Association("root", user="root", shares=1),
            *(Association(ACCOUNT, user=user, shares=1, default=True) for user in users),
        ),
        enforced=frozenset({"associations"}),
    )
