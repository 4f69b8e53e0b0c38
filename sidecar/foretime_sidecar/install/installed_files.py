"""Files changed for an installation, with what they were before, so that all can be undone."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import InputError, StateError

from foretime_sidecar.install.steps import Step

_VERSION = 1


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a file shall hold; ``None`` where there is, or shall be, none."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = 0o644


def read_file(path: Path) -> bytes | None:
    """Give a file's content; ``None`` if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: can't read it: {error.strerror}; be root") from error


def put_file(path: Path, content: bytes | None, mode: int = 0o644) -> None:
    """Give a file this content, whole or not at all; owner and permissions stay.

    Raises
    ------
    StateError
        If the file system refuses; the file is as it was.
    """
    place = path.resolve()
    try:
        if content is None:
            place.unlink(missing_ok=True)
            return
        temporary = place.with_name(f".{place.name}.foretime-new")
        temporary.unlink(missing_ok=True)
        status = place.stat() if place.exists() else None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(content)
            if status is not None:
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            os.fchmod(file.fileno(), mode if status is None else status.st_mode & 0o7777)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(place)
    except OSError as error:
        raise StateError(f"{path}: can't write it: {error.strerror}; be root") from error


def file_step(change: FileChange) -> Step:
    """Give the step that writes a file, and puts back what was there if a later one fails."""

    def put(content: bytes | None) -> None:
        put_file(change.path, content, change.mode)

    return Step(f"wrote {change.path}", lambda: put(change.after), lambda: put(change.before))


def digest(content: bytes | None) -> str:
    """Tell contents apart; "" for no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


@dataclass(slots=True)
class InstalledFile:
    """A file of the installation.

    Attributes
    ----------
    path
        Where it is.
    before
        What it held before, base64; ``None`` if it was not there.
    written
        Digest of what was written; if the file has another now, somebody changed it since.
    """

    path: str
    before: str | None
    written: str

    def content_before(self) -> bytes | None:
        """Give what it held before the installation."""
        return None if self.before is None else base64.b64decode(self.before)


@dataclass(slots=True)
class InstallRecord:
    """What was installed: on Slurm's side kept beside slurm.conf, of the host beside the settings.

    Attributes
    ----------
    files
        By path, in the order first written.
    words
        Words added to values of slurm.conf: key and word.
    values
        Keys of slurm.conf that were given another value, and theirs before ("" if none).
    links
        Symbolic links that were made.
    commands
        Commands that undo others, in the order of those.
    """

    files: dict[str, InstalledFile] = field(default_factory=dict)
    words: list[tuple[str, str]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> InstallRecord | None:
        """Read the record; ``None`` if nothing is installed.

        Raises
        ------
        StateError
            If it can't be read.
        """
        content = read_file(path)
        if content is None:
            return None
        try:
            values: dict[str, Any] = json.loads(content)
            if values["version"] != _VERSION:
                raise StateError(f"{path}: written by another Foretime; uninstall with that one")
            return cls(
                {name: InstalledFile(**entry) for name, entry in values["files"].items()},
                [(key, word) for key, word in values["words"]],
                dict(values["values"]),
                list(values["links"]),
                [list(command) for command in values.get("commands", [])],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"{path}: damaged ({error}); undo the installation by hand, as plugin/README.md "
                "describes it, and remove this file"
            ) from error

    def as_bytes(self) -> bytes:
        """Give what its file holds."""
        return (json.dumps({"version": _VERSION, **asdict(self)}, indent=1) + "\n").encode()

    def write(self, path: Path) -> None:
        """Keep it."""
        put_file(path, self.as_bytes(), 0o600)

    def note(self, change: FileChange) -> None:
        """Note a file that is about to be written; what it was at first counts."""
        name = str(change.path)
        if name in self.files:
            self.files[name].written = digest(change.after)
            return
        before = None if change.before is None else base64.b64encode(change.before).decode()
        self.files[name] = InstalledFile(name, before, digest(change.after))
