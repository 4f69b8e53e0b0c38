"""A replay protects jobs that are late over their start without Foretime, as the daemon does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from foretime_estimators.arrays import Int64Array
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sidecar.settings.beside_settings import BesideSettings
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.store.plain_starts import PlainStarts
from foretime_sidecar.store.store import Store
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.scheduler_defaults import default_policy
from foretime_sim.workloads.resource_requests import with_machine

from tests.support.replay_runs import made_workload

MACHINE = Machine.flat(32)
# More than the machine can do, for four days.
WORKLOAD = with_machine(replace(made_workload(300, 4, seed=5), array_ids=None), MACHINE)
PLAIN = BesideSettings(most_late_s=0, most_behind_s=0)
LATE = BesideSettings(most_late_s=900, most_behind_s=0)
BEHIND = BesideSettings(most_late_s=900, most_behind_s=1)


def replayed(
    beside: BesideSettings, policy: Policy | None = None, state_dir: Path | None = None
) -> tuple[Int64Array, int]:
    """Give starts, and how often a job was raised."""
    task = Replay(
        policy or default_policy("slurm", WORKLOAD),
        scheme="requested",
        queue_order=QueueOrderSettings(order="start-now"),
        look_interval_s=30,
        plain_beside=beside,
        state_dir=state_dir,
        check=True,
    )
    run = task(WORKLOAD, 0)
    statistics = run.statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.ordering is not None
    return run.adjusted.start_time, statistics.ordering.raised


def test_late_jobs_are_protected_and_alone_raised_while_too_much_work_is_behind() -> None:
    usual, raised = replayed(PLAIN)
    protected, _ = replayed(LATE)
    bounded, seldom = replayed(BEHIND)
    assert (protected != usual).any()
    assert (bounded != protected).any()
    assert 0 < seldom < 0.7 * raised


def test_of_the_plain_scheduler_nothing_is_kept_which_nobody_reads(tmp_path: Path) -> None:
    replayed(LATE, state_dir=tmp_path)
    store = Store(tmp_path / "repeat-0" / "foretime.sqlite")
    rows = PlainStarts(store)
    assert (rows.days(), rows.open(), rows.judged(0)) == ([], [], [])
    store.close()


def test_where_no_plain_slurm_is_known_nothing_is_different() -> None:
    policy = Policy(backfill=Backfill.PLANNING)
    assert (replayed(BEHIND, policy)[0] == replayed(PLAIN, policy)[0]).all()
