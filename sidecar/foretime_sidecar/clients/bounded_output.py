"""A command run once, within bounds of time and of what it prints."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError

_CHUNK_BYTES = 1 << 16
_MOST_SAID_BYTES = 4_000
_GONE_S = 2.0  # a killed process may hang in the kernel: then it is left to itself


def bounded_output(
    command: Sequence[str], environment: Mapping[str, str], timeout_s: float, most_bytes: int
) -> str:
    """Run a command and give what it printed; what is not UTF-8 is replaced.

    It runs in a process group of its own, all of which is killed once it is too slow or prints too
    much.

    Parameters
    ----------
    command
        Name and arguments.
    environment
        All of its environment.
    timeout_s
        Seconds that it may take.
    most_bytes
        That it may print.

    Raises
    ------
    SchedulerError
        If it can't be run, fails, takes longer or prints more.
    """
    name = f"{Path(command[0]).name} {' '.join(command[1:])}".strip()
    try:
        child = subprocess.Popen(  # noqa: S603 - the command is ours, no shell is in between
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise SchedulerError(
            f"can't run {command[0]}: {error.strerror}; install Slurm's client commands, or set "
            "scheduler.commands_dir"
        ) from error
    try:
        printed, said = _read(child, name, time.monotonic() + timeout_s, timeout_s, most_bytes)
    finally:
        _end(child)
    if child.returncode != 0:
        lines = (said or printed[:_MOST_SAID_BYTES]).decode("utf-8", "replace").split()
        raise SchedulerError(
            f"{name} failed with exit code {child.returncode}: {' '.join(lines) or 'no message'}; "
            "check slurmctld and slurmdbd"
        )
    return printed.decode("utf-8", "replace")


def _read(
    child: subprocess.Popen[bytes], name: str, until: float, timeout_s: float, most_bytes: int
) -> tuple[bytes, bytes]:
    """Read what a child prints until it closes both of its outputs, and wait for its end."""
    late = SchedulerError(
        f"{name} did not answer within {timeout_s:g} s; check slurmctld and slurmdbd"
    )
    printed, said = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, into in ((child.stdout, printed), (child.stderr, said)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, into)
        while selector.get_map():
            ready = selector.select(max(until - time.monotonic(), 0))
            if not ready:
                raise late
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is printed or len(said) < _MOST_SAID_BYTES:
                    key.data.extend(chunk)
                if len(printed) > most_bytes:
                    raise SchedulerError(
                        f"{name} printed more than {most_bytes >> 20} MiB, and was ended"
                    )
    try:
        child.wait(max(until - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        raise late from None
    return bytes(printed), bytes(said)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill what still runs of a child's group, and let go of it."""
    if child.returncode is None:  # else its number may be another's by now
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_GONE_S)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
