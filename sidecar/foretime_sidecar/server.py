"""The daemon: a thread that polls, and an HTTP server on a unix socket or a loopback address."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn
from foretime_estimators.errors import ForetimeError, InputError, SchedulerError, StateError

from foretime_sidecar.api import create_app
from foretime_sidecar.api_callers import Callers
from foretime_sidecar.background_thread import BackgroundThread
from foretime_sidecar.clients.client import ControllerLoad, SchedulerClient
from foretime_sidecar.clients.pbs_commands import PbsCommands, PbsProcesses
from foretime_sidecar.clients.pyslurm_client import PySlurm, import_pyslurm
from foretime_sidecar.clients.slurm_commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.clients.slurm_rest import SlurmRest
from foretime_sidecar.clients.slurm_rest_connection import RestConnection
from foretime_sidecar.heartbeat import beat, heartbeat_path
from foretime_sidecar.listener import Listener
from foretime_sidecar.peer import PeerProtocol
from foretime_sidecar.poll_rate import PollRate
from foretime_sidecar.self_metrics import Health
from foretime_sidecar.settings import Settings
from foretime_sidecar.sidecar import Sidecar
from foretime_sidecar.store import Store

logger = logging.getLogger("foretime")

_SILENT = ControllerLoad(server_threads=1_000_000)
_GIVE_BACK_S = 20  # for taking site factors away from the jobs that wait
_GRACE_S = 5  # for requests and a poll under way when the daemon is told to end


class Daemon:
    """`foretime serve`: polls in a thread, answers until told to end.

    Parameters
    ----------
    settings
        All settings.
    client
        The scheduler; ``None`` for the scheduler's own commands, as the settings say.
    clock
        Epoch seconds.
    """

    def __init__(
        self,
        settings: Settings,
        client: SchedulerClient | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self._clock = clock
        Callers(settings.api, clock)  # keys that can't be used are told before anything is opened
        self._listener = Listener(settings.api)
        try:
            store = Store(settings.store.path, settings.store.durability)
        except StateError:
            self._listener.close()
            raise
        try:
            self.sidecar = Sidecar(
                settings,
                client or _client(settings),
                store,
                forecasts=True,
                shadow=settings.estimators.shadow,
            )
        except InputError:
            store.close()
            self._listener.close()
            raise
        self.forecasts = BackgroundThread(
            "forecasts of waits", self.sidecar.waits, settings.forecast.cpu_percent
        )
        self._background = [self.forecasts]
        self.shadow: BackgroundThread | None = None
        if self.sidecar.scoreboard is not None:
            self.shadow = BackgroundThread(
                "scores of estimators", self.sidecar.scoreboard, settings.estimators.cpu_percent
            )
            self._background.append(self.shadow)
        self.health = Health(int(clock()))
        self._rate = PollRate(settings.scheduler)
        self._ending = threading.Event()
        self._mistake: Exception | None = None
        self.app = create_app(self.sidecar, self.health, clock)
        config = uvicorn.Config(
            self.app,
            http=PeerProtocol,
            loop="asyncio",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or `end`; then leave nothing behind.

        A mistake of ours in a poll ends it, too, and is raised here.
        """
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                # uvicorn raises the signal again once it has shut down; that must not kill us.
                signal.signal(number, lambda *_: self.end())
        poller = threading.Thread(target=self._poll_until_told, name="poll", daemon=True)
        poller.start()
        for thread in self._background:
            thread.start()
        logger.info("listening on %s", self._listener.address)
        try:
            self._server.run(sockets=[self._listener.socket])
        finally:
            self.end()
            poller.join(_GRACE_S + _GIVE_BACK_S)
            ended = [thread.end(_GRACE_S) for thread in self._background]
            if all(ended) and not poller.is_alive():
                # Else a command of the scheduler is still awaited; what it would have told is read
                # again after the next start.
                self.sidecar.store.close()
            self._listener.close()
        if self._mistake is not None:
            raise self._mistake
        logger.info("ended")

    @property
    def address(self) -> str:
        """Where it listens, as in ``api.listen``."""
        return self._listener.address

    @property
    def answers(self) -> bool:
        """Whether it takes questions yet."""
        return self._server.started

    def end(self) -> None:
        """Tell the daemon to end; it does within seconds."""
        self._ending.set()
        self._server.should_exit = True

    def _poll_until_told(self) -> None:
        try:
            took_s = 0.0
            while not self._ending.is_set():
                # Before the look, which must know when the next one comes.
                pause_s = self._pause_s(took_s)
                began = time.monotonic()
                self.poll_once()
                took_s = time.monotonic() - began - self.sidecar.estimated_for_s
                self._ending.wait(pause_s)
            self._give_back()
        except Exception as error:  # noqa: BLE001 - raised again by run(), so that we end loudly
            self._mistake = error
            self.end()

    def _give_back(self) -> None:
        try:
            self.sidecar.end()
        except ForetimeError as error:
            logger.error("the queue's order is given back at the next start: %s", error)  # noqa: TRY400

    def _pause_s(self, took_s: float) -> int:
        """Give the pause after the coming look, from what the last one took."""
        try:
            load = self.sidecar.client.load()
        except SchedulerError:
            # What does not even tell its load is asked less; the next look says what is wrong.
            load = _SILENT
        before = self.sidecar.pause_s
        pause_s = self.sidecar.pause_s = self._rate.adapt(load, took_s)
        if pause_s != before:
            logger.info("the scheduler is looked at every %d s now (%s)", pause_s, load)
        return pause_s

    def poll_once(self) -> None:
        """Look at the queue and poll once; what fails is logged and tried again at the next."""
        failures = []
        for step in (self._look, self.sidecar.poll):
            try:
                step(int(self._clock()))
            except SchedulerError as error:
                self.health.errors["scheduler"] += 1
                failures.append(str(error))
            except ForetimeError as error:
                # Also an InputError: learned names and numbers that no table can hold.
                self.health.errors["state"] += 1
                failures.append(str(error))
        for failure in dict.fromkeys(failures):
            logger.error("%s", failure)
        self.health.last_error = failures[-1] if failures else ""
        for thread in self._background:
            thread.wake()

    def _look(self, now: int) -> None:
        self.sidecar.look(now)
        beat(heartbeat_path(self.settings.table))


def _client(settings: Settings) -> SchedulerClient:
    """Give the client that the settings say."""
    scheduler = settings.scheduler
    bounds = scheduler.commands_dir, scheduler.command_timeout_s, scheduler.attempts
    if scheduler.kind == "slurm":
        commands = SlurmCommands(SubprocessRunner(*bounds), scheduler.overlap_s, scheduler.cluster)
        if scheduler.client == "commands":
            return commands
        if scheduler.client == "slurmrestd":
            connection = RestConnection(
                scheduler.slurmrestd,
                scheduler.slurmrestd_user,
                scheduler.slurmrestd_token_file,
                scheduler.command_timeout_s,
                scheduler.attempts,
            )
            return SlurmRest(connection, commands, scheduler.overlap_s)
        return PySlurm(import_pyslurm(), commands)
    return PbsCommands(
        PbsProcesses(*bounds),
        Path(scheduler.pbs_accounting_dir) if scheduler.pbs_accounting_dir else None,
        Path(scheduler.pbs_server_logs_dir) if scheduler.pbs_server_logs_dir else None,
        scheduler.overlap_s,
    )
