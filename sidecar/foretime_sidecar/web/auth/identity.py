"""Somebody whom the daemon knows: by what, by which name, and what cannot be believed."""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import dataclass

from foretime_sidecar.web.auth.peer import Peer

# What useradd takes, and the dots, @ and capitals of directories.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,253}\$?", re.ASCII)


class IdentityError(Exception):
    """What was shown as proof is none.

    Parameters
    ----------
    what
        What is wrong with it.
    where
        The header, or ``connection``.
    remedy
        What to do.
    """

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody, as something that can be believed says.

    Attributes
    ----------
    source
        What says so: ``socket``, ``slurm-token``, ``munge`` or ``proxy``.
    user
        Login name; ``None`` for a uid that this machine has no name for.
    uid
        ``None`` where only a name is told, which then makes nobody root.
    """

    source: str
    user: str | None
    uid: int | None = None

    @classmethod
    def of_peer(cls, peer: Peer | None) -> Identity | None:
        """Give who is at the other end of a socket; ``None`` if that is not told."""
        return None if peer is None else cls("socket", peer.user, peer.uid)

    @property
    def who(self) -> str:
        """What tells people apart."""
        return self.user or f"uid {self.uid}"

    @property
    def privileged(self) -> bool:
        """Whether it is root, or the daemon's own user."""
        return self.uid in (0, os.geteuid())


def checked_name(name: object, where: str) -> str:
    """Give a login name that a proof holds.

    Raises
    ------
    IdentityError
        If it can be none.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise IdentityError(
            f"the name in {where} is no login name",
            where,
            "have whoever made it look at what it puts there",
        )
    return name


def name_of(uid: int) -> str | None:
    """Give the login name of a uid; ``None`` if this machine has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return None


def uid_of(name: str) -> int | None:
    """Give the uid of a login name; ``None`` if this machine has none."""
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, UnicodeEncodeError):
        return None
