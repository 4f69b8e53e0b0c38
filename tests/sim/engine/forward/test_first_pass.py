"""Who one pass starts, and when it plans the others to start.

Forward runs start the same jobs at once if nothing that runs ever ends; and where every job is
planned and runs as long as it may, they start all as the pass has planned them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_estimators.time_units import LONGEST_S
from foretime_sim.engine.forward import first_pass, first_plan, forward_runs
from foretime_sim.engine.schedule import NEVER, StartedBy
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill, Candidates, Easy, FirstFit, Planning
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st

_FAMILIES = (Easy(), Easy(candidates=Candidates.WSPT), Easy(depth=3), FirstFit(), Planning())


@given(
    backfill=st.sampled_from(_FAMILIES),
    on_nodes=st.booleans(),
    jobs=st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 6), st.integers(1, 90), st.integers(1, 90)),
        min_size=1,
        max_size=10,
    ),
    later=st.integers(0, 40),
)
def test_it_starts_who_forward_runs_start_at_once(
    backfill: Backfilling, jobs: list[tuple[int, int, int, int]], later: int, *, on_nodes: bool
) -> None:
    policy = Policy(backfill=backfill)
    engine = Engine(6, policy, machine=Machine.flat(6) if on_nodes else None)
    for submit, processors, runtime, asked in sorted(jobs):
        engine.submit(submit, processors, runtime, asked)
    engine.advance(50 + later)
    snapshot = Snapshot.of(engine)
    started = first_pass(snapshot, policy)
    assert started.shape == (len(snapshot.pending),)
    for_ever = np.full((1, len(snapshot)), LONGEST_S, dtype=np.int64)
    starts = forward_runs(snapshot, policy, for_ever, threads=1)[0, len(snapshot.running) :]
    assert ((started > 0) == (starts == snapshot.now)).all()


@given(
    on_nodes=st.booleans(),
    jobs=st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 6), st.integers(1, 90), st.integers(1, 90)),
        min_size=1,
        max_size=14,
    ),
    later=st.integers(0, 40),
)
def test_it_plans_starts_as_forward_runs_make_them(
    jobs: list[tuple[int, int, int, int]], later: int, *, on_nodes: bool
) -> None:
    """Who is submitted later is planned behind all others, and not by this pass."""
    engine = Engine(6, Policy(), machine=Machine.flat(6) if on_nodes else None)
    for submit, processors, runtime, asked in sorted(jobs):
        engine.submit(submit, processors, runtime, asked)
    engine.advance(20 + later)
    snapshot = replace(Snapshot.of(engine), pass_due=True)
    conservative = Policy(backfill=Backfill.CONSERVATIVE)
    planned = first_plan(snapshot, conservative)
    asked_for = [snapshot.running.requested_time, snapshot.pending.requested_time]
    longest = np.concatenate(asked_for)[None, :]
    starts = forward_runs(snapshot, conservative, longest, threads=1)[0, len(snapshot.running) :]
    here = snapshot.pending.joins_at() <= snapshot.now
    assert (planned[here] == starts[here]).all()
    assert (planned[~here] == NEVER).all()


def test_it_says_how_they_start() -> None:
    engine = Engine(8, Policy())
    for processors, asked in ((6, 600), (7, 600), (1, 9000), (1, 300), (1, 300)):
        engine.submit(0, processors, 100, asked)
    started = first_pass(Snapshot.of(engine), Policy())
    assert started.tolist() == [
        StartedBy.HEAD, 0, StartedBy.OUT_OF_ORDER, StartedBy.BACKFILLED, 0
    ]  # fmt: skip


def test_without_waiting_jobs_nobody_starts() -> None:
    assert first_pass(Snapshot.of(Engine(4)), Policy()).tolist() == []
