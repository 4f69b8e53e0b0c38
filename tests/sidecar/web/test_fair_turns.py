"""Many who have the queue run forward at a time: all in turn, and nothing else waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.forecast_answer.forecast import ForecastAnswer
from foretime_sidecar.web.api.forecasts import ForecastDesk
from foretime_sidecar.web.auth.callers import Caller
from foretime_sidecar.web.auth.identity import Identity, name_of
from foretime_sidecar.web.connections.fair_turns import FairTurns
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy

from tests.support.processes.raw_http import connected, exchange, head, read_all, statuses
from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000
CROWD = 60  # more than the daemon has threads


def caller(name: str, *, operator: bool = False) -> Caller:
    return Caller(Identity("proxy", name), operator)


def test_one_piece_of_each_caller_at_a_time_in_the_order_asked() -> None:
    at_work: Counter[str] = Counter()
    most: Counter[str] = Counter()
    begun: list[str] = []
    changed = threading.Condition()

    def work(name: str) -> str:
        with changed:
            begun.append(name)
            number = len(begun)
            at_work.update((name, "all"))
            most[name] = max(most[name], at_work[name])
            most["all"] = max(most["all"], at_work["all"])
            changed.notify_all()
            # No thread that is slow to begin or to end comes after others' next pieces.
            assert changed.wait_for(
                lambda: (
                    (len(begun) > number or len(set(begun)) == 12)
                    and len(begun) - at_work["all"] >= number - 1
                ),
                60,
            )
            at_work.subtract((name, "all"))
            changed.notify_all()
        return name

    async def asked() -> list[str]:
        turns = FairTurns()
        names = [*["ann"] * 30, *(f"u{number}" for number in range(10)), "bob"]
        return await asyncio.gather(
            *(turns.take(caller(name), partial(work, name)) for name in names)
        )

    assert len(asyncio.run(asked())) == 41
    assert most["ann"] == 1
    assert 2 <= most["all"] <= 4
    # Whoever has asked for much does not have the others wait.
    assert len(set(begun[:15])) == 12


def test_what_fails_gives_its_turn_to_the_next() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def asked() -> list[Any]:
        turns = FairTurns()
        work = [fail, fail, lambda: "done"] * 3
        return await asyncio.gather(
            *(turns.take(caller("ann"), each) for each in work), return_exceptions=True
        )

    found = asyncio.run(asked())
    assert [each for each in found if each == "done"] == ["done"] * 3


def test_nothing_else_waits_for_a_slow_forecast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    answered = ForecastDesk.answer

    def slow(self: ForecastDesk, question: Any, caller: Caller) -> ForecastAnswer:
        if not caller.sees_everybody:
            let_go.wait(120)
        return answered(self, question, caller)

    monkeypatch.setattr(ForecastDesk, "answer", slow)
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    api = {"proxy_users": [name_of(os.geteuid())], "operators": ["olga"]}

    def asked(path: str, user: str) -> bytes:
        return head(path, f"X-Remote-User: {user}", "Connection: close")

    with MockSite(tmp_path, slurm, api=api) as site, contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(connected(site.socket_path)) for _ in range(CROWD)]
        for number, connection in enumerate(crowd):
            connection.sendall(asked("/v1/forecast?ntasks=1&time=60", f"u{number}"))
        try:
            for path, user in (
                ("/healthz", "ann"),
                ("/metrics", "ann"),
                ("/v1/me", "ann"),
                ("/v1/forecast?ntasks=1&time=60", "olga"),
            ):
                assert statuses(exchange(site.socket_path, asked(path, user))) == [200]
        finally:
            let_go.set()
        assert {tuple(statuses(read_all(connection))) for connection in crowd} == {(200,)}
