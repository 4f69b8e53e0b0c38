"""A replay against what it must equal: the baseline, plain Python, the engine, and itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.accuracy.accuracy import AccuracyModel, AccuracySettings, Scheme
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob
from foretime_sidecar.replays.replay import SCHEMES, oracle_share
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics, ReplaySchedule
from foretime_sidecar.store.store import Durability, Store
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import check as check_schedule
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import FAMILIES, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.scores.comparison import compare

from tests.support.replay_runs import (
    BEYOND_REACH,
    DAY_S,
    FEW_JOBS,
    PAPER,
    WORKLOAD,
    expected_scheduled_times,
    made_workload,
    plain_run,
    replay_of,
    run,
    same_schedule,
    whole_minutes,
)

# Nothing to go by, nothing changed ----------------------------------------------------------------


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("order", [Order.FCFS, Order.WFP])
def test_without_enough_history_the_schedule_is_the_baseline(
    mechanism: Mechanism, order: Order
) -> None:
    task = replay_of(
        mechanism, BEYOND_REACH, policy=Policy(backfill=Easy(guard=Guard(3600)), order=order)
    )
    baseline, adjusted = run(task)
    same_schedule(baseline, adjusted)
    np.testing.assert_array_equal(adjusted.scheduled_time, WORKLOAD.requested_time)


# An independent second way ------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", Scheme)
@pytest.mark.parametrize(
    "rule",
    [FEW_JOBS, PAPER, replace(FEW_JOBS, window_s=5 * DAY_S), replace(PAPER, half_life_s=DAY_S)],
    ids=["production", "tang2010", "window", "half-life"],
)
def test_every_scheduled_time_is_the_models(rule: AccuracySettings, scheme: Scheme) -> None:
    _, adjusted = run(replay_of(rule=rule, scheme=scheme.value))
    expected = expected_scheduled_times(WORKLOAD, adjusted, rule, scheme)
    assert adjusted.scheduled_time.tolist() == expected
    shortened = adjusted.scheduled_time < WORKLOAD.requested_time
    assert shortened.mean() > 0.04, "or the test says nothing"


@pytest.mark.parametrize("mechanism", Mechanism)
def test_the_engine_given_the_same_times_gives_the_same_schedule(mechanism: Mechanism) -> None:
    # PBS's hook gives a job that has waited for long another t_sched as it starts: not here.
    task = replay_of(mechanism, readjust_after_s=1_000_000_000)
    _, adjusted = run(task)
    plain = simulate(WORKLOAD, task.policy, adjusted.scheduled_time, check=True)
    same_schedule(adjusted, ReplaySchedule.of(WORKLOAD, plain, adjusted.scheduled_time))


@pytest.mark.parametrize("lua_version", ["5.1", "5.2", "5.3", "5.4"])
def test_every_lua_gives_the_same(lua_version: str) -> None:
    workload = WORKLOAD.head(500)
    _, adjusted = run(replay_of(lua_version=lua_version), workload)
    expected = expected_scheduled_times(workload, adjusted, FEW_JOBS)
    assert adjusted.scheduled_time.tolist() == expected


# Nothing is learned from the future ---------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2, 50, 333, 900])
def test_the_jobs_of_a_log_do_not_know_how_it_goes_on(jobs: int) -> None:
    _, whole = plain_run()
    _, first = run(replay_of(), WORKLOAD.head(jobs))
    np.testing.assert_array_equal(first.scheduled_time, whole.scheduled_time[:jobs])


def test_history_that_ends_after_the_log_begins_is_not_learned() -> None:
    past, rest = WORKLOAD.split(20 * DAY_S)
    # Had the last 30 days' worth of waits been in the queue, nothing would have ended in time.
    waits = np.ma.MaskedArray(np.full(len(past), 30 * DAY_S))
    with pytest.raises(InputError, match="none of its jobs had ended"):
        run(replay_of(history=replace(past, logged_wait=waits), learn=False), rest)
    # Half of it in time: the same as that half alone.
    begin = int(rest.submit_time[0])
    in_time = past.submit_time + past.actual_runtime <= begin
    in_time[:200] = False
    waits = np.ma.MaskedArray(np.where(in_time, 0, 30 * DAY_S))
    _, late = run(replay_of(history=replace(past, logged_wait=waits), learn=False), rest)
    _, half = run(replay_of(history=past.take(in_time), learn=False), rest)
    np.testing.assert_array_equal(late.scheduled_time, half.scheduled_time)


def test_what_is_not_kept_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a replay brings the same."""
    opened: list[str] = []

    class Noted(Store):
        def __init__(self, path: Path | str, durability: Durability = "full") -> None:
            opened.append(str(path))
            super().__init__(path, durability)

    monkeypatch.setattr("foretime_sidecar.replays.replay.Store", Noted)
    kept = run(replay_of(state_dir=tmp_path), WORKLOAD.head(50))[1]
    assert (run(replay_of(), WORKLOAD.head(50))[1].start_time == kept.start_time).all()
    assert opened == [str(tmp_path / "repeat-0" / "foretime.sqlite"), ":memory:"]


