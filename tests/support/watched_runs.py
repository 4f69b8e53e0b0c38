"""A mock Slurm lived through with a daemon that runs the plain scheduler beside."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foretime_estimators.arrays import Int64Array
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.plain_beside.beside import PlainBeside
from foretime_sidecar.replays.replay_looks import OrderingLooks
from foretime_sidecar.replays.replay_schedulers import MockedScheduler, mocked_slurm
from foretime_sidecar.settings.settings import (
    BreakerSettings,
    HookSettings,
    SchedulerSettings,
    Settings,
    StoreSettings,
    TableSettings,
)
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.site_import.site_sources import GivenSite
from foretime_sidecar.store.store import Store
from foretime_sim.engine.engine import simulate
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

LOOK_S = 30


@dataclass
class Watched:
    """What was lived: the workload, its starts with the daemon, and plain Slurm's."""

    workload: Workload
    scheduler: MockedScheduler
    plain_start: Int64Array
    sidecar: Sidecar
    store: Store

    @property
    def start_time(self) -> Int64Array:
        """When each job started; not where some were withdrawn."""
        starts: Int64Array = self.scheduler.mock.schedule().start_time
        return starts - self.workload.epoch_of_zero

    @property
    def beside(self) -> PlainBeside:
        """What ran beside."""
        assert self.sidecar.beside is not None
        return self.sidecar.beside


class WatchedSlurm:
    """Lives a workload under a mock Slurm, a daemon looking on every half minute.

    Parameters
    ----------
    workload
        Without nodes: on one pool.
    folder
        For store and table.
    starts_now
        Whether the daemon starts jobs at once; else it only observes.
    knows_site
        Whether the daemon can read the site.
    """

    def __init__(
        self,
        workload: Workload,
        folder: Path,
        *,
        starts_now: bool,
        knows_site: bool = True,
    ) -> None:
        self._knows_site = knows_site
        self.workload = with_machine(workload, Machine.flat(workload.machine_processors))
        self.site = SlurmSite(Machine.flat(workload.machine_processors))
        self.policy = mechanism_policy(
            Mechanism.SLURM_SOFT_LIMIT, Policy(backfill=Slurm(self.site))
        )
        self.begin = workload.epoch_of_zero + int(workload.submit_time[0])
        self.settings = Settings(
            scheduler=SchedulerSettings(overlap_s=0),
            store=StoreSettings(path=str(folder / "store"), durability="normal"),
            table=TableSettings(path=str(folder / "table"), valid_for_s=30 * 86_400),
            breaker=BreakerSettings(most_outliving_percent=100),
            hook=HookSettings(mode="enforce" if starts_now else "observe", starvation_guard_s=0),
        )
        self.scheduler: MockedScheduler = mocked_slurm(
            self.workload,
            self.policy,
            Mechanism.SLURM_SOFT_LIMIT,
            self.begin,
            folder / "table",
            lua_version="5.1",
        )
        self.away: Callable[[int], bool] = lambda now: False
        self.store, self.sidecar = self.daemon()

    def daemon(self) -> tuple[Store, Sidecar]:
        """Begin a daemon."""
        store = Store(self.settings.store.path, "normal")
        clock = self.scheduler.mock
        site = KeptSite(
            GivenSite(self.site), 3600, clock=lambda: clock.now, monotonic=lambda: clock.now
        )
        sidecar = Sidecar(
            self.settings,
            self.scheduler.client,
            store,
            estimating_s=math.inf,
            site=site if self._knows_site else None,
            beside=True,
        )
        sidecar.start(self.scheduler.mock.now)
        return store, sidecar

    def restart(self) -> None:
        """End the daemon as a crash does, and begin another."""
        self.store.close()
        self.store, self.sidecar = self.daemon()

    def live(self, at_job: Callable[[int, WatchedSlurm], None] | None = None) -> Watched:
        """Live all of it; ``at_job`` is called before each submission."""
        clock = self.workload.epoch_of_zero
        looks = _Looks(self)
        for index, now in enumerate((self.workload.submit_time + clock).tolist()):
            looks.advance(now)
            if now > self.scheduler.mock.now:
                self.scheduler.mock.advance(now)
            if at_job is not None:
                at_job(index, self)
            self.scheduler.submit(index)
            looks.happened()
        looks.finish()
        self.scheduler.mock.finish()
        for later in range(3):
            looks.look_at(self.scheduler.mock.now + 86_400 * (later + 1))
        plain = simulate(self.workload, Policy(backfill=Slurm(self.site)))
        return Watched(self.workload, self.scheduler, plain.start_time, self.sidecar, self.store)


class _Looks(OrderingLooks):
    """Looks after which the runs beside are refreshed, too."""

    def __init__(self, watched: WatchedSlurm) -> None:
        super().__init__(watched.scheduler, watched.sidecar, LOOK_S, LOOK_S)
        self._watched = watched

    def _look(self) -> None:
        self._due = None
        self.look_at(self._mock.now)

    def look_at(self, now: int) -> None:
        """Look, poll and refresh."""
        watched = self._watched
        if watched.away(now):
            return
        sidecar = watched.sidecar
        sidecar.poll(now)
        if sidecar.site is not None:
            sidecar.site.refresh()
        sidecar.look(now)
        assert sidecar.beside is not None
        sidecar.beside.refresh()
