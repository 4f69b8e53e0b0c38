"""Asks the daemon over its HTTP interface, as the commands do."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
import requests_unixsocket
import tenacity
from foretime_estimators.jobs.errors import ForetimeError, InputError

from foretime_sidecar.settings.daemon_address import TOKEN_HEADER, TOKEN_PATH, parse_listen

_CONNECT_S, _ANSWER_S = 2, 60
_ATTEMPTS = 3
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
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_ATTEMPTS),
        wait=tenacity.wait_exponential(multiplier=0.1, max=1) + tenacity.wait_random(0, 0.1),
        retry=tenacity.retry_if_exception_type(
            # A unix socket says that it is busy where a port lets one wait.
            (requests.ConnectionError, ConnectionError, FileNotFoundError, BlockingIOError)
        ),
        reraise=True,
    )
    headers = {}
    if method != "GET":
        headers[TOKEN_HEADER] = ask(listen, TOKEN_PATH, {})["token"]
    try:
        reply = retrying(_request, parse_listen(listen), path, question, method, headers)
        body = reply.json()
    except PermissionError as error:
        raise DaemonError(
            f"you may not connect to {listen}; ask the administrator about api.socket_mode"
        ) from error
    except requests.Timeout as error:
        raise DaemonError(
            f"the foretime daemon at {listen} took more than {_ANSWER_S} s; try again later"
        ) from error
    except requests.JSONDecodeError as error:
        raise DaemonError(
            f"{listen}: what answers there is no foretime daemon{_ELSEWHERE}"
        ) from error
    except OSError as error:  # which requests' own errors are, too
        raise DaemonError(
            f"no foretime daemon answers at {listen}; is it running (systemctl status foretime)?"
        ) from error
    if not isinstance(body, dict):
        raise DaemonError(f"{listen}: what answers there is no foretime daemon{_ELSEWHERE}")
    if "error" in body:
        said = f"{body['error']['what']}; {body['error']['remedy']}"
        if reply.status_code < 500:
            raise RefusedError(said, reply.status_code)
        raise DaemonError(said)
    return body


def _request(
    where: Path | tuple[str, int],
    path: str,
    question: Mapping[str, Any],
    method: str,
    headers: Mapping[str, str],
) -> requests.Response:
    if isinstance(where, Path):
        # requests hides why a unix socket can't be connected to.
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_CONNECT_S)
            probe.connect(str(where))
        base = f"http+unix://{quote(str(where), safe='')}"
    else:
        host = f"[{where[0]}]" if ":" in where[0] else where[0]
        base = f"http://{host}:{where[1]}"
    with requests_unixsocket.Session() as session:
        session.trust_env = False  # no proxy stands between us and our own machine
        reply: requests.Response = session.request(
            method,
            f"{base}{path}",
            params=question,
            headers=headers,
            timeout=(_CONNECT_S, _ANSWER_S),
        )
        return reply
