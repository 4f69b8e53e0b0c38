"""Runs a scheduler's commands as child processes, with a timeout and a few more attempts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

import tenacity
from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.child_output import ChildOutput
from foretime_sidecar.clients.request_time import Request, RequestTime, processor_time_s

_MOST_LINES = 10  # of what a failed command said
_MOST_SAID_BYTES = 100_000

AnyRead = TypeVar("AnyRead")


@dataclass(frozen=True, slots=True)
class Advice:
    """What to tell an administrator whose commands fail.

    Attributes
    ----------
    install
        What has the commands, such as "install Slurm's client commands".
    check
        What may not answer, such as "check slurmctld".
    known
        What to do where a command said just that, by a part of its words.
    """

    install: str
    check: str
    known: Mapping[str, str] = field(default_factory=dict)

    def after(self, said: str) -> str:
        """Say what to do after a command failed with these words."""
        return next((advice for words, advice in self.known.items() if words in said), self.check)


class _Child(subprocess.Popen[bytes]):
    """A child process that tells what it took of this machine's processors.

    Attributes
    ----------
    own_s
        How long it ran, or queued for a processor, seconds; known once it was waited for.
    """

    own_s = 0.0

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; see `subprocess.Popen`."""
        if self.returncode is None:
            # It has closed its output or was killed. Once it has been waited for, nobody can tell.
            self.own_s = processor_time_s(self.pid)
        return super().wait(timeout)


def spawn(
    command: Sequence[str],
    timeout_s: int,
    environment: Mapping[str, str] | None = None,
    stdin: str | None = None,
    request: Request | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; with ``stdin`` ``None`` it reads nothing.

    Parameters
    ----------
    command
        Name and arguments.
    timeout_s
        It is killed when it takes longer.
    environment
        All of its environment; ``None``: ours.
    stdin
        What it reads.
    request
        Told how long the command ran itself.

    Raises
    ------
    OSError
        If it can't be run.
    TimeoutExpired
        If it does not end in time.
    """
    done = _run(command, timeout_s, environment, stdin, request)
    return subprocess.CompletedProcess(
        done.args, done.returncode, as_text(done.stdout), as_text(done.stderr)
    )


def as_text(printed: bytes) -> str:
    """Decode what a command printed; bytes that are no UTF-8 are replaced."""
    return printed.decode(errors="replace")


def _run(
    command: Sequence[str],
    timeout_s: int,
    environment: Mapping[str, str] | None,
    stdin: str | None,
    request: Request | None,
) -> subprocess.CompletedProcess[bytes]:
    with _Child(
        command,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as child:
        try:
            stdout, stderr = child.communicate(None if stdin is None else stdin.encode(), timeout_s)
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            if request is not None:
                request.own_s += child.own_s
    return subprocess.CompletedProcess(command, child.returncode, stdout, stderr)


def _read_from(
    command: Sequence[str],
    timeout_s: int,
    environment: Mapping[str, str],
    request: Request,
    read: Callable[[Iterable[bytes]], AnyRead],
) -> tuple[AnyRead, subprocess.CompletedProcess[bytes]]:
    """Run a command as `_run`, and read what it prints while it prints.

    Of what it printed the beginning is given, where a command says what has failed.
    """
    with _Child(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as child:
        output = ChildOutput(child, timeout_s, _MOST_SAID_BYTES)
        try:
            found = read(output)
            for _ in output:
                pass  # what the reader had no use for
            child.wait(output.left_s())
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            request.own_s += child.own_s
    return found, subprocess.CompletedProcess(
        command, child.returncode, output.beginning, bytes(output.said)
    )


def said_by(done: subprocess.CompletedProcess[str] | subprocess.CompletedProcess[bytes]) -> str:
    """Give the first lines of what a failed command said, in one."""
    said = done.stderr or done.stdout
    lines = (as_text(said) if isinstance(said, bytes) else said).strip().splitlines()[:_MOST_LINES]
    # A semicolon divides what is wrong from what to do.
    return " | ".join(lines) or "no message"


_Done: TypeAlias = tuple[AnyRead, subprocess.CompletedProcess[bytes]]
"""What was read of a command's output, and how the command ended."""


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
    request_time
        Counts how long the commands wait for their answers.
    """

    def __init__(
        self,
        advice: Advice,
        commands_dir: str = "",
        timeout_s: int = 60,
        attempts: int = 4,
        request_time: RequestTime | None = None,
    ) -> None:
        self._advice = advice
        self._request_time = request_time or RequestTime()
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
        accounting: bool = False,
    ) -> bytes:
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
        accounting
            Whether slurmdbd answers it, not the controller.

        Raises
        ------
        SchedulerError
            If it can't be run, fails, or does not end in time.
        """

        def run(command: Sequence[str], request: Request) -> _Done[bytes]:
            done = _run(command, self._timeout_s, environment, stdin, request)
            return done.stdout, done

        if once:
            return self._once(argv, run, accounting)
        printed: bytes = self._retrying(self._once, argv, run, accounting)
        return printed

    def read(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        read: Callable[[Iterable[bytes]], AnyRead],
    ) -> AnyRead:
        """Run a command and give what is read of its output while it is printed.

        Parameters
        ----------
        argv
            Name and arguments.
        environment
            All of its environment.
        read
            Takes what is printed, piece by piece; at each attempt anew.

        Raises
        ------
        SchedulerError
            If it can't be run, fails, or does not end in time.
        """

        def run(command: Sequence[str], request: Request) -> _Done[AnyRead]:
            return _read_from(command, self._timeout_s, environment, request, read)

        found: AnyRead = self._retrying(self._once, argv, run, accounting=False)
        return found

    def _once(
        self,
        argv: Sequence[str],
        run: Callable[[Sequence[str], Request], _Done[AnyRead]],
        accounting: bool,
    ) -> AnyRead:
        command = [str(Path(self._commands_dir) / argv[0]), *argv[1:]]
        try:
            with self._request_time.request(accounting=accounting) as request:
                found, done = run(command, request)
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
            said = said_by(done)
            raise SchedulerError(
                f"{argv[0]} failed with exit code {done.returncode}: {said}; "
                f"{self._advice.after(said)}"
            )
        return found
