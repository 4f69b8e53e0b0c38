"""Who asks the daemon, and what an answer looks like that is not what was asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from fastapi import Request
from fastapi.responses import JSONResponse
from foretime_estimators.jobs.errors import InputError, StateError
from starlette.concurrency import run_in_threadpool

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.web.auth.authenticate import Identities
from foretime_sidecar.web.auth.identity import Identity, IdentityError
from foretime_sidecar.web.auth.peer import Peer

# These tell nothing of anybody's jobs, and must be answered under any load.
SHOW_WHO_YOU_ARE = "ask through the daemon's unix socket, or show a token that it knows"
"""What to do about a connection that does not tell who asks."""

FOR_MONITORING = frozenset({"/healthz", "/metrics"})


class ApiError(Exception):
    """An answer other than what was asked for: what is wrong, where, and what to do."""

    def __init__(
        self,
        status: int,
        what: str,
        where: str,
        remedy: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.what = what
        self.where = where
        self.remedy = remedy
        self.headers = headers

    def response(self) -> JSONResponse:
        """Give it in the one shape that errors have."""
        error = {"what": self.what, "where": self.where, "remedy": self.remedy}
        return JSONResponse({"error": error}, self.status, self.headers)


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what they may see.

    Attributes
    ----------
    identity
        As `foretime_sidecar.web.auth.authenticate` found; ``None``: nobody is known.
    operator
        Whether the settings name them an operator.
    connection
        Uid of the process at the other end of a TCP connection, which is nobody's identity: others
        may speak through it.
    """

    identity: Identity | None
    operator: bool = False
    connection: int | None = None

    @property
    def user(self) -> str | None:
        """Login name; ``None`` if none is known."""
        return None if self.identity is None else self.identity.user

    @property
    def sees_everybody(self) -> bool:
        """Whether any history may be shown."""
        return self.identity is not None and (self.operator or self.identity.privileged)

    @property
    def whom(self) -> str:
        """What the rate limit counts by: a person, or everybody whom nothing tells apart."""
        if self.identity is not None:
            return self.identity.who
        return "whoever is unknown" if self.connection is None else f"uid {self.connection}"

    def sees_job(self, user: str | None) -> bool:
        """Whether a job of ``user``'s may be shown."""
        return self.sees_everybody or (user is not None and self.user == user)

    def may_see(self, user: str | None) -> str | None:
        """Give whose history to show: the caller's own unless ``user`` names another by right."""
        own = self.user
        if user is None or user == own:
            return own
        if self.sees_everybody:
            return user
        if own is None:
            raise ApiError(
                403,
                "this connection does not tell who you are, so no user's own history is shown",
                "user",
                "leave user out, or ask through the daemon's unix socket",
            )
        raise ApiError(
            403,
            f"you are {own!r} and may not see the history of {user!r}",
            "user",
            "leave user out",
        )

    def named(self) -> str:
        """Give the caller's name, which there must be.

        Raises
        ------
        ApiError
            403 if there is none.
        """
        if self.user is None:
            raise ApiError(
                403,
                "this connection does not tell who you are, so nothing of yours is shown",
                "user",
                SHOW_WHO_YOU_ARE,
            )
        return self.user


class Callers:
    """Tells who asks.

    Parameters
    ----------
    settings
        What is believed, and who is an operator.
    clock
        Epoch seconds.

    Raises
    ------
    InputError
        If a key or a secret can't be used.
    """

    def __init__(self, settings: ApiSettings, clock: Callable[[], float]) -> None:
        self._identities = Identities(settings, clock)
        self._operators = frozenset(settings.operators)

    def of(self, request: Request) -> Caller:
        """Give who asks.

        Raises
        ------
        ApiError
            401 if what is shown as proof is none.
        """
        # Noted by `foretime_sidecar.web.connections.peer_protocol.PeerProtocol`.
        peer: Peer | None = getattr(request.state, "peer", None)
        try:
            identity = self._identities.of(peer, request.headers)
        except IdentityError as error:
            raise ApiError(
                401, error.what, error.where, error.remedy, {"WWW-Authenticate": "Bearer"}
            ) from error
        except InputError as error:  # a key's file, which nobody who asks can mend
            raise StateError(str(error)) from error
        return Caller(
            identity,
            identity is not None and identity.user in self._operators,
            getattr(request.state, "owner", None) if peer is None else None,
        )


async def caller_of(request: Request) -> Caller:
    """Give who asks; a FastAPI dependency, worked out once in a request.

    Monitoring is not asked who it is, so it waits neither for munged nor for a directory of users.
    """
    if request.url.path in FOR_MONITORING:
        return Caller(None)
    callers: Callers = request.app.state.callers
    return await run_in_threadpool(callers.of, request)


def operators_only(caller: Caller) -> None:
    """Refuse whoever may not see everybody's.

    Raises
    ------
    ApiError
        403.
    """
    if caller.sees_everybody:
        return
    what, ask = "this is for administrators", "ask"
    if caller.user is None:
        what += ", and this connection does not tell who you are"
        ask = "ask through the daemon's unix socket"
    remedy = f"{ask} as root, as the daemon's own user or as one of api.operators"
    raise ApiError(403, what, "user", remedy)
