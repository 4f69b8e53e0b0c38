"""A sendmail that keeps what it is given, or fails as it is told to."""

from __future__ import annotations

from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path


@dataclass(frozen=True)
class FakeSendmail:
    """A program in a folder of its own.

    Attributes
    ----------
    folder
        Where it is, and keeps the mails.
    """

    folder: Path

    @property
    def path(self) -> Path:
        """The program."""
        return self.folder / "sendmail"

    def write(self, before: str = "") -> None:
        """Write the program; ``before`` is shell that runs before it takes the mail."""
        self.folder.mkdir(exist_ok=True)
        self.path.write_text(
            f'#!/bin/sh\n{before}\nn=$(ls "{self.folder}" | wc -l)\n'
            f'echo "$@" > "{self.folder}/arguments"\ncat > "{self.folder}/mail$n"\n'
        )
        self.path.chmod(0o755)

    @property
    def arguments(self) -> str:
        """What it was last called with."""
        return (self.folder / "arguments").read_text().strip()

    def mails(self) -> list[EmailMessage]:
        """What it has taken, in order."""
        taken = sorted(self.folder.glob("mail*"), key=lambda path: int(path.name[4:]))
        return [
            mail
            for path in taken
            if isinstance(
                mail := message_from_bytes(path.read_bytes(), policy=policy.default), EmailMessage
            )
        ]
