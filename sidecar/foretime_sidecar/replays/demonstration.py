"""The daemon beside a mock Slurm that lives through a log: to be tried without a scheduler.

It schedules as Slurm does by default, and the daemon's forecasts run the queue forward so.
The log's clock is moved so that one of its busy moments is now; what came before has happened, and
jobs go on being submitted as the log has them. The last days before are lived through with the
daemon looking on, so that its forecasts have been scored.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sim.engine.engine import simulate
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.scheduler_defaults import default_policy
from foretime_sim.policies.site_machine import on_one_pool, site_of
from foretime_sim.sites.site_file import format_site
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.replays.replay_schedulers import mocked_slurm
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.web.server import Daemon

_BUSY = 0.75
"""The queue at the moment chosen is longer than at this share of the submissions."""
_FROM = 0.3
"""Share of the submissions before the first moment that is looked at: somebody must be known."""


def busy_moment(workload: Workload, policy: Policy, days: int) -> int:
    """Choose a submission of a log at which many jobs wait, and of these the most run.

    Parameters
    ----------
    workload
        In the order of submissions.
    policy
        Of the schedule that tells who waits and who runs.
    days
        So long after the first submission at least.

    Raises
    ------
    InputError
        If the log is shorter.
    """
    times = workload.submit_time
    schedule = simulate(workload, policy)
    started = np.searchsorted(np.sort(schedule.start_time), times, side="right")
    running = started - np.searchsorted(np.sort(schedule.end_time), times, side="right")
    waiting = np.arange(1, len(times) + 1) - started
    late = np.arange(len(times)) >= _FROM * len(times)
    late &= times >= times[0] + days * DAY_S
    if not late.any():
        raise InputError(
            f"{workload.name} is too short to be lived through for {days} days; give fewer --days"
        )
    busy = np.flatnonzero(late & (waiting >= np.quantile(waiting[late], _BUSY)))
    # Where one job has the whole machine, nothing starts for long and no change of a job helps.
    return int(busy[np.argmax(running[busy])])


class Demonstration:
    """A daemon, and the Slurm that it looks at.

    Parameters
    ----------
    workload
        A log's jobs.
    folder
        Empty; of the store, the table and the site file.
    listen
        As ``api.listen``.
    days
        How long the daemon has looked on before it answers.
    clock
        Epoch seconds.

    Attributes
    ----------
    settings
        Of the daemon.
    daemon
        As `foretime serve` runs it.
    submitted
        Jobs so far.
    """

    def __init__(
        self,
        workload: Workload,
        folder: Path,
        listen: str,
        days: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._began = self._now = int(clock())
        self._days = days
        mechanism = Mechanism.SLURM_SOFT_LIMIT
        workload = on_one_pool(workload)
        if workload.machine is None:
            pool = Machine.flat(workload.machine_processors, "main")
            workload = with_machine(workload, pool)
        policy = mechanism_policy(mechanism, default_policy("slurm", workload))
        site = site_of(policy)
        if site is None:  # for the type checker: Slurm's defaults are a site
            raise TypeError(policy)
        site_file = folder / "site.toml"
        site_file.write_text(format_site(site), encoding="utf-8")
        moment = busy_moment(workload, policy, days)
        times = workload.submit_time - workload.submit_time[moment] + self._began
        self._times: list[int] = times.tolist()
        self.submitted = 0
        self._lock = threading.Lock()
        scheduler = mocked_slurm(
            workload,
            policy,
            mechanism,
            self._times[0],
            folder / "table",
            lua_version="5.1",
        )
        self._submit = scheduler.submit
        if not isinstance(scheduler.mock, MockSlurm):
            raise TypeError(f"{scheduler.mock} is no mock Slurm")
        self._mock = scheduler.mock
        self.settings = Settings.model_validate(
            {
                # A command with these settings must not reach a real Slurm, nor its switch.
                "scheduler": {
                    "client": "demo",
                    "commands_dir": str(folder / "no-commands"),
                    "history_days": 180,
                },
                "hook": {"disable_file": str(folder / "foretime.off")},
                "store": {"path": str(folder / "store"), "durability": "normal"},
                "table": {"path": str(folder / "table")},
                "forecast": {
                    "site_file": str(site_file),
                    "order": "fcfs",
                    "backfill": "planning",
                },
                "api": {"listen": listen},
            }
        )
        self._now = self._began - days * DAY_S
        self._live = False
        # Nothing is kept, so that no work under way is worth waiting for.
        self.daemon = Daemon(self.settings, SlurmCommands(self._command), self.now, grace_s=0)

    def now(self) -> float:
        """Epoch seconds; days ago, until the demonstration has come to the present."""
        return self._clock() if self._live else self._now

    def _command(self, argv: Sequence[str], stdin: str | None = None) -> object:
        """Run one of Slurm's commands; what was submitted since the last is submitted before."""
        with self._lock:
            now = int(self.now())
            while self.submitted < len(self._times) and self._times[self.submitted] <= now:
                self._advance(self._times[self.submitted])
                self._submit(self.submitted)
                self.submitted += 1
            self._advance(now)
            return self._mock.run(argv, stdin)

    def _advance(self, now: int) -> None:
        if now > self._mock.now:
            self._mock.advance(now)

    def rehearse(self, every_s: int, progress: Callable[[int], None] | None = None) -> None:
        """Let the daemon look on until now; it is closed if that is broken off.

        Parameters
        ----------
        every_s
            Seconds from look to look.
        progress
            Called with the seconds lived through.
        """
        try:
            self._look_on(every_s, progress)
        except BaseException:
            self.daemon.close()
            raise

    def _look_on(self, every_s: int, progress: Callable[[int], None] | None) -> None:
        begin = self._now
        sidecar = self.daemon.sidecar
        if sidecar.site is not None:  # a thread's work once it serves
            sidecar.site.refresh()
        while self._now < self._clock():
            self.daemon.poll_once()
            sidecar.waits.refresh(hurried=True, maps=False)
            if progress is not None:
                progress(min(self._now - begin, self._days * DAY_S))
            self._now += every_s
        self._live = True

    def serve(self) -> None:
        """Answer until told to end."""
        self.daemon.run()

    def end(self) -> None:
        """Tell it to end."""
        self.daemon.end()
