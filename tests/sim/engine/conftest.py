"""Says which native core is tested (under `make sanitize` the sanitized one); any policy."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
from foretime_sim import _core
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.families import FAMILIES, Compression, has_setting, with_settings
from foretime_sim.policies.guard import parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import IN_STEPS, Correction, EventOrder, Policy, Roles
from hypothesis import strategies as st

from tests.support.workloads.real_logs import Load, read_workload
from tests.support.workloads.scheduling_intervals import intervals


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
    knowing_no_past = [b for b in FAMILIES.values() if b.refusal(Place.FORWARD) is None]
    backfill = draw(st.sampled_from(knowing_no_past))
    if has_setting(backfill, "depth"):
        backfill = with_settings(backfill, depth=draw(st.integers(1, 3)))
    if has_setting(backfill, "compression"):
        backfill = with_settings(backfill, compression=draw(st.sampled_from(list(Compression))))
    if backfill.head_only:
        backfill = backfill.guarded(parse_guard(draw(st.none() | st.integers(0, 60))))
    event_order = draw(st.sampled_from(list(EventOrder)))
    interval_s = draw(intervals(event_order, as_planned=backfill.starts_as_planned))
    correction = draw(st.sampled_from(list(Correction)))
    steps = draw(st.none() | st.integers(1, 3)) if correction in IN_STEPS else None
    return Policy(
        draw(st.sampled_from(list(Order))),
        backfill,
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
