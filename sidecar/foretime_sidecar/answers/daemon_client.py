"""Asks the daemon over its HTTP interface, as the commands do.

A person waits for the answer, so this imports little: not requests, and tenacity only to try again.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from foretime_estimators.jobs.errors import ForetimeError, InputError

from foretime_sidecar.settings.daemon_address import TOKEN_HEADER, TOKEN_PATH, parse_listen

_CONNECT_S, _ANSWER_S = 2, 60
_ATTEMPTS, _PAUSE_S = 3, 0.1
# A unix socket says that it is busy where a port lets one wait.
_PASSING = (ConnectionError, FileNotFoundError, BlockingIOError)
_ELSEWHERE = "; give --settings or --socket, to say where it is"


class DaemonError(ForetimeError):
    """The daemon did not answer, or could not; the administrator must look."""

    exit_code = 3


class RefusedError(InputError):
    """The daemon refused the question.

    Parameters
    ----------
    said
        What is wrong, and what to do.
    status
        Of HTTP: 404 for what it does not know, 429 for too many questions.
    """

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


class _SlowError(Exception):
    """The daemon took the question and gave no answer in time."""


def ask(listen: str, path: str, question: Mapping[str, Any], method: str = "GET") -> dict[str, Any]:
    """Ask the daemon; for what changes anything, ask for a token first.

    Parameters
    ----------
    listen
        Where it is, as in ``api.listen``.
    path
        What is asked for, such as ``/v1/forecast``.
    question
        Its parameters; ``None`` leaves one out.
    method
        Of HTTP.

    Raises
    ------
    RefusedError
        If the daemon finds the question wrong.
    DaemonError
        If it does not answer, or can't.
    """
    given = {name: value for name, value in question.items() if value is not None}
    try:
        target = f"{path}?{urlencode(given)}" if given else path
    except UnicodeEncodeError as error:
        raise RefusedError(f"{error.object!r}: is not UTF-8 text; write it in UTF-8", 400) from None
    headers = {}
    if method != "GET":
        headers[TOKEN_HEADER] = ask(listen, TOKEN_PATH, {})["token"]
    where = parse_listen(listen)
    try:
        status, said = _patiently(lambda: _request(where, target, method, headers))
        body = json.loads(said)
    except PermissionError as error:
        raise DaemonError(
            f"you may not connect to {listen}; ask the administrator about api.socket_mode"
        ) from error
    except _SlowError as error:
        raise DaemonError(
            f"the foretime daemon at {listen} took more than {_ANSWER_S} s; try again later"
        ) from error
    except (OSError, http.client.IncompleteRead) as error:
        raise DaemonError(
            f"no foretime daemon answers at {listen}; is it running (systemctl status foretime)?"
        ) from error
    except (http.client.HTTPException, ValueError) as error:
        raise DaemonError(
            f"{listen}: what answers there is no foretime daemon{_ELSEWHERE}"
        ) from error
    if not isinstance(body, dict):
        raise DaemonError(f"{listen}: what answers there is no foretime daemon{_ELSEWHERE}")
    if "error" in body:
        refusal = f"{body['error']['what']}; {body['error']['remedy']}"
        if status < 500:
            raise RefusedError(refusal, status)
        raise DaemonError(refusal)
    return body


def _patiently(once: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
    """Ask, and ask again a little later if nobody answers."""
    try:
        return once()
    except _PASSING:
        time.sleep(_PAUSE_S)
    import tenacity  # costs as much as all the rest of this, and is seldom needed

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_ATTEMPTS - 1),
        wait=tenacity.wait_exponential(multiplier=2 * _PAUSE_S, max=1)
        + tenacity.wait_random(0, _PAUSE_S),
        retry=tenacity.retry_if_exception_type(_PASSING),
        reraise=True,
    )
    return retrying(once)


def _request(
    where: Path | tuple[str, int], target: str, method: str, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    """Ask once: the status and the body of what is said."""
    host, port = ("localhost", None) if isinstance(where, Path) else where
    with closing(http.client.HTTPConnection(host, port)) as connection:
        connection.sock = _connected(where)
        connection.sock.settimeout(_ANSWER_S)
        try:
            connection.request(method, target, headers=dict(headers))
            reply = connection.getresponse()
            return reply.status, reply.read()
        except TimeoutError as error:
            raise _SlowError from error


def _connected(where: Path | tuple[str, int]) -> socket.socket:
    if not isinstance(where, Path):
        return socket.create_connection(where, _CONNECT_S)
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.settimeout(_CONNECT_S)
        connected.connect(str(where))
    except OSError:
        connected.close()
        raise
    return connected
