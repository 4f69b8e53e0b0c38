"""What is stored of a user: shown to them, and erased."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.store.personal_data import data_of
from foretime_sidecar.web.auth.callers import Caller, caller_of

Asker = Annotated[Caller, Depends(caller_of)]
Name = Annotated[str | None, Query(min_length=1, max_length=255)]


def add_personal(app: FastAPI, sidecar: Sidecar, clock: Callable[[], float]) -> None:
    """Add the paths to the application; each is described in ``docs/api.md``."""

    @app.get("/v1/me")
    def me(caller: Asker, user: Name = None) -> dict[str, Any]:
        """Give all that is stored of the caller."""
        name = _whose(caller, user)
        with sidecar.lock:
            learned = sidecar.learner.describe(user=name)
            forgotten_at = sidecar.store.forgotten_at(name)
        return {
            "user": name,
            **data_of(sidecar.store, name),
            "learned": [dataclasses.asdict(history) for history in learned],
            "forgotten_at": forgotten_at,
        }

    @app.post("/v1/me/forget")
    def forget(caller: Asker, user: Name = None) -> dict[str, Any]:
        """Erase all that is stored of the caller."""
        name, now = _whose(caller, user), math.floor(clock())
        erased = sidecar.forget(name, now)
        return {"user": name, "erased": erased, "forgotten_at": now}


def _whose(caller: Caller, user: str | None) -> str:
    """Give whose data it is about: the caller's own, or by right somebody's."""
    found = caller.may_see(user)
    return caller.named() if found is None else found
