"""The daemon: a thread that polls, and an HTTP server on a unix socket or a loopback address."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import cast

import uvicorn
from foretime_estimators.jobs.errors import ForetimeError, SchedulerError

from foretime_sidecar.clients.client import SchedulerClient
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.daemon.daemon_lock import DaemonLock
from foretime_sidecar.daemon.poll_rate import PollRate, sparing_pause_s, why_busy
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.queue.background_thread import BackgroundThread
from foretime_sidecar.safety.heartbeat import beat, heartbeat_path
from foretime_sidecar.schedulers.choice import client_of, kept_site_of
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Callers
from foretime_sidecar.web.connections.connection_places import Places
from foretime_sidecar.web.connections.listener import Listener
from foretime_sidecar.web.connections.peer_protocol import PeerProtocol
from foretime_sidecar.web.connections.request_guard import MOST_HEAD_BYTES
from foretime_sidecar.web.prompt_answers import prompt_answers

logger = logging.getLogger("foretime")

_GIVE_BACK_S = 20  # for taking site factors away from the jobs that wait
# Connections that are accepted at a time, before any has a place, and those that the kernel keeps.
_ACCEPTED_AT_ONCE, _WAITING = 16, 2048
_NEWS_PERCENT = 10  # of a processor, for finding what is to be sent to users


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
    grace_s
        How long work under way may still take when it is told to end; requests have 1 s at least.

    Attributes
    ----------
    request_time
        How long the scheduler took to answer, so far; counted by its own clients alone.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sidecar import Daemon, Settings
    >>> from foretime_sidecar.clients.slurm.commands import SlurmCommands
    >>> from foretime_sim import MockSlurm, Policy
    >>> from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
    >>> slurm = MockSlurm(SlurmSetup(processors=8), Policy(), start_time=1_700_000_000)
    >>> with TemporaryDirectory() as folder:
    ...     paths = {"store": f"{folder}/store", "table": f"{folder}/table"}
    ...     sections = {section: {"path": path} for section, path in paths.items()}
    ...     sections["api"] = {"listen": f"unix:{folder}/socket"}
    ...     settings = Settings.model_validate(sections)
    ...     daemon = Daemon(settings, SlurmCommands(slurm.run), clock=lambda: 1_700_000_000)
    ...     daemon.address == f"unix:{folder}/socket"
    ...     daemon.close()
    True
    """

    def __init__(
        self,
        settings: Settings,
        client: SchedulerClient | None = None,
        clock: Callable[[], float] = time.time,
        grace_s: int = 5,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._grace_s = grace_s
        self.request_time = RequestTime()
        with contextlib.ExitStack() as undo:
            # Before anything is opened or changed.
            self._lock = DaemonLock(settings)
            undo.callback(self._lock.release)
            Callers(settings.api, clock)  # keys that can't be used are told of now
            self._listener = Listener(settings.api)
            undo.callback(self._listener.close)
            store = Store(settings.store.path, settings.store.durability)
            undo.callback(store.close)
            self.sidecar = Sidecar(
                settings,
                client or client_of(settings.scheduler, self.request_time),
                store,
                forecasts=True,
                shadow=settings.estimators.shadow,
                site=kept_site_of(settings, asks=client is None),
                beside=settings.beside.enabled,
                notifies=True,
            )
            undo.pop_all()
        self._background: list[BackgroundThread] = []
        self._news: BackgroundThread | None = None
        if self.sidecar.notifier is not None:
            self._news = BackgroundThread("news of starts", self.sidecar.notifier, _NEWS_PERCENT)
            self._background.append(self._news)
        self.forecasts = BackgroundThread(
            "forecasts of waits",
            self.sidecar.waits,
            settings.forecast.cpu_percent,
            self._forecasts_were_made,
        )
        self._background.append(self.forecasts)
        if self.sidecar.site is not None:
            site = BackgroundThread("the site", self.sidecar.site, settings.forecast.cpu_percent)
            self._background.insert(0, site)  # so that it is asked before forecasts take their time
        self.shadow: BackgroundThread | None = None
        if self.sidecar.scoreboard is not None:
            self.shadow = BackgroundThread(
                "scores of estimators", self.sidecar.scoreboard, settings.estimators.cpu_percent
            )
            self._background.append(self.shadow)
        if self.sidecar.beside is not None:
            beside = BackgroundThread(
                "the plain scheduler beside", self.sidecar.beside, settings.beside.cpu_percent
            )
            self._background.append(beside)
        self.health = Health(int(clock()))
        self._rate = PollRate(settings.scheduler)
        self._answering_s = 0.0  # of the controller's, until the pause was last set
        # By the monotonic clock.
        self._look_began = self._looked_at = self._next_reading = 0.0
        self._reads_seldom = False
        self._ending = threading.Event()
        self._mistake: Exception | None = None
        self.app = create_app(self.sidecar, self.health, clock)
        config = uvicorn.Config(
            self.app,
            # uvicorn calls it, as it would the class.
            http=cast("type[asyncio.Protocol]", partial(PeerProtocol, Places(settings.api))),
            loop="asyncio",
            lifespan="off",
            ws="none",
            log_config=None,
            # Errors are ours; all else that it logs are mistakes of clients, who could fill a disk.
            log_level=logging.ERROR,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_ACCEPTED_AT_ONCE,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
            timeout_graceful_shutdown=max(grace_s, 1),
        )
        self._server = _Server(config)

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or `end`; then leave nothing behind.

        A mistake of ours in a poll ends it, too, and is raised here.
        """
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                # uvicorn raises the signal again once it has shut down; that must not kill us.
                signal.signal(number, lambda *_: self.end())
        # A demonstration has looked on before, by a clock of its own.
        self.health.started_at = int(self._clock())
        poller = threading.Thread(target=self._poll_until_told, name="poll", daemon=True)
        poller.start()
        for thread in self._background:
            thread.start()
        logger.info("listening on %s", self._listener.address)
        try:
            self._server.run(sockets=[self._listener.socket])
        finally:
            self.end()
            for thread in self._background:
                thread.end()
            poller.join(self._grace_s + _GIVE_BACK_S)
            until = time.monotonic() + self._grace_s
            ended = [thread.has_ended(until - time.monotonic()) for thread in self._background]
            if all(ended) and not poller.is_alive():
                self.close()
            else:
                # A command of the scheduler is still awaited. What it would have told is read again
                # after the next start. The lock goes with this process.
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

    def close(self) -> None:
        """Let go of the socket, the store and the table; `run` does so at its end."""
        self._listener.close()
        self.sidecar.store.close()
        self._lock.release()

    def end(self) -> None:
        """Tell the daemon to end; it does within seconds."""
        self._ending.set()
        self._server.should_exit = True

    def _poll_until_told(self) -> None:
        try:
            self._set_pause()  # before the look, which must know when the next one comes
            with prompt_answers() as collect_garbage:
                while not self._ending.is_set():
                    self.poll_once()
                    collect_garbage()
                    due = self._next_look()
                    self._set_pause()
                    self._ending.wait(max(due - time.monotonic(), 0))
            self._give_back()
        except Exception as error:  # noqa: BLE001 - raised again by run(), so that we end loudly
            self._mistake = error
            self.end()

    def _give_back(self) -> None:
        try:
            self.sidecar.end()
        except ForetimeError as error:
            logger.error("the queue's order is given back at the next start: %s", error)  # noqa: TRY400

    def _set_pause(self) -> None:
        """Set the pause after the coming look, from the scheduler's load and our part in it."""
        scheduler = self.settings.scheduler
        try:
            busy = why_busy(self.sidecar.client.load(), scheduler)
        except SchedulerError as error:
            busy = f"the scheduler does not tell how busy it is: {error}"
        so_far_s = self.request_time.controller_s
        answering_s, self._answering_s = so_far_s - self._answering_s, so_far_s
        before, pause = self.sidecar.pause, self._rate.adapt(busy, answering_s)
        self.sidecar.pause = pause
        if pause.reason and pause.seconds != before.seconds:
            logger.warning(
                "looks at the scheduler are %d s apart now, not %d: %s",
                *(pause.seconds, scheduler.poll_interval_s, pause.reason),
            )
        elif pause.seconds != before.seconds:
            logger.warning("looks at the scheduler are %d s apart again", pause.seconds)

    def poll_once(self) -> None:
        """Look at the queue and poll once; what fails is logged and tried again at the next."""
        failures = list(filter(None, (self._tried(self._look), self._tried(self._poll))))
        for failure in dict.fromkeys(failures):
            logger.error("%s", failure)
        self.health.last_error = failures[-1] if failures else ""
        for thread in self._background:
            if thread is not self.shadow or self._first_forecasts_are_made():
                thread.wake()

    def _first_forecasts_are_made(self) -> bool:
        """Whether the processor is free for what nobody waits for; also if forecasts fail."""
        waits = self.sidecar.waits
        return waits.board is not None or waits.failures > 0

    def _forecasts_were_made(self) -> None:
        for thread in (self._news, self.shadow):
            if thread is not None:
                thread.wake()

    def _tried(self, step: Callable[[int], None]) -> str:
        """Do a step; give what failed, "" if nothing did."""
        try:
            step(int(self._clock()))
        except SchedulerError as error:
            self.health.errors["scheduler"] += 1
            return str(error)
        except ForetimeError as error:
            # Also an InputError: learned names and numbers that no table can hold.
            self.health.errors["state"] += 1
            return str(error)
        return ""

    def _look(self, now: int) -> None:
        self._look_began = time.monotonic()
        try:
            self.sidecar.look(now)
            beat(heartbeat_path(self.settings.table), self.sidecar.pause.seconds)
        finally:
            self._looked_at = time.monotonic()

    def _next_look(self) -> float:
        """Give when the next look is due: counted from the beginning of this one.

        At least half of the pause lies between the end of one and the beginning of the next.
        """
        pause_s = self.sidecar.pause.seconds
        return max(self._look_began + pause_s, self._looked_at + pause_s / 2)

    def _poll(self, now: int) -> None:
        """Poll; ask slurmdbd for what has finished less often than we look if it is slow."""
        before_s = self.request_time.accounting_s
        reads = time.monotonic() >= self._next_reading
        try:
            self.sidecar.poll(now, reads=reads)
        finally:
            if reads:
                self._set_next_reading(self.request_time.accounting_s - before_s)

    def _set_next_reading(self, answering_s: float) -> None:
        scheduler = self.settings.scheduler
        pause_s = min(sparing_pause_s(answering_s), scheduler.longest_poll_interval_s)
        self._next_reading = time.monotonic() + pause_s
        seldom = pause_s > scheduler.poll_interval_s
        if seldom and not self._reads_seldom:
            logger.warning(
                "finished jobs are read every %d s now, not at each look: slurmdbd took %.1f s to "
                "tell of the last ones",
                *(pause_s, answering_s),
            )
        elif self._reads_seldom and not seldom:
            logger.warning("finished jobs are read at each look again")
        self._reads_seldom = seldom


class _Server(uvicorn.Server):
    """Lets more connections wait than it accepts at a time, which asyncio has as one number."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(_WAITING)
