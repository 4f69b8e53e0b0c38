"""Says which native core is tested (under `make sanitize` the sanitized one); any policy."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
from foretime_sim import _core
from foretime_sim.policies.families import FAMILIES, Backfill, Compression, with_settings
from foretime_sim.policies.guard import parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import IN_STEPS, Correction, EventOrder, Policy, Roles
from hypothesis import strategies as st

from tests.support.real_logs import Load, read_workload
from tests.support.scheduling_intervals import intervals


def pytest_report_header() -> str:
    kind = "sanitized" if _core.sanitized else "plain"
    return f"native core: {kind}, {_core.__file__}"


@pytest.fixture
def load(trace: Callable[[str], Path]) -> Load:
    return lambda log: read_workload(trace(f"{log}.swf.gz"))


class _InterruptedError(Exception):
    pass


@pytest.fixture
def soon_interrupted() -> Iterator[type[Exception]]:
    """What a signal's handler raises a fifth of a second from now."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise _InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    yield _InterruptedError
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def pytest_collection_finish() -> None:
    if os.environ.get("FORETIME_SANITIZED") == "1" and not _core.sanitized:
        pytest.exit(f"FORETIME_SANITIZED=1, but {_core.__file__} is not sanitized", returncode=2)


@st.composite
def _policies(draw: st.DrawFn) -> Policy:
    backfill = draw(st.sampled_from([b for b in FAMILIES.values() if b is not Backfill.SLACK]))
    depth, compression, guard_s = 1, Compression.RESERVATION_ORDER, None
    if backfill in (Backfill.EASY, Backfill.EASY_SJBF):
        depth = draw(st.integers(1, 3))
    if backfill is Backfill.CONSERVATIVE:
        compression = draw(st.sampled_from(list(Compression)))
    if backfill in (Backfill.NONE, Backfill.EASY, Backfill.EASY_SJBF) and depth == 1:
        guard_s = draw(st.none() | st.integers(0, 60))
    event_order = draw(st.sampled_from(list(EventOrder)))
    plans_more = depth > 1 or backfill in (Backfill.CONSERVATIVE, Backfill.PLANNING)
    interval_s = draw(intervals(event_order, plans_more=plans_more))
    correction = draw(st.sampled_from(list(Correction)))
    steps = draw(st.none() | st.integers(1, 3)) if correction in IN_STEPS else None
    return Policy(
        draw(st.sampled_from(list(Order))),
        with_settings(backfill, depth=depth, compression=compression, guard=parse_guard(guard_s)),
        correction,
        roles=draw(st.builds(Roles, st.booleans(), st.booleans(), st.booleans())),
        event_order=event_order,
        scheduling_interval_s=interval_s,
        correction_steps=steps,
    )


@pytest.fixture(scope="session")
def any_policy() -> st.SearchStrategy[Policy]:
    """Every policy that the engine has, but for slack: snapshots do not know its promises."""
    return _policies()
