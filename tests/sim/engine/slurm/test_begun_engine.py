"""An engine that begins with a snapshot goes on as a forward run, and can be changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.begun_engine import begun_engine
from foretime_sim.engine.forward import forward_runs
from foretime_sim.engine.schedule import NEVER
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.site import SlurmSite
from hypothesis import given, settings
from hypothesis import strategies as st

PROCESSORS = 8
POLICY = Policy(backfill=Slurm(SlurmSite(Machine.flat(PROCESSORS))))
JOBS = st.lists(
    st.tuples(st.integers(0, 4000), st.integers(1, PROCESSORS), st.integers(1, 3000)),
    min_size=1,
    max_size=15,
)


def a_moment(jobs: list[tuple[int, int, int]], at: int) -> tuple[Snapshot, Int64Array]:
    """Give the queue at a time as a real one, with jobs to come, and each job's runtime."""
    engine = Engine(PROCESSORS, POLICY)
    for submit_time, processors, runtime in sorted(jobs):
        engine.submit(submit_time, processors, runtime, 2 * runtime)
    engine.advance(at)
    taken = Snapshot.of(engine)
    assert taken.engine_index is not None
    runtimes = [engine.job(index).actual_runtime for index in taken.engine_index.tolist()]
    told = tuple(ToldJob(user=f"user{column % 3}") for column in range(len(taken)))
    return replace(taken, slurm_notes=None, told=told), np.array(runtimes, dtype=np.int64)


@settings(deadline=None)
@given(JOBS, st.integers(0, 4000))
def test_it_goes_on_as_a_forward_run(jobs: list[tuple[int, int, int]], at: int) -> None:
    snapshot, runtimes = a_moment(jobs, at)
    expected = forward_runs(snapshot, POLICY, runtimes[None, :])[0]
    engine, index = begun_engine(snapshot, POLICY, runtimes)
    engine.finish()
    found = [engine.job(job).start_time for job in index.tolist()]
    assert [NEVER if start is None else start for start in found] == expected.tolist()


def test_a_job_can_be_withdrawn_and_another_raised() -> None:
    """All of the machine is busy; of three that wait the second is withdrawn, the third raised."""
    jobs = [(0, 8, 600), (10, 8, 100), (20, 8, 100), (30, 8, 100), (700, 8, 100)]
    snapshot, runtimes = a_moment(jobs, 60)
    engine, index = begun_engine(snapshot, POLICY, runtimes)
    first, second, third, later = index[1:].tolist()
    engine.cancel(second)
    engine.update(third, site_factor=1000)
    engine.advance(700)
    assert (engine.job(third).state, engine.job(first).state) == ("running", "pending")
    engine.cancel(later)
    engine.finish()
    assert [engine.job(job).state for job in (second, later)] == ["cancelled"] * 2
    assert engine.job(first).state == "finished"


def test_what_is_no_sites_slurm_is_refused() -> None:
    snapshot, runtimes = a_moment([(0, 1, 10)], 0)
    with pytest.raises(InputError, match="no site's Slurm"):
        begun_engine(snapshot, Policy(), runtimes)
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        begun_engine(snapshot, POLICY, np.array([1, 2, 3]))