def test_a_used_state_dir_is_refused(tmp_path: Path) -> None:
    run(replay_of(state_dir=tmp_path), WORKLOAD.head(20))
    with pytest.raises(InputError, match="is there already"):
        run(replay_of(state_dir=tmp_path), WORKLOAD.head(20))
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="can't make it: Not a directory"):
        run(replay_of(state_dir=tmp_path / "file"), WORKLOAD.head(20))


# History, oracles, repeats ------------------------------------------------------------------------


def test_history_alone_decides_to_the_end_of_a_long_log() -> None:
    workload = made_workload(days=120)
    past, rest = workload.split(30 * DAY_S)
    _, adjusted = run(replay_of(rule=PAPER, history=past, learn=False), rest)
    begin = int(rest.submit_time[0])
    model = AccuracyModel(PAPER)
    for job in np.argsort(past.submit_time + past.actual_runtime, kind="stable").tolist():
        start = int(past.submit_time[job])
        runtime = int(past.actual_runtime[job])
        if start + runtime <= begin:
            ending = past.ending(job) or Ending.COMPLETED
            model.learn_one(
                FinishedJob(past.job_request(job), start, start + runtime, runtime, ending)
            )
    for job in range(len(rest)):
        request = rest.job_request(job)
        request = replace(request, requested_time=whole_minutes(request.requested_time))
        planned = min(model.scheduled_time(request), int(rest.requested_time[job]))
        assert adjusted.scheduled_time[job] == planned
    last_month = rest.submit_time > 90 * DAY_S
    assert (adjusted.scheduled_time < rest.requested_time)[last_month].any()


def test_history_adds_to_what_is_learned_on_the_way() -> None:
    past, rest = WORKLOAD.split(20 * DAY_S)
    alone = run(replay_of(), rest)[1]
    with_history = run(replay_of(history=past), rest)[1]
    early = rest.submit_time < 21 * DAY_S
    shortened_alone = alone.scheduled_time < rest.requested_time
    shortened = with_history.scheduled_time < rest.requested_time
    assert shortened[early].sum() > shortened_alone[early].sum()


def test_oracles_are_given_to_the_engine_as_they_are() -> None:
    requested, actual = WORKLOAD.requested_time, WORKLOAD.actual_runtime
    baseline, same = run(replay_of(scheme="requested"))
    same_schedule(baseline, same)
    _, perfect = run(replay_of(scheme="actual"))
    np.testing.assert_array_equal(perfect.scheduled_time, np.minimum(actual, requested))
    assert not perfect.outlived.any()
    _, half = run(replay_of(scheme="blend:0.5"))
    np.testing.assert_array_equal(half.scheduled_time, -(-(actual + requested) // 2))
    statistics = replay_of(scheme="actual")(WORKLOAD, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.hook is None
    for share, scheme in ((0, "requested"), (1, "actual"), (0, "blend:0"), (0.25, "blend:0.25")):
        assert oracle_share(scheme) == share


@pytest.mark.parametrize(
    "scheme", ["", "user!", "blend", "blend:", "blend:2", "blend:-1", "blend:nan", "blend:x", "a:b"]
)
def test_unknown_schemes_name_the_valid_ones(scheme: str) -> None:
    with pytest.raises(InputError, match="unknown scheme") as caught:
        oracle_share(scheme)
    for valid in SCHEMES:
        assert valid in str(caught.value)


def test_repeats_depend_on_the_seed_alone() -> None:
    workload = WORKLOAD.head(300)

    def waits(seed: int) -> list[list[int]]:
        comparison = compare(workload, replay_of(), repeats=2, seed=seed)
        found = []
        for scores in comparison.repeats:
            assert isinstance(scores.statistics, AdjustedStatistics)
            found.append(scores.statistics.wait.tolist())
        return found

    one, again, other = waits(1), waits(1), waits(2)
    assert one == again
    assert one != other
    assert one[0] != one[1]


# Every order and backfilling ----------------------------------------------------------------------


@pytest.mark.parametrize("order", [order for order in Order if order is not Order.PRIORITY])
@pytest.mark.parametrize("backfill", list(FAMILIES.values()))
def test_every_order_runs_and_matches_the_engine(order: Order, backfill: Backfilling) -> None:
    workload = WORKLOAD.head(400)
    unguarded = Policy(order=order, backfill=backfill)
    guard = Guard(6 * 3600) if backfill.head_only else None
    task = replay_of(policy=unguarded.guarded(guard))
    _, adjusted = run(task, workload)
    plain = simulate(workload, task.policy, adjusted.scheduled_time)
    check_schedule(workload, plain, workload.requested_time)
    same_schedule(adjusted, ReplaySchedule.of(workload, plain, adjusted.scheduled_time))


@pytest.mark.traces
def test_on_a_real_log_fewer_jobs_outlive_the_production_rules_times(
    trace: Callable[[str], Path],
) -> None:
    log = read_log(trace("KTH-SP2-1996-2.1-cln.swf.gz"))
    workload = workload_of_log(log)[0].head(3000)
    rule = AccuracySettings.production()
    _, adjusted = run(replay_of(rule=rule, scheme="user"), workload)
    begin = workload.unix_start_time
    assert begin is not None
    assert (adjusted.scheduled_time < workload.requested_time).any()
    tang = AccuracySettings.tang2010()
    _, paper = run(replay_of(rule=tang, scheme="user"), workload)
    assert paper.outlived.sum() > adjusted.outlived.sum()
