"""MUNGE credentials: who made them, by munged's own word."""

from __future__ import annotations

import os
import re
import subprocess
import threading

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.clients.child_process import spawn
from foretime_sidecar.web.auth.identity import Identity, IdentityError, name_of

_PATTERN = re.compile(r"MUNGE:[A-Za-z0-9+/=]{1,8000}:", re.ASCII)
_TIMEOUT_S = 5
_AT_ONCE = 4
_RENEW = "make a new one for each request: munge -n"
# munge_err_t of munge.h, those that a caller may see to.
_EXPIRED, _REWOUND, _REPLAYED, _NO_DAEMON = 15, 16, 17, 6
_SAID = {
    _EXPIRED: "the credential has expired",
    _REWOUND: "the credential is of the future",
    _REPLAYED: "the credential has been used before",
    18: "the credential is not for the daemon's user",
}


class MungeCredentials:
    """Has munged decode credentials, each once: it refuses one that comes again.

    Parameters
    ----------
    socket
        munged's; "" for its usual one.
    """

    def __init__(self, socket: str = "") -> None:
        self._socket = socket
        # Whoever sends rubbish must not have us run any number of commands.
        self._places = threading.BoundedSemaphore(_AT_ONCE)

    def identity(self, credential: str, where: str) -> Identity:
        """Give who made a credential.

        Raises
        ------
        IdentityError
            If munged does not vouch for it: forged, expired, used before, for somebody else.
        StateError
            If munged can't be asked.
        """
        if not _PATTERN.fullmatch(credential):
            raise IdentityError("this is no MUNGE credential", where, _RENEW)
        command = ["unmunge", "--numeric", "--keys=STATUS,UID", f"--output={os.devnull}"]
        if self._socket:
            command.append(f"--socket={self._socket}")
        try:
            with self._places:
                done = spawn(command, _TIMEOUT_S, stdin=credential)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StateError(f"munged can't be asked: {error}; see that it runs") from error
        if done.returncode == _NO_DAEMON:
            raise StateError(
                "munged does not answer; see that it runs, and what api.munge_socket says"
            )
        if done.returncode != 0:
            said = _SAID.get(done.returncode, "munged does not vouch for the credential")
            raise IdentityError(said, where, _RENEW)
        found = dict(re.findall(r"^(STATUS|UID):\s+(\d{1,10})$", done.stdout, re.MULTILINE))
        if found.get("STATUS") != "0" or "UID" not in found:
            raise StateError("unmunge's answer can't be read; is another program of that name?")
        uid = int(found["UID"])
        return Identity("munge", name_of(uid), uid)
