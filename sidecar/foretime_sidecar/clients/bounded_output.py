"""A command run once, within bounds of time and of what it prints."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.child_output import ChildOutput

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
        printed, said = _read(child, name, timeout_s, most_bytes)
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
    child: subprocess.Popen[bytes], name: str, timeout_s: float, most_bytes: int
) -> tuple[bytes, bytes]:
    """Read what a child prints until it closes both of its outputs, and wait for its end."""
    output, printed = ChildOutput(child, timeout_s, _MOST_SAID_BYTES), bytearray()
    try:
        for piece in output:
            printed += piece
            if len(printed) > most_bytes:
                raise SchedulerError(
                    f"{name} printed more than {most_bytes >> 20} MiB, and was ended"
                )
        child.wait(output.left_s())
    except subprocess.TimeoutExpired:
        raise SchedulerError(
            f"{name} did not answer within {timeout_s:g} s; check slurmctld and slurmdbd"
        ) from None
    return bytes(printed), bytes(output.said)


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
