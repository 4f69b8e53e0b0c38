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
from foretime_sim.sites.slurm.limits import Association, Limits
from foretime_sim.sites.slurm.priority import SlurmPriority
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


FAIR = SlurmSite(
    Machine.flat(PROCESSORS),
    priority=SlurmPriority(
        weight_fair_share=1000, weight_age=100, max_age_s=3600, decay_half_life_s=3600
    ),
    associations=(
        Association("root"),
        Association("lab", parent="root"),
        *(
            Association("lab", user=f"user{number}", limits=Limits(max_jobs=number or None))
            for number in range(3)
        ),
    ),
    enforced=frozenset({"associations", "limits"}),
)
"""One user may have a job at a time, and one two."""


@settings(deadline=None)
@given(JOBS, JOBS, st.integers(0, 3000), st.integers(1, 3000))
def test_it_goes_on_as_the_engine_that_it_was_taken_of(
    jobs: list[tuple[int, int, int]], later: list[tuple[int, int, int]], at: int, more: int
) -> None:
    """Also with jobs that come later, and if it is taken of one that was taken of one."""
    policy = Policy(backfill=Slurm(FAIR))

    def submit(engine: Engine, jobs: list[tuple[int, int, int]], since: int) -> list[int]:
        return [
            engine.submit(
                since + submit_time, processors, runtime, 2 * runtime,
                user=f"user{runtime % 3}", project="lab",
            )
            for submit_time, processors, runtime in sorted(jobs)
        ]  # fmt: skip

    whole = Engine(PROCESSORS, policy)
    in_whole = submit(whole, jobs, 0)
    taken, index = whole, np.array(in_whole)
    for time, come in ((at, later), (at + more, jobs)):
        whole.advance(time)
        if taken is not whole:
            taken.advance(time)
        snapshot = Snapshot.of(taken)
        assert snapshot.engine_index is not None
        runtimes = np.array(
            [taken.job(job).actual_runtime for job in snapshot.engine_index.tolist()], np.int64
        )
        before = dict(zip(index.tolist(), in_whole, strict=True))
        taken, index = begun_engine(snapshot, policy, runtimes)
        in_whole = [before[job] for job in snapshot.engine_index.tolist()]
        in_whole += submit(whole, come, time)
        index = np.concatenate([index, submit(taken, come, time)])
    whole.finish()
    taken.finish()
    assert [taken.started_at(job) for job in index.tolist()] == [
        whole.started_at(job) for job in in_whole
    ]


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


def test_backfill_looks_again_once_a_job_is_withdrawn() -> None:
    """The third would end after the second can start, and until then nothing else happens."""
    engine = Engine(PROCESSORS, POLICY)
    asked = ((0, 3, 20_000), (10, 6, 600), (20, 3, 30_000))
    _, second, third = (
        engine.submit(submit_time, processors, runtime, runtime)
        for submit_time, processors, runtime in asked
    )
    engine.advance(3_600)
    assert engine.job(third).state == "pending"
    engine.cancel(second)
    engine.advance(3_631)
    assert engine.job(third).state == "running"


def test_what_is_no_sites_slurm_is_refused() -> None:
    snapshot, runtimes = a_moment([(0, 1, 10)], 0)
    with pytest.raises(InputError, match="no site's Slurm"):
        begun_engine(snapshot, Policy(), runtimes)
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        begun_engine(snapshot, POLICY, np.array([1, 2, 3]))
