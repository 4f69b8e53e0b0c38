"""How resources of jobs are changed: over a connection of PBS's own library, or with qalter."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.child_process import said_by, spawn
from foretime_sidecar.clients.pbs.pbs_conf import pbs_conf
from foretime_sidecar.clients.request_time import RequestTime

logger = logging.getLogger("foretime")

_CHILD = Path(__file__).with_name("alter_jobs.py")
_LIBRARY = "lib/libpbs.so.0"
# In one qalter, so that no command line is too long; or in one connection, so that none outlasts
# the timeout of a request. The hook takes some 10 ms of each change on a busy server.
_MOST_JOBS = 200

ResourceChanges = Mapping[str, Mapping[str, str]]
"""By a job's id: values of its ``Resource_List`` by name; "" takes one away."""


class JobChanger(Protocol):
    """Changes resources of jobs."""

    def __call__(self, changes: ResourceChanges) -> list[str]:
        """Make the changes; gives what was refused, in words."""


class QalterProcesses:
    """Changes jobs with qalter: those that are alike by one.

    Parameters
    ----------
    run
        Runs a command.
    """

    def __init__(self, run: Callable[[Sequence[str]], object]) -> None:
        self._run = run

    def __call__(self, changes: ResourceChanges) -> list[str]:
        """Make changes; see `JobChanger`."""
        refused = []
        alike: dict[str, list[str]] = defaultdict(list)
        for job_id, resources in changes.items():
            alike[",".join(f"{name}={value}" for name, value in resources.items())].append(job_id)
        for asked, job_ids in alike.items():
            for first in range(0, len(job_ids), _MOST_JOBS):
                some = job_ids[first : first + _MOST_JOBS]
                try:
                    self._run(["qalter", "-l", asked, *some])
                except SchedulerError as error:
                    refused.append(str(error))
        return refused


class ConnectedChanges:
    """Changes jobs over one connection, where qalter makes one of each: ten times as quick.

    A child process does so with PBS's own library (`foretime_sidecar.clients.pbs.alter_jobs`). It
    ends when the changes are made, so a server that restarts in between does no harm. Where the
    library can't be loaded, or crashes, qalter does it from then on.

    Parameters
    ----------
    library
        PBS's ``libpbs.so.0``.
    otherwise
        Used where the library is of no use.
    timeout_s
        Bound of `_MOST_JOBS` changes.
    request_time
        Counts how long the changes wait for their answers.
    """

    def __init__(
        self,
        library: Path,
        otherwise: JobChanger,
        timeout_s: int = 60,
        request_time: RequestTime | None = None,
    ) -> None:
        self._library = library
        self._otherwise = otherwise
        self._timeout_s = timeout_s
        self._request_time = request_time or RequestTime()
        self._unusable = False

    def __call__(self, changes: ResourceChanges) -> list[str]:
        """Make changes; see `JobChanger`."""
        job_ids = list(changes)
        refused: list[str] = []
        for first in range(0, len(job_ids), _MOST_JOBS):
            some = {job_id: changes[job_id] for job_id in job_ids[first : first + _MOST_JOBS]}
            refused += self._otherwise(some) if self._unusable else self._connected(some)
        return refused

    def _connected(self, changes: ResourceChanges) -> list[str]:
        # Neither settings of Python's nor a site's packages can change what the child does.
        command = [sys.executable, "-I", "-S", str(_CHILD), str(self._library)]
        asked = json.dumps([[job_id, dict(resources)] for job_id, resources in changes.items()])
        try:
            with self._request_time.request() as request:
                done = spawn(command, self._timeout_s, os.environ, asked, request)
        except OSError as error:
            return self._without_library(changes, f"can't run {command[0]}: {error.strerror}")
        except subprocess.TimeoutExpired:
            return [f"jobs were not changed within {self._timeout_s} s; check pbs_server"]
        if done.returncode != 0:
            crashed = f"it ended with exit code {done.returncode}: {said_by(done)}"
            return self._without_library(changes, crashed)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        if unusable := [each["unusable"] for each in said if "unusable" in each]:
            return self._without_library(changes, unusable[0])
        return [
            f"{each['job']}: {each['error']}"
            if "job" in each
            else f"pbs_server does not change jobs: {each['error']}; check pbs_server"
            for each in said
        ]

    def _without_library(self, changes: ResourceChanges, why: str) -> list[str]:
        """Make changes that the library did not, or in part: what is set twice is the same."""
        logger.warning(
            "%s is not used to change jobs, but a qalter for each, which is slower: %s",
            *(self._library, why),
        )
        self._unusable = True
        return self._otherwise(changes)


def pbs_library(commands_dir: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Give PBS's library; ``None`` if there is none.

    Parameters
    ----------
    commands_dir
        Folder of PBS's commands, beside which it is; "" looks where pbs.conf says that PBS is.
    environment
        ``PBS_EXEC`` or ``PBS_CONF_FILE`` in it go before pbs.conf.
    """
    prefix = str(Path(commands_dir).parent) if commands_dir else pbs_conf("PBS_EXEC", environment)
    library = Path(prefix or "") / _LIBRARY
    return library if prefix and library.is_file() else None
