"""Questions that a cluster must answer: where it does not, the error says what became of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import psutil

from tests.slurm.harness.slurm_cluster import SlurmCluster

SILENT_S = 60
"""A slurmctld under load may leave a question unanswered; so long it is asked again."""
_AGAIN_S = 2


class LostClusterError(RuntimeError):
    """A cluster does not answer, or no longer knows its jobs."""


def ask(
    cluster: SlurmCluster,
    words: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 600,
) -> str:
    """Give what a command prints that must succeed in the end.

    Parameters
    ----------
    cluster
        Which is asked.
    words
        The command.
    environment
        More of its variables.
    timeout_s
        Of one answer.

    Raises
    ------
    LostClusterError
        If it fails for `SILENT_S`, or slurmctld has ended; with `state_of` the cluster.
    """
    until = time.monotonic() + SILENT_S
    while True:
        reply = cluster.run(words, environment=environment, timeout_s=timeout_s)
        if reply.returncode == 0:
            return reply.stdout
        if time.monotonic() > until or cluster.slurmctld.poll() is not None:
            raise LostClusterError(
                f"{' '.join(words)} answered {reply.returncode}: {reply.stdout}{reply.stderr}\n"
                f"{state_of(cluster)}"
            )
        time.sleep(_AGAIN_S)


def state_of(cluster: SlurmCluster) -> str:
    """Say whether slurmctld lives, for how long, what it answers, and what it wrote last."""
    ended = cluster.slurmctld.poll()
    if ended is not None:
        lives = f"slurmctld ended with {ended}"
    else:
        daemon = psutil.Process(cluster.slurmctld.pid)
        pids = [process.pid for process in daemon.children(recursive=True)]
        lives = f"slurmctld, {pids}, has run for {time.time() - daemon.create_time():.0f} s"
    ping = cluster.run(["scontrol", "ping"])
    return (
        f"{lives} in {cluster.folder}; scontrol ping: {ping.stdout}{ping.stderr}"
        f"\nthe end of its log:\n{cluster.log_tail()}"
    )
