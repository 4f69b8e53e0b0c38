"""Who asks the daemon, and what an answer looks like that is not what was asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from fastapi import Request
from fastapi.responses import JSONResponse

from foretime_sidecar.peer import Peer


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
    """Who asks, as the kernel says; nobody over TCP."""

    peer: Peer | None

    @property
    def sees_everybody(self) -> bool:
        """Whether any history may be shown."""
        return self.peer is not None and self.peer.privileged

    @property
    def whom(self) -> str:
        """What the rate limit counts by: a person, or everybody whom nothing tells apart."""
        if self.peer is None:
            return "whoever is unknown"
        return self.peer.user or f"uid {self.peer.uid}"

    def sees_job(self, user: str | None) -> bool:
        """Whether a job of ``user``'s may be shown."""
        return self.sees_everybody or (
            user is not None and self.peer is not None and self.peer.user == user
        )

    def may_see(self, user: str | None) -> str | None:
        """Give whose history to show: the caller's own unless ``user`` names another by right."""
        own = None if self.peer is None else self.peer.user
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


def caller_of(request: Request) -> Caller:
    """Give who asks, from the state that `foretime_sidecar.peer.PeerProtocol` notes."""
    return Caller(getattr(request.state, "peer", None))
