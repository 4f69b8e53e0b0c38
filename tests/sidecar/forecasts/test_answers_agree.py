"""No answer contradicts itself: all kinds of answers, on random queues."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.families import family_named
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = 1_700_000_000
ROOT = Caller(Identity("munge", "root", 0), operator=True)
TOLD_BOUNDS = ("0.5", "0.75", "0.9", "0.95")


def contradictions(answer: dict[str, Any]) -> list[str]:
    """Say in what an answer of a job that waits contradicts itself."""
    wait_s, end_s, plan_s = answer["wait_s"], answer["end_s"], answer["planned_wait_s"]
    if wait_s is None:
        return [] if answer["starts_now"] is answer["end_s"] is None else ["times without a wait"]
    found = []
    waits, ends = [wait_s[each] for each in TOLD_BOUNDS], [end_s[each] for each in TOLD_BOUNDS]
    if answer["likely_wait_s"] != waits[0] or any(a > b for a, b in pairwise(waits)):
        found.append("bounds of the start fall")
    if any(a > b for a, b in pairwise(ends)) or any(
        a < b for a, b in zip(ends, waits, strict=True)
    ):
        found.append("an end before its start")
    longest_s = answer["requested_time_s"] + 1
    if any(end > wait + longest_s for end, wait in zip(ends, waits, strict=True)):
        found.append("an end later than its limit lets it")
    made_at = answer["made_at"]
    for name, seconds in (("start_time", waits), ("end_time", ends)):
        if [answer[name][each] - made_at for each in TOLD_BOUNDS] != seconds:
            found.append(f"{name} and its seconds differ")
    now, likely_now = answer["starts_now"], waits[0] <= NOW_S
    if (now > 0.5 and not likely_now) or (now < 0.5 and likely_now):
        found.append("the probability of a start now and the likely wait differ")
    text = answer["reason"]["text"]
    if text.startswith("can start at once") != likely_now and answer["reason"]["code"] in (
        *("None", "Priority", "Resources"),
    ):
        found.append(f"{text!r} beside a likely wait of {waits[0]} s")
    if text.startswith("there is room") and plan_s > NOW_S:
        found.append(f"{text!r} beside a plan of {plan_s} s")
    bound = answer["start_no_later_than"]
    if bound is not None and bound["wait_s"] < waits[-1]:
        found.append("a bound that was noted before the 95% bound")
    return found


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("starts_now", 0.9), ("likely_wait_s", 10), ("end_s", dict.fromkeys(TOLD_BOUNDS, 1))),
        ("requested_time_s", 299),
        *(("reason", {"code": "None", "text": "can start at once"}), ("wait_s", None)),
        *(("made_at", 7), ("start_no_later_than", {"wait_s": 100})),
    ],
)
def test_a_contradiction_is_found(field: str, value: object) -> None:
    """The check itself: an answer that agrees, and the same with one field changed."""
    waits = dict(zip(TOLD_BOUNDS, (600, 700, 800, 900), strict=True))
    ends = {level: wait + 301 for level, wait in waits.items()}
    answer = {
        "starts_now": 0.1,
        "likely_wait_s": 600,
        "wait_s": waits,
        "end_s": ends,
        "planned_wait_s": 700,
        "requested_time_s": 3600,
        "made_at": 0,
        "start_time": waits,
        "end_time": ends,
        "reason": {
            "code": "Resources",
            "text": "waits for 1 processor; no job ahead in the queue",
        },
        "start_no_later_than": None,
    }
    assert contradictions(answer) == []
    assert contradictions(answer | {field: value})


@settings(deadline=None, max_examples=8)
@given(
    st.integers(0, 2**32),
    st.sampled_from([Order.FCFS, Order.SJF, Order.WFP]),
    st.sampled_from(["none", "easy", "conservative", "first-fit"]),
    st.booleans(),
)
def test_no_answer_contradicts_itself(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    order: Order,
    backfill: str,
    learned: bool,
) -> None:
    rng = random.Random(seed)
    policy = Policy(order, family_named(backfill))
    slurm = MockSlurm(SlurmSetup(32), policy, None, NOW)
    clock = NOW
    folder = tmp_path_factory.mktemp("table")
    made = Settings.model_validate(
        {
            "forecast": {"order": order.value, "backfill": backfill},
            "table": {"path": str(folder / "table")},
        }
    )
    sidecar = Sidecar(made, SlurmCommands(slurm.run), Store(":memory:"), forecasts=True)
    assert sidecar.forecasting is not None

    def submit() -> None:
        limit = rng.randint(1, 300) * 60
        size, user = rng.choice([1, 2, 4, 8, 16, 32]), f"u{rng.randint(1, 3)}"
        slurm.submit(Submission(user, "p", None, size, limit, rng.randint(1, limit)))

    for number in range(40 if learned else 12):
        clock += rng.randint(1, 600)
        slurm.advance(clock)
        submit()
        if learned and number % 8 == 0:
            sidecar.poll(clock)
            sidecar.look(clock)
            sidecar.forecasting.refresh(maps=False)
    sidecar.look(clock)
    sidecar.forecasting.refresh(maps=False)
    board = sidecar.forecasting.board
    assert board is not None
    app = create_app(sidecar, Health(NOW), lambda: clock)
    app.dependency_overrides[caller_of] = lambda: ROOT
    client = TestClient(app, base_url="http://localhost")
    pending = client.get("/v1/jobs/forecasts").json()["jobs"]
    answers = [client.get(f"/v1/jobs/{each['job_id']}/forecast").json() for each in pending]
    for size, minutes in ((1, 1), (32, 600)):
        question = f"processors={size}&time={minutes}&user=u1&scales=1"
        answers.append(client.get(f"/v1/forecast?{question}").json())
        advised = client.get(f"/v1/advice?{question}").json()
        answers += [advised["asked"], *(each["forecast"] for each in advised["alternatives"])]
        if advised["cheapest"] is not None:
            change = advised["alternatives"][advised["cheapest"]]
            assert change["done_sooner_s"] >= 60
            ends = [each["end_s"]["0.95"] for each in (change["forecast"], advised["asked"])]
            assert ends[0] <= ends[1]
    assert [found for answer in answers if (found := contradictions(answer))] == []
    # Nobody goes before the first in a queue by submission: its plan is a bound, and is kept.
    for row in board.rows:
        if order is Order.FCFS and backfill != "first-fit" and row.ahead == 0:
            assert row.waits is not None
            assert row.waits.planned_s is not None
            assert row.waits.wait_s[-1] <= row.waits.planned_s
            for _ in range(30):
                clock += rng.randint(1, 600)
                slurm.advance(clock)
                submit()
            slurm.finish()
            start = slurm.schedule().start_time[int(row.request.job_id) - 1]
            assert start <= board.made_at + row.waits.planned_s
