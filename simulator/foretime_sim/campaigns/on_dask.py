"""Executing a campaign's cells on Dask: a cluster that runs, or one submitted to Slurm or PBS.

Workers need this version of Foretime, and the logs (and modules of the user's own) under the same
paths: on a cluster, in a shared file system.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from distributed import Client, as_completed
from foretime_estimators.jobs.errors import ForetimeError, InputError

from foretime_sim.campaigns.campaign import JobQueue
from foretime_sim.campaigns.cells import Cell
from foretime_sim.campaigns.runs import Record, attempt, failure

if TYPE_CHECKING:
    from dask_jobqueue import JobQueueCluster

Batch: TypeAlias = Literal["slurm", "pbs"]

CONNECT_S = 30
IDLE_EVERY_S = 15.0
# Dask leaves a half-made client behind where it refuses an address itself.
_ADDRESS = re.compile(r"((tcp|tls|ucx|wss?)://)?[^\s/]+:\d+|inproc://\S+")


class DaskCluster(Protocol):
    """A cluster object of Dask's, such as ``LocalCluster``."""

    def close(self) -> object:
        """End its scheduler and its workers."""
        ...


class DaskWorkers:
    """Runs cells on the workers of a Dask cluster; see `campaign_execution.Executor`.

    A worker that is lost while it runs a cell is no loss: Dask gives the cell to another, and only
    a cell that loses several workers fails.

    Parameters
    ----------
    cluster
        Address of a Dask scheduler (``tcp://host:8786``), or a cluster object, which is closed at
        the end.
    connect_s
        How long to wait for its answer.
    idle
        Called, while there are cells to run and no workers, at once and every ``idle_every_s`` with
        how long that has been so, seconds; in a thread of its own.

    Raises
    ------
    InputError
        If that is no address.
    ForetimeError
        If the scheduler does not answer.
    """

    def __init__(
        self,
        cluster: str | DaskCluster,
        connect_s: float = CONNECT_S,
        idle: Callable[[float], None] | None = None,
        idle_every_s: float = IDLE_EVERY_S,
    ) -> None:
        self._idle, self._idle_every_s = idle, idle_every_s
        self._cluster = None if isinstance(cluster, str) else cluster
        if isinstance(cluster, str) and not _ADDRESS.fullmatch(cluster):
            raise InputError(f"{cluster!r} is no address of Dask's; give it as tcp://host:8786")
        try:
            self._client = Client(cluster, timeout=connect_s, set_as_default=False)
        except (OSError, ValueError) as error:
            self._close_cluster()
            raise ForetimeError(
                f"no Dask scheduler answers at {cluster}: {error}; give its address as "
                "tcp://host:8786"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    @property
    def dashboard(self) -> str:
        """Address of Dask's own page about its work."""
        return str(self._client.dashboard_link)

    def __call__(self, cells: Sequence[Cell]) -> Generator[Record]:
        """Run the cells; see `campaign_execution.Executor`."""
        # Not what an earlier, interrupted run has left on the scheduler.
        run = uuid.uuid4().hex[:8]
        keys = [f"foretime-cell-{cell.id}-{run}" for cell in cells]
        futures = self._client.map(attempt, list(cells), key=keys, pure=False)
        by_key = dict(zip(keys, cells, strict=True))
        try:
            yield from self._records(futures, by_key)
        finally:
            self._client.cancel(futures)

    def _records(self, futures: list[Any], by_key: dict[str, Cell]) -> Generator[Record]:
        with self._watched():
            for future in as_completed(futures, loop=self._client.loop, raise_errors=False):
                cell = by_key[future.key]
                if future.status == "finished":
                    record: Record = future.result()
                elif future.status == "error":
                    error = future.exception()
                    record = failure(cell, f"{type(error).__name__}: {error}")
                else:
                    raise ForetimeError(
                        f"Dask {future.status} a cell ({cell.title}): its scheduler has gone or "
                        "was restarted; start it and run the campaign again to go on"
                    )
                future.release()
                yield record

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Tell now and then of a cluster without workers: nothing else would be heard of it."""
        if self._idle is None:
            yield
            return
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(ended, self._idle), daemon=True)
        watch.start()
        try:
            yield
        finally:
            ended.set()
            watch.join()

    def _watch(self, ended: threading.Event, idle: Callable[[float], None]) -> None:
        since = time.monotonic()
        pause_s = 0.0
        while not ended.wait(pause_s):
            pause_s = self._idle_every_s
            try:
                workers = len(self._client.nthreads())
            except (OSError, RuntimeError, TimeoutError):  # it has gone, which others tell
                return
            if workers:
                since = time.monotonic()
            else:
                idle(time.monotonic() - since)


def submitted_cluster(batch: Batch, settings: JobQueue, workers: int) -> JobQueueCluster:
    """Make a Dask cluster whose workers are jobs of a batch system.

    Parameters
    ----------
    batch
        ``slurm`` or ``pbs``; ``sbatch`` or ``qsub`` must be on the path.
    settings
        What the jobs ask for.
    workers
        How many workers; a job holds ``settings.processes`` of them. Jobs are submitted at once.

    Raises
    ------
    InputError
        If the settings don't make a job.
    """
    import dask_jobqueue

    kinds = {"slurm": dask_jobqueue.SLURMCluster, "pbs": dask_jobqueue.PBSCluster}
    given: dict[str, Any] = {
        "queue": settings.queue,
        "account": settings.account,
        "cores": settings.cores,
        "memory": settings.memory,
        "walltime": settings.walltime,
        "processes": settings.processes or settings.cores,
        "interface": settings.interface,
        "local_directory": settings.local_directory,
        "log_directory": settings.log_directory,
        "job_script_prologue": list(settings.prologue),
        "job_extra_directives": list(settings.directives),
        "job_name": "foretime-campaign",
        # Any free port: on a login node others have dashboards, too.
        "scheduler_options": {"dashboard_address": ":0"},
    }
    try:
        cluster = kinds[batch](**{k: v for k, v in given.items() if v is not None})
    except (ValueError, RuntimeError, OSError) as error:
        raise InputError(f"[jobqueue]: {error}") from error
    cluster.scale(workers)
    return cluster
