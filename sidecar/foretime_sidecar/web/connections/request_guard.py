"""What no client of the daemon sends: refused before anything else looks at it.

A browser can be made to send requests by any page that it shows, over a forwarded port as its
user. Such a request names another host (DNS rebinding), or another page as its origin.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foretime_sidecar.web.auth.callers import FOR_MONITORING, ApiError

MOST_HEAD_BYTES = 32_768
ANSWER_HEADERS = {
    # No script or style but our own files; nobody frames an answer or takes it for another type,
    # and the page tells nobody where people come from.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(:[0-9]{1,5})?", re.ASCII)
_CLOSE = {"Connection": "close"}
_PAGES = frozenset({"/", "/operators"})


class RequestGuard:
    """ASGI middleware: lets through what a client may send, and adds headers to every answer.

    Parameters
    ----------
    app
        The application.
    hosts
        Besides loopback names and addresses, by which the daemon may be asked: as in the address,
        with the port if it has one.
    answered
        Told the HTTP status of every answer.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], answered: Callable[[int], None]) -> None:
        self._app = app
        self._answered = answered
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._answered(message["status"])
                headers = MutableHeaders(scope=message)
                for name, value in ANSWER_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
        except ApiError as error:
            await error.response()(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _check(self, scope: Scope) -> None:
        """Refuse a request.

        Raises
        ------
        ApiError
            421 for another's host, 400 or 413 for a body, 431 for a long head, 403 for what another
            page had a browser send, 503 over a spare connection.
        """
        headers = Headers(scope=scope)
        _check_size(scope, headers)
        host = self._checked_host(headers)
        site = headers.get("Sec-Fetch-Site", "none")
        if site not in ("none", "same-origin") and not _is_link_to_page(scope, headers):
            raise _of_another_page("Sec-Fetch-Site")
        own = {
            f"{scheme}://{each}" for scheme in ("http", "https") for each in (host, *self._hosts)
        }
        if not own.issuperset(origin.lower() for origin in headers.getlist("Origin")):
            raise _of_another_page("Origin")
        if scope.get("state", {}).get("spare") and scope["path"] not in FOR_MONITORING:
            raise ApiError(
                503,
                "the daemon is at work on all questions that it takes at a time",
                "connection",
                "ask again in a second, and fewer at a time",
                _CLOSE | {"Retry-After": "1"},
            )

    def _checked_host(self, headers: Headers) -> str:
        named = headers.getlist("Host")
        host = named[0].lower() if len(named) == 1 else ""
        found = _HOST.fullmatch(host)
        if found and (host in self._hosts or _is_loopback(found[1])):
            return host
        said = f"as {host[:100]!r}" if host else "without a host"
        raise ApiError(
            421,
            f"this daemon is not to be asked {said}",
            "Host",
            "ask for http://localhost, with the port if there is one; or let the administrator "
            "name the host in api.hosts",
            _CLOSE,
        )


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"


def _check_size(scope: Scope, headers: Headers) -> None:
    """Refuse bodies, which no path takes, and what may hide a second request in one."""
    length, coded = headers.getlist("Content-Length"), "Transfer-Encoding" in headers
    if coded and length:
        raise ApiError(
            400,
            "Content-Length and Transfer-Encoding say different things",
            "Content-Length",
            "send no body",
            _CLOSE,
        )
    if coded or any(each.strip("0") for each in length):
        raise ApiError(
            413,
            "a request has no body here",
            "Transfer-Encoding" if coded else "Content-Length",
            "give parameters in the address, as GET /openapi.json describes them",
            _CLOSE,
        )
    size = len(scope["raw_path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in headers.raw)
    if size > MOST_HEAD_BYTES:
        raise ApiError(
            431,
            f"address and headers are longer than {MOST_HEAD_BYTES // 1024} KiB",
            "headers",
            "send less",
            _CLOSE,
        )


def _is_link_to_page(scope: Scope, headers: Headers) -> bool:
    """Say whether somebody followed a link to a page: in a window of its own, to look at."""
    return (
        scope["method"] == "GET"
        and scope["path"] in _PAGES
        and headers.get("Sec-Fetch-Mode") == "navigate"
        and headers.get("Sec-Fetch-Dest") == "document"
    )


def _of_another_page(where: str) -> ApiError:
    return ApiError(
        403,
        "another page had a browser send this",
        where,
        "ask from the daemon's own page, or by a client that is no browser",
    )
