"""A site with a mock Slurm and the daemon beside it; a test turns the clock."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from fastapi import FastAPI
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sidecar.web.server import Daemon
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm

_READY_S = 60


@contextlib.contextmanager
def running(daemon: Daemon) -> Iterator[None]:
    """Run a daemon in a thread; it answers when this is entered, and has ended when it is left."""
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        until = time.monotonic() + _READY_S
        while not daemon.answers:
            assert time.monotonic() < until
            time.sleep(0.02)
        yield
    finally:
        daemon.end()
        thread.join(_READY_S)
    assert not thread.is_alive()


class _LedDaemon(Daemon):
    """Looks once by itself, at its start; after that when a test says so, one look at a time."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.has_looked = threading.Event()
        self._one_at_a_time = threading.Lock()

    def poll_once(self) -> None:
        with self._one_at_a_time:
            super().poll_once()
        self.has_looked.set()


class MockSite:
    """A daemon in a thread, which looks at its Slurm when the test says so.

    Parameters
    ----------
    folder
        Empty; of the store, the table, the settings' file and, unless ``api`` says otherwise, the
        socket.
    slurm
        The mock.
    fault
        What every command of Slurm's fails with; may be set later, too.
    sections
        Of the settings, besides where files are.

    Attributes
    ----------
    listen
        Where the daemon is, as in ``api.listen``.
    socket_path, settings_path
        For a command's --socket and --settings.
    app
        What answers requests.
    running, waiting
        Ids of jobs, for the test to set.
    """

    def __init__(
        self,
        folder: Path,
        slurm: MockSlurm,
        fault: Exception | None = None,
        **sections: dict[str, Any],
    ) -> None:
        self.slurm = slurm
        self.running = self.waiting = ""
        self.socket_path = folder / "s"
        self.settings_path = folder / "foretime.toml"
        self.settings = Settings.model_validate(
            sections
            | {
                # The thread looks once, at the start; then the test does.
                "scheduler": {
                    "history_days": 1,
                    "poll_interval_s": 3600,
                    "longest_poll_interval_s": 3600,
                },
                "store": {"path": str(folder / "store")},
                "table": {"path": str(folder / "table"), "watchdog_after_s": 7200},
                "api": {"listen": f"unix:{self.socket_path}"} | sections.get("api", {}),
            }
        )
        self.settings_path.write_text(to_toml(self.settings))
        self._slurm_lock = threading.Lock()
        self.fault = fault
        self.start()

    def start(self) -> None:
        """Start the daemon; it answers, and has forecasts, when this is done."""
        self.daemon = _LedDaemon(
            self.settings, SlurmCommands(self._command, 0), clock=lambda: self.slurm.now
        )
        self.app: FastAPI = self.daemon.app
        self._running = running(self.daemon)
        self._running.__enter__()
        # Its own look comes before any of the test's, however slow the machine is.
        assert self.daemon.has_looked.wait(_READY_S)
        self.daemon.forecasts.refresh()
        self.listen = self.daemon.address

    def _command(self, argv: Sequence[str], stdin: str | None = None) -> object:
        if self.fault is not None:
            raise self.fault
        with self._slurm_lock:
            return self.slurm.run(argv, stdin)

    def look(self) -> None:
        """Have the daemon look at the queue, and forecast."""
        self.daemon.poll_once()
        self.daemon.forecasts.refresh()

    def advance(self, seconds: int) -> None:
        """Turn the clock, and look."""
        with self._slurm_lock:
            self.slurm.advance(self.slurm.now + seconds)
        self.look()

    def end(self) -> None:
        """End the daemon."""
        self._running.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
