"""A PBS server's commands as its administrator runs them: qmgr, qstat, qselect, qalter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.child_process import said_by, spawn

HOOK = "foretime"
"""The hook's name in PBS."""

SCRIPT = "application/x-python"
CONFIGURATION = "application/x-config"
_REFUSED = ("unauthorized", "15007")
NO_HOOK = "hook not found"
"""What qmgr says, in lower case, where there is none."""


class CommandFailedError(SchedulerError):
    """A command ran and failed; ``said`` is what it said."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


@dataclass(frozen=True, slots=True)
class HookRegistration:
    """A hook as ``qmgr`` lists it.

    Attributes
    ----------
    name
        Its name.
    attributes
        ``event``, ``order``, ``alarm``, ``enabled`` and so on, as printed.
    """

    name: str
    attributes: Mapping[str, str]

    @property
    def events(self) -> set[str]:
        """What it runs at."""
        return {event.strip() for event in self.attributes.get("event", "").split(",")} - {""}

    @property
    def enabled(self) -> bool:
        """Whether it runs."""
        return self.attributes.get("enabled", "true").lower() == "true"

    def number(self, name: str) -> int | None:
        """Give a whole number, such as ``order``; ``None`` if it is not there."""
        text = self.attributes.get(name, "")
        return int(text) if text.isdecimal() else None


class PbsServer:
    """Runs PBS' commands, each with a timeout.

    Parameters
    ----------
    commands_dir
        Folder of the commands; "" finds them on the PATH.
    timeout_s
        Bound of one command.
    """

    def __init__(self, commands_dir: str = "", timeout_s: int = 60) -> None:
        self._commands_dir = commands_dir
        self._timeout_s = timeout_s

    def run(self, *argv: str) -> str:
        """Run a command and give what it printed.

        Raises
        ------
        CommandFailedError
            If it fails.
        SchedulerError
            If it can't be run or does not end.
        """
        command = [str(Path(self._commands_dir) / argv[0]), *argv[1:]]
        try:
            done = self._spawn(command)
        except OSError as error:
            raise SchedulerError(
                f"can't run {command[0]}: {error.strerror}; do this on the PBS server's host, or "
                "name the folder of its commands with --commands-dir"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise SchedulerError(
                f"{argv[0]} did not answer within {self._timeout_s} s; check pbs_server"
            ) from error
        if done.returncode != 0:
            said = said_by(done)
            remedy = (
                "be root, or a manager of PBS, on the PBS server's host"
                if any(word in said.lower() for word in _REFUSED)
                else "check pbs_server"
            )
            shown = " ".join(argv)
            raise CommandFailedError(
                f"{shown!r} failed with exit code {done.returncode}: {said}; {remedy}",
                said,
            )
        return done.stdout

    def _spawn(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return spawn(command, self._timeout_s)

    def qmgr(self, directive: str) -> str:
        """Run one directive of qmgr."""
        return self.run("qmgr", "-c", directive)

    def hooks(self) -> dict[str, HookRegistration]:
        """Give the site's hooks by name; only a manager may ask."""
        try:
            text = self.qmgr("list hook")
        except CommandFailedError as error:
            if NO_HOOK in error.said.lower():
                return {}
            raise
        return parse_hooks(text)

    def hook_content(self, name: str, kind: str) -> str:
        """Give a hook's script or configuration; "" if it has none."""
        try:
            return self.qmgr(f"export hook {name} {kind} default")
        except CommandFailedError as error:
            if any(word in error.said.lower() for word in _REFUSED):
                raise
            return ""

    def status(self, *arguments: str) -> dict[str, Any]:
        """Give what ``qstat ... -F json`` prints."""
        text = self.run("qstat", *arguments, "-F", "json")
        try:
            answer = json.loads(text, strict=False)
        except ValueError as error:
            raise SchedulerError(
                f"qstat {' '.join(arguments)} -F json did not print JSON ({error}); Foretime needs "
                "OpenPBS 20 or newer"
            ) from error
        if not isinstance(answer, dict):
            raise SchedulerError(f"qstat {' '.join(arguments)} -F json printed {answer!r}")
        return answer

    def planned_jobs(self, states: str, *, subjobs: bool = False) -> list[str]:
        """Give the ids of jobs in some of PBS's states (letters) that have a soft_walltime.

        ``subjobs``: each of an array in the array's place.
        """
        each = ["-T"] if subjobs else []
        return self.run("qselect", *each, "-s", states, "-l", "soft_walltime.ge.0").split()

    def clear(self, job_id: str) -> None:
        """Take its soft_walltime from a job."""
        self.run("qalter", "-l", "soft_walltime=", job_id)


class RememberedServer(PbsServer):
    """Asks another server each question once, and gives its answer, or error, again after that."""

    def __init__(self, server: PbsServer) -> None:
        self._server = server
        self._answers: dict[tuple[str, ...], str | SchedulerError] = {}

    def run(self, *argv: str) -> str:
        """Give what a command printed when it was first run."""
        if argv not in self._answers:
            try:
                self._answers[argv] = self._server.run(*argv)
            except SchedulerError as error:
                self._answers[argv] = error
        answer = self._answers[argv]
        if isinstance(answer, SchedulerError):
            raise answer
        return answer


def parse_hooks(text: str) -> dict[str, HookRegistration]:
    """Read what ``qmgr -c "list hook"`` printed; what is wrapped begins with a tab."""
    found: dict[str, dict[str, str]] = {}
    name = key = ""
    for line in text.splitlines():
        if line.startswith("Hook "):
            name, key = line.removeprefix("Hook ").strip(), ""
            found[name] = {}
        elif key and line.startswith("\t"):
            found[name][key] += line.strip().strip('"')
        elif name and "=" in line:
            key, _, value = (word.strip() for word in line.partition("="))
            found[name][key] = value.strip('"')
    return {name: HookRegistration(name, attributes) for name, attributes in found.items()}
