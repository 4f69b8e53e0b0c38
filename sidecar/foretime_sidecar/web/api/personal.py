"""What is stored of a user: shown to them, and erased."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, cast

from fastapi import Depends, FastAPI

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.store.personal_data import data_of
from foretime_sidecar.web.api.answer_types import ForgetAnswer, PersonalAnswer
from foretime_sidecar.web.api.described_answers import answers
from foretime_sidecar.web.api.parameters import User
from foretime_sidecar.web.auth.callers import Caller, caller_of

Asker = Annotated[Caller, Depends(caller_of)]


def add_personal(app: FastAPI, sidecar: Sidecar, clock: Callable[[], float]) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""

    @app.get("/v1/me", **answers(PersonalAnswer))
    def me(caller: Asker, user: User = None) -> PersonalAnswer:
        """Give all that is stored of the caller."""
        name = _whose(caller, user)
        with sidecar.lock:
            learned = sidecar.learner.describe(user=name)
            forgotten_at = sidecar.store.forgotten_at(name)
        stored = data_of(sidecar.store, name)
        answer = {"user": name, **stored, "learned": learned, "forgotten_at": forgotten_at}
        return cast(PersonalAnswer, answer)  # its tables are those of the store

    @app.post("/v1/me/forget", **answers(ForgetAnswer))
    def forget(caller: Asker, user: User = None) -> ForgetAnswer:
        """Erase all that is stored of the caller."""
        name, now = _whose(caller, user), math.floor(clock())
        erased = sidecar.forget(name, now)
        return {"user": name, "erased": erased, "forgotten_at": now}


def _whose(caller: Caller, user: str | None) -> str:
    """Give whose data it is about: the caller's own, or by right somebody's."""
    found = caller.may_see(user)
    return caller.named() if found is None else found
