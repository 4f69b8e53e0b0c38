"""pbs_sched's ``resources:`` line, and soft_walltime in it.

pbs_sched puts jobs into classes by what they ask for of the resources in that line of sched_config,
and by walltime (``create_resresv_sets_resdef``, OpenPBS 23.06.06). Once one job of a class can't
run, the others are not looked at in that cycle. Without soft_walltime in the line, a job that is
planned with all of its walltime so keeps planned ones that ask for the same from being backfilled.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
from dataclasses import dataclass
from pathlib import Path

from foretime_estimators.jobs.errors import ForetimeError, StateError

from foretime_sidecar.clients.pbs.pbs_conf import pbs_conf
from foretime_sidecar.install.installed_files import put_file, read_file
from foretime_sidecar.install.steps import Outcome

_WORD = "soft_walltime"
_SUFFIX = ".before-foretime"
_DAEMON = "pbs_sched"
# As pbs_sched reads it: in quotes, which may go on over lines that end with \, or one word.
_LINE = re.compile(
    rb"^[ \t]*resources[ \t]*:[ \t]*"
    rb"""(?:(?P<quote>["'])(?P<quoted>(?:\\\n|(?!(?P=quote)).)*)(?P=quote)|(?P<word>[^\s"']\S*))""",
    re.MULTILINE,
)
_OUR_WORD = re.compile(rb",[ \t]*soft_walltime\b|\bsoft_walltime[ \t]*,?[ \t]*")
_SEPARATOR = re.compile(rb"[\s,\\]+")


@dataclass(frozen=True, slots=True)
class ResourcesLine:
    """A ``resources:`` line of sched_config as it is, and with soft_walltime.

    Attributes
    ----------
    number
        The line's, from 1; of its last part if it goes on over several.
    before, after
        The line; the same if soft_walltime is there already.
    content
        The whole file with ``after``.
    """

    number: int
    before: str
    after: str
    content: bytes

    @property
    def missing(self) -> bool:
        """Whether soft_walltime is not there."""
        return self.before != self.after


def resources_line(content: bytes) -> ResourcesLine | None:
    """Find the line; ``None`` without one: then no resource of a job counts for its class."""
    lines = list(_LINE.finditer(content))
    if not lines:
        return None
    # The lists of several lines count together.
    having = [line for line in lines if _WORD.encode() in _SEPARATOR.split(_list_of(line))]
    line = (having or lines)[-1]
    added = content
    if not having:
        words = _list_of(line).rstrip()
        listed = words + (b", " if words else b"") + _WORD.encode()
        group = "quoted" if line["quote"] else "word"
        if group == "word":
            listed = b'"' + listed + b'"'
        added = content[: line.start(group)] + listed + content[line.end(group) :]
    number = content.count(b"\n", 0, line.end())
    before, after = (
        text.split(b"\n")[number].decode("utf-8", "replace") for text in (content, added)
    )
    return ResourcesLine(number + 1, before, after, added)


def _list_of(line: re.Match[bytes]) -> bytes:
    found: bytes = line["quoted"] if line["quote"] else line["word"]
    return found


def _without(content: bytes) -> bytes:
    """Take soft_walltime out of the line, as somebody has changed the file since it came in."""
    found = resources_line(content)
    if found is None or found.missing:
        return content
    lines = content.split(b"\n")
    lines[found.number - 1] = _OUR_WORD.sub(b"", lines[found.number - 1])
    return b"\n".join(lines)


def pbs_home() -> Path | None:
    """Give PBS_HOME from the environment or pbs.conf; ``None`` if neither says."""
    home = pbs_conf("PBS_HOME")
    return None if home is None else Path(home)


class PbsScheduler:
    """The scheduler on this host.

    Parameters
    ----------
    home
        PBS_HOME; ``None`` if it is not known.
    """

    def __init__(self, home: Path | None) -> None:
        self._folder = (home or Path("PBS_HOME")) / "sched_priv"
        self._known = home is not None
        self.config = self._folder / "sched_config"
        self._backup = self._folder / (self.config.name + _SUFFIX)

    def read(self) -> bytes:
        """Give sched_config.

        Raises
        ------
        StateError
            If it is not here, or can't be read.
        """
        content = None
        if self._known:
            try:
                content = read_file(self.config)
            except ForetimeError as error:
                raise StateError(str(error)) from error
        if content is None:
            raise StateError(f"{self.config} is not on this host")
        return content

    def line(self) -> ResourcesLine | None:
        """Give the line; errors as of `read`."""
        return resources_line(self.read())

    def commands(self) -> list[str]:
        """Say what `install` would do, as comments and commands of a shell."""
        try:
            line = self.line()
        except StateError as error:
            return [f"# {_by_hand(str(error))}"]
        if line is None:
            return [f"# {self.config} has no resources: line: it is left as it is."]
        if not line.missing:
            return []
        script = f"{line.number}c\\{line.after.replace(chr(92), chr(92) * 2)}"
        return [
            f"# In {self.config}: job classes with soft_walltime (plugin/README.md).",
            f"#   is         {line.before.strip()}",
            f"#   should be  {line.after.strip()}",
            f"sed -i{_SUFFIX} {shlex.quote(script)} {self.config}",
            *self._hup_command(),
        ]

    def install(self, outcome: Outcome) -> None:
        """Put soft_walltime into the line, and have pbs_sched read it; what can't be is a note."""
        try:
            content = self.read()
            line = resources_line(content)
            if line is None:
                outcome.notes.append(f"{self.config} has no resources: line: it is left as it is")
                return
            if not line.missing:
                return
            put_file(self._backup, content, self.config.stat().st_mode & 0o7777)
            put_file(self.config, line.content)
        except (StateError, OSError) as error:
            outcome.notes.append(_by_hand(str(error)))
            return
        outcome.done.append(
            f"{self.config}: {line.before.strip()} -> {line.after.strip()} (before: {self._backup})"
        )
        self._hup(outcome)

    def uninstall_commands(self) -> list[str]:
        """Say what `uninstall` would do, as commands of a shell."""
        try:
            if read_file(self._backup) is None:
                return []
        except ForetimeError:
            return [f"# Look for {self._backup}: be root on the scheduler's host."]
        back = f"mv {self._backup} {self.config}"
        if self._is_ours():
            return [back, *self._hup_command()]
        return [
            f"# {self.config} was changed since: soft_walltime alone is taken from resources:",
            f"sed -i '/^[ \\t]*resources[ \\t]*:/s/,[ \\t]*{_WORD}//' {self.config}",
            f"rm {self._backup}",
            *self._hup_command(),
        ]

    def uninstall(self, outcome: Outcome) -> None:
        """Take it out again if `install` had put it in; else the file stays as it is."""
        try:
            before = read_file(self._backup)
            if before is None:
                return
            put_file(self.config, before if self._is_ours() else _without(self.read()))
            put_file(self._backup, None)
        except (ForetimeError, OSError) as error:
            outcome.notes.append(
                f"{self.config}: soft_walltime stays in the line resources:, where it does no harm "
                f"({error})"
            )
            return
        outcome.done.append(f"{self.config}: resources: without soft_walltime")
        self._hup(outcome)

    def _is_ours(self) -> bool:
        """Whether the file is as `install` left it."""
        before = read_file(self._backup)
        line = None if before is None else resources_line(before)
        return line is not None and line.content == read_file(self.config)

    def _hup_command(self) -> list[str]:
        lock = self._folder / "sched.lock"
        return [f"kill -HUP $(cat {lock})"] if lock.exists() else []

    def _hup(self, outcome: Outcome) -> None:
        """Have pbs_sched read its configuration."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self._folder / "sched.lock").read_text())
            if Path(f"/proc/{pid}/comm").read_text().strip() == _DAEMON:
                os.kill(pid, signal.SIGHUP)
                outcome.done.append(f"kill -HUP {pid} ({_DAEMON})")
                return
        outcome.notes.append(
            f"{_DAEMON} does not run here: it reads sched_config when it starts, or at kill -HUP"
        )


def _by_hand(why: str) -> str:
    return (
        f"{why}. As root on the scheduler's host, add {_WORD} to the line resources: of "
        f"PBS_HOME/sched_priv/sched_config, then kill -HUP {_DAEMON}: without it planned jobs wait "
        "with unplanned ones that ask for the same (plugin/README.md)."
    )
