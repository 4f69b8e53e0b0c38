"""Asks slurmrestd, on a unix socket or a URL, with a timeout and a few more attempts."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import requests
import requests_unixsocket
import tenacity
from foretime_estimators.jobs.errors import InputError, SchedulerError

from foretime_sidecar.clients.request_time import RequestTime

_MOST_SAID = 3  # errors of a reply in one message


class RestCaller(Protocol):
    """Asks slurmrestd: over HTTP on a real system, recorded replies in a test."""

    def get(self, path: str, **query: str) -> Mapping[str, Any] | None:
        """Give the decoded reply, ``None`` if there is no such path.

        Raises `SchedulerError` if slurmrestd does not answer, or with errors.
        """

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Ask for a change, once; raises `SchedulerError` if it is refused."""


class RestConnection:
    """Asks slurmrestd over HTTP; see `RestCaller`.

    Parameters
    ----------
    where
        As in ``scheduler.slurmrestd``.
    user, token_file
        Whom the JSON Web Token is for, and the file that it is in, "" for none.
    timeout_s
        Bound of one attempt.
    attempts
        How often a question is tried; the pause between attempts doubles from about a second, with
        jitter, so that many sidecars don't knock in step.
    request_time
        Counts how long requests wait for their answers.

    Raises
    ------
    InputError
        If ``where`` is no address.
    """

    def __init__(
        self,
        where: str,
        user: str = "foretime",
        token_file: str = "",
        timeout_s: int = 60,
        attempts: int = 4,
        request_time: RequestTime | None = None,
    ) -> None:
        self._where = where
        self._request_time = request_time or RequestTime()
        self._base = base_url(where)
        self._user, self._token_file = user, token_file
        self._timeout_s = timeout_s
        self._session = requests_unixsocket.Session()
        self._session.trust_env = False  # no proxy stands between us and our own cluster
        self._retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(attempts),
            wait=tenacity.wait_exponential_jitter(max=10, jitter=1),
            retry=tenacity.retry_if_exception_type(SchedulerError),
            reraise=True,
        )

    def get(self, path: str, **query: str) -> Mapping[str, Any] | None:
        """Give the decoded reply; see `RestCaller`."""
        return self._retrying(self._ask, "GET", path, query, None)

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Ask for a change, once, as what fails may have been done; see `RestCaller`."""
        if self._ask("POST", path, {}, body) is None:
            raise SchedulerError(f"slurmrestd at {self._where} has no {path}")

    def _ask(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        try:
            with self._request_time.request(accounting=path.startswith("slurmdb/")):
                self._probe()
                reply = self._session.request(
                    method,
                    f"{self._base}/{path}",
                    params=query,
                    json=body,
                    headers=self._headers(),
                    timeout=self._timeout_s,
                )
        except requests.Timeout as error:
            raise SchedulerError(
                f"slurmrestd at {self._where} did not answer within {self._timeout_s} s; check "
                "slurmrestd and slurmctld"
            ) from error
        except OSError as error:  # which requests' own errors are, too
            raise SchedulerError(
                f"slurmrestd does not answer at {self._where}: {_cause(error)}; check "
                "scheduler.slurmrestd, and that it runs"
            ) from error
        if reply.status_code == requests.codes.not_found:
            return None
        return self._decoded(reply, path)

    def _probe(self) -> None:
        """Connect to a unix socket: requests hides why it can't, and leaves its own open."""
        if self._where.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(self._timeout_s)
                probe.connect(self._where.removeprefix("unix:"))

    def _headers(self) -> dict[str, str]:
        if not self._token_file:
            return {}
        try:
            token = Path(self._token_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SchedulerError(
                f"{self._token_file}: can't read slurmrestd's token: {error}; write one with: "
                f"scontrol token username={self._user}"
            ) from error
        # As scontrol prints it.
        token = token.removeprefix("SLURM_JWT=")
        return {"X-SLURM-USER-NAME": self._user, "X-SLURM-USER-TOKEN": token}

    def _decoded(self, reply: requests.Response, path: str) -> Mapping[str, Any]:
        if reply.status_code in (requests.codes.unauthorized, requests.codes.forbidden):
            raise SchedulerError(
                f"slurmrestd at {self._where} does not know us ({reply.status_code}): check "
                "scheduler.slurmrestd_token_file and slurmrestd_user, and how long the token lasts"
            )
        try:
            decoded = reply.json()
        except requests.JSONDecodeError:
            decoded = None
        if not isinstance(decoded, dict):
            raise SchedulerError(
                f"{self._where}: what answers /{path} there is no slurmrestd "
                f"({reply.status_code}: {reply.text[:80]!r})"
            )
        errors = decoded.get("errors") or []
        # 22.05 answers 500 for what found nothing, which is for the parser to tell.
        if (reply.status_code >= requests.codes.bad_request or "jobs" not in decoded) and errors:
            raise SchedulerError(f"slurmrestd refused /{path}: {said(errors)}")
        return decoded


def base_url(where: str) -> str:
    """Give what a request's URL begins with, from ``scheduler.slurmrestd``.

    Raises
    ------
    InputError
        If it is neither unix:PATH nor a URL.
    """
    path = where.removeprefix("unix:")
    if path != where and path.startswith("/"):
        return f"http+unix://{quote(path, safe='')}"
    if where.startswith(("http://", "https://")) and len(where.split("://")[1]) > 0:
        return where.rstrip("/")
    raise InputError(
        f"scheduler.slurmrestd = {where!r}: write unix:/PATH of slurmrestd's socket, or "
        "http://HOST:PORT"
    )


def said(errors: object) -> str:
    """Give what the errors of a reply say, in one line."""
    if not isinstance(errors, list):
        return str(errors)
    texts = []
    for error in errors[:_MOST_SAID]:
        if isinstance(error, Mapping):
            parts = (error.get("description"), error.get("error"))
            texts.append(": ".join(str(part) for part in parts if part) or str(error))
        else:
            texts.append(str(error))
    return "; ".join(texts)


def _cause(error: BaseException) -> str:
    """Give the innermost reason, which requests wraps several times."""
    while (inner := error.__context__ or error.__cause__) is not None:
        error = inner
    return getattr(error, "strerror", None) or str(error)
