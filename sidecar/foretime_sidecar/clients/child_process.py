"""Runs a scheduler's commands as child processes, with a timeout and a few more attempts."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tenacity
from foretime_estimators.errors import SchedulerError

_MOST_LINES = 10  # of what a failed command said


@dataclass(frozen=True, slots=True)
class Advice:
    """What to tell an administrator whose commands fail.

    Attributes
    ----------
    install
        What has the commands, such as "install Slurm's client commands".
    check
        What may not answer, such as "check slurmctld".
    """

    install: str
    check: str


def spawn(
    command: Sequence[str],
    timeout_s: int,
    environment: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; with ``stdin`` ``None`` it reads nothing.

    Raises
    ------
    OSError
        If it can't be run.
    TimeoutExpired
        If it does not end in time; it is killed.
    """
    return subprocess.run(  # noqa: S603 - the commands are ours, no shell is in between
        command,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout_s,
        env=environment,
        check=False,
    )


def said_by(done: subprocess.CompletedProcess[str]) -> str:
    """Give the first lines of what a failed command said, in one."""
    lines = (done.stderr or done.stdout).strip().splitlines()[:_MOST_LINES]
    return "; ".join(lines) or "no message"


class ChildProcesses:
    """Runs commands as child processes.

    Parameters
    ----------
    advice
        What errors say to do.
    commands_dir
        Folder of the commands; "" finds them on the PATH.
    timeout_s
        Bound of one attempt.
    attempts
        How often a command is tried before it counts as failed; the pause between attempts doubles
        from about a second, with jitter, so that many sidecars don't knock in step.
    """

    def __init__(
        self, advice: Advice, commands_dir: str = "", timeout_s: int = 60, attempts: int = 4
    ) -> None:
        self._advice = advice
        self._commands_dir = commands_dir
        self._timeout_s = timeout_s
        self._retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(attempts),
            wait=tenacity.wait_exponential_jitter(max=10, jitter=1),
            retry=tenacity.retry_if_exception_type(SchedulerError),
            reraise=True,
        )

    def output(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        stdin: str | None = None,
        *,
        once: bool = False,
    ) -> str:
        """Run a command and give what it printed.

        Parameters
        ----------
        argv
            Name and arguments.
        environment
            All of its environment.
        stdin
            What it reads; ``None``: nothing.
        once
            Whether it is tried once only, as what fails may have been done in part.

        Raises
        ------
        SchedulerError
            If it can't be run, fails, or does not end in time.
        """
        if once:
            return self._once(argv, environment, stdin)
        return self._retrying(self._once, argv, environment, stdin)

    def _once(self, argv: Sequence[str], environment: Mapping[str, str], stdin: str | None) -> str:
        command = [str(Path(self._commands_dir) / argv[0]), *argv[1:]]
        try:
            done = spawn(command, self._timeout_s, environment, stdin)
        except OSError as error:
            raise SchedulerError(
                f"can't run {command[0]}: {error.strerror}; {self._advice.install}, or set "
                "scheduler.commands_dir"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise SchedulerError(
                f"{argv[0]} did not answer within {self._timeout_s} s; {self._advice.check}"
            ) from error
        if done.returncode != 0:
            raise SchedulerError(
                f"{argv[0]} failed with exit code {done.returncode}: {said_by(done)}; "
                f"{self._advice.check}"
            )
        return done.stdout
