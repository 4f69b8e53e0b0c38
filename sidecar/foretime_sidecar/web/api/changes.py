"""What lets a request change anything: the caller's own token, which no other page can send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Request

from foretime_sidecar.settings.daemon_address import TOKEN_HEADER, TOKEN_PATH
from foretime_sidecar.web.api.answer_types import TokenAnswer
from foretime_sidecar.web.api.described_answers import answers
from foretime_sidecar.web.auth.callers import SHOW_WHO_YOU_ARE, ApiError, Caller, caller_of
from foretime_sidecar.web.auth.change_tokens import VALID_S, ChangeTokens

Asker = Annotated[Caller, Depends(caller_of)]
_CHANGE_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})


def add_change_token(app: FastAPI, tokens: ChangeTokens) -> None:
    """Add the path to the application; it is described in ``docs/api.md``."""

    @app.get(TOKEN_PATH, **answers(TokenAnswer))
    def token(caller: Asker) -> TokenAnswer:
        """Give the token that a request must show if it changes anything."""
        return {"token": tokens.make(_known(caller)), "valid_s": VALID_S}


def refuse_without_token(tokens: ChangeTokens) -> Callable[[Request, Caller], Awaitable[None]]:
    """Make the FastAPI dependency of every path that refuses changes without a token."""

    async def check(request: Request, caller: Asker) -> None:
        if request.method in _CHANGE_NOTHING:
            return
        who, shown = _known(caller), request.headers.getlist(TOKEN_HEADER)
        fault = tokens.fault(shown[0], who) if len(shown) == 1 else "one token is needed"
        if fault is not None:
            raise ApiError(
                403,
                f"nothing is changed: {fault}",
                TOKEN_HEADER,
                f"send what GET {TOKEN_PATH} has just answered in the header {TOKEN_HEADER}",
            )

    return check


def _known(caller: Caller) -> str:
    if caller.identity is not None:
        return caller.identity.who
    raise ApiError(
        403,
        "this connection does not tell who you are, so nothing can be changed over it",
        "user",
        SHOW_WHO_YOU_ARE,
    )
