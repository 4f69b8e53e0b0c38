"""Slurm's configuration files, changed without touching anything but the words that must change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

# A value goes on over a backslash at the end of a line; a comment or a space ends it.
_VALUE = r'"(?:[^"\n])*"|(?:\\\r?\n|[^\s#"])*'
_LINE = re.compile(r"(?P<said>(?:\\\r?\n|[^\n#])*)(?:#[^\n]*)?(?:\n|\Z)")
_CONTINUED = re.compile(r"\\\r?\n")
_INCLUDE = re.compile(r"^[ \t]*include[ \t]+(\S+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where a key gets a value: from ``start`` to ``end`` in the text of ``path``.

    ``key_start`` is where the key stands, in the same line.
    """

    path: Path
    key_start: int
    start: int
    end: int
    value: str


def assignments(text: str, key: str, path: Path) -> Iterator[Assignment]:
    """Find where a text gives a key a value, outside of comments; case does not matter."""
    pattern = re.compile(rf"(?:^|(?<=\s)){re.escape(key)}[ \t]*=[ \t]*({_VALUE})", re.IGNORECASE)
    # A line and those that continue it; a comment ends with its own line, whatever it ends with.
    for line in _LINE.finditer(text):
        for found in pattern.finditer(text, line.start("said"), line.end("said")):
            value = _CONTINUED.sub("", found[1]).strip('"')
            yield Assignment(path, found.start(), found.start(1), found.end(1), value)


def octets(text: str) -> bytes:
    """Give the bytes that a text was read from; what is not UTF-8 stays what it was."""
    return text.encode("utf-8", "surrogateescape")


class SlurmConf:
    """slurm.conf with the files that it includes, as they would be after some changes.

    Parameters
    ----------
    path
        slurm.conf.

    Raises
    ------
    InputError
        If a file can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.texts: dict[Path, str] = {}
        self._read(path)

    def _read(self, path: Path) -> None:
        try:
            # Not to change line ends: what is not changed stays byte for byte.
            text = path.read_bytes().decode("utf-8", "surrogateescape")
        except OSError as error:
            raise InputError(
                f"{path}: can't read Slurm's configuration: {error.strerror}; run this as root on "
                "slurmctld's host, or name slurm.conf with --conf"
            ) from error
        self.texts[path] = text
        for name in _INCLUDE.findall(text):
            included = path.parent / name
            if "%" not in name and included not in self.texts and included.exists():
                self._read(included)

    def find(self, key: str) -> list[Assignment]:
        """Give where a key gets a value; of several Slurm takes the last."""
        return [
            found for path, text in self.texts.items() for found in assignments(text, key, path)
        ]

    def value(self, key: str) -> str:
        """Give a key's value, "" if it has none."""
        found = self.find(key)
        return found[-1].value if found else ""

    def words(self, key: str) -> list[str]:
        """Give the words of a value that is a list."""
        return [word.strip() for word in self.value(key).split(",") if word.strip()]

    def set(self, key: str, value: str) -> None:
        """Give a key another value: in its place, or in a line of its own at the end."""
        found = self.find(key)
        if found:
            last = found[-1]
            text = self.texts[last.path]
            quoted = text[last.start : last.start + 1] == '"'
            new = f'"{value}"' if quoted else value
            self.texts[last.path] = text[: last.start] + new + text[last.end :]
            return
        text = self.texts[self.path]
        newline = "\r\n" if "\r\n" in text else "\n"
        if text and not text.endswith("\n"):
            text += newline
        self.texts[self.path] = f"{text}{key}={value}{newline}"

    def add(self, key: str, word: str) -> None:
        """Add a word to a value that is a list, unless it is there."""
        if word.lower() not in (one.lower() for one in self.words(key)):
            found = self.find(key)
            if not found or not self.words(key):
                self.set(key, word)
                return
            last = found[-1]
            text = self.texts[last.path]
            at = last.end - (text[last.end - 1] == '"')
            self.texts[last.path] = f"{text[:at]},{word}{text[at:]}"

    def remove(self, key: str, word: str) -> None:
        """Take a word out of a value that is a list; the line too, if nothing is left."""
        rest = [one for one in self.words(key) if one.lower() != word.lower()]
        if len(rest) == len(self.words(key)):
            return
        if rest:
            self.set(key, ",".join(rest))
            return
        self.unset(key)

    def unset(self, key: str) -> None:
        """Take a key and its value out, and the line if nothing else is in it."""
        found = self.find(key)
        if not found:
            return
        last = found[-1]
        text = self.texts[last.path]
        begins = text.rfind("\n", 0, last.start) + 1
        ends = text.find("\n", last.end)
        ends = len(text) if ends < 0 else ends + 1
        rest = text[begins : last.key_start] + text[last.end : ends]
        if not rest.strip():
            rest = ""
        self.texts[last.path] = text[:begins] + rest + text[ends:]
