"""The order of the queue and the site factors for it: by hand, by properties, on the mock Slurm."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import JobChange, QueuedJob, QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.ordering.queue_order import Contender, contenders, site_factors
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import parse_settings
from foretime_sidecar.store.store import Store
from foretime_sim.engine.queue_places import score
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.reference.flat import Simulation
from foretime_sim.reference.simulated import ReferenceJob
from hypothesis import given
from hypothesis import strategies as st

from tests.support.slurm.ordered_slurm import Noting, factors_of, in_order, submission

NOW = 1_800_000_000
HOUR = 3600


def _job(
    job_id: str,
    *,
    wait_s: int = 0,
    time_s: int = HOUR,
    processors: int = 1,
    array_id: str | None = None,
    **changed: Any,
) -> QueuedJob:
    request = JobRequest(job_id, "ann", "p", processors, time_s, NOW - wait_s - 5, "main", array_id)
    values = {"eligible_time": NOW - wait_s} | changed
    return QueuedJob(request, QueueState.PENDING, **values)


def _requested(job: QueuedJob) -> int:
    return job.request.requested_time


# -- scores --------------------------------------------------------------------------------------


def test_each_order_scores_a_job_by_its_formula() -> None:
    assert score(Order.SJF, 50, 100, 4) == -100
    assert score(Order.LJF, 50, 100, 4) == 100
    assert score(Order.XF, 50, 100, 4) == 1.5
    assert score(Order.WFP, 50, 100, 4) == 0.5
    assert score(Order.FCFS, 50, 100, 4) == 50
    with pytest.raises(ValueError, match="priority can't be worked out"):
        score(Order.PRIORITY, 50, 100, 4)


@pytest.mark.parametrize("order", [o for o in Order if o not in (Order.PRIORITY, Order.FCFS)])
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 4096)),
        min_size=2,
        max_size=12,
    )
)
def test_the_orders_are_the_engines(order: Order, jobs: list[tuple[int, int, int]]) -> None:
    """Two ways to one order: this one, and the engine's specification in plain Python."""

    simulation = object.__new__(Simulation)
    simulation.policy, simulation.now = Policy(order=order), NOW
    reference = []
    for index, (wait_s, time_s, processors) in enumerate(jobs):
        job = object.__new__(ReferenceJob)
        job.submit, job.queue_time, job.processors = NOW - wait_s, time_s, processors
        job.index = job.rank = index
        reference.append(job)
    expected = [job.index for job in simulation.in_order(reference)]
    queue = [
        _job(f"{index:03}", wait_s=wait_s, time_s=time_s, processors=processors)
        for index, (wait_s, time_s, processors) in enumerate(jobs)
    ]
    mine = contenders(queue, order, _requested, NOW)
    # Ties go by submission here, by place in the log there.
    assert [each.score for each in mine] == [score(order, *jobs[index]) for index in expected]


def test_only_jobs_that_can_start_take_part() -> None:
    queue = [
        _job("1", wait_s=10),
        _job("2", wait_s=20, held=True),
        _job("3", wait_s=20, dependent=True),
        _job("4", wait_s=20, heterogeneous=True),
        _job("5", eligible_time=None),
        _job("6", eligible_time=NOW + 1),
        _job("7_[1-9]", wait_s=30, array_id="7", tasks=9),
        _job("7_12", wait_s=600, array_id="7"),
        _job("8", wait_s=40),
    ]
    running = QueuedJob(queue[0].request, QueueState.RUNNING)
    found = contenders([*queue, running], Order.XF, _requested, NOW)
    assert [each.job_id for each in found] == ["7", "8", "1"]
    assert found[0] == Contender("7", score(Order.XF, 600, HOUR, 1), NOW - 605)


def test_who_goes_first_stands_before_the_others_by_wait() -> None:
    queue = [
        _job("short", wait_s=10, time_s=60),
        _job("long", wait_s=500, time_s=9 * HOUR),
        _job("longer", wait_s=600, time_s=20 * HOUR),
        _job("8_1", wait_s=5, time_s=HOUR, array_id="8"),
        _job("8_2", wait_s=550, time_s=HOUR, array_id="8"),
    ]

    def late(job: QueuedJob) -> bool:
        return job.eligible_time is not None and NOW - job.eligible_time >= 500

    found = contenders(queue, Order.SJF, _requested, NOW, late)
    assert [each.job_id for each in found] == ["longer", "8", "long", "short"]
    assert [each.goes_first for each in found] == [True, True, True, False]
    came = contenders(queue, Order.FCFS, _requested, NOW)
    assert [each.job_id for each in came] == ["longer", "8", "long", "short"]
    alone = contenders(queue, Order.SJF, _requested, NOW)
    assert [each.job_id for each in alone] == ["short", "8", "long", "longer"]


# -- site factors ----------------------------------------------------------------------------------


def test_as_few_site_factors_as_will_do_are_changed() -> None:
    assert site_factors(["a", "b", "c"], {}, 100) == {"a": 75, "b": 50, "c": 25}
    in_place = {"a": 75, "b": 50, "c": 25}
    assert site_factors(["a", "b", "c"], in_place, 100) == {}
    assert site_factors(["a", "x", "b", "c"], in_place, 100) == {"x": 62}
    assert site_factors(["a", "x", "b", "c"], in_place | {"x": 0}, 100) == {"x": 62}
    assert site_factors(["c", "a", "b"], in_place, 100) == {"c": 88}
    assert site_factors(["a", "x", "b"], {"a": 11, "b": 10}, 100) == {"a": 75, "x": 50, "b": 25}
    assert site_factors(["a", "b"], {"a": 900, "b": 40}, 100) == {"a": 70}
    assert site_factors([], {"a": 5}, 100) == {}


def test_more_jobs_than_factors_share_them() -> None:
    names = [str(number) for number in range(10)]
    factors = site_factors(names, {}, 4)
    assert sorted(factors.values(), reverse=True) == [factors[name] for name in names]
    assert set(factors.values()) == {1, 2, 3, 4}
    assert site_factors(names, factors, 4) == {}


@given(data=st.data(), count=st.integers(1, 9), highest=st.integers(1, 30))
def test_factors_stand_in_order_and_few_change(
    data: st.DataObject, count: int, highest: int
) -> None:
    names = [str(number) for number in range(count)]
    current = data.draw(
        st.dictionaries(st.sampled_from(names), st.integers(-5, highest + 5), max_size=count)
    )
    changed = site_factors(names, current, highest)
    assert all(current.get(name) != factor for name, factor in changed.items())
    after = [(current | changed)[name] for name in names]
    assert all(1 <= factor <= highest for factor in after)
    if count > highest:
        assert after == sorted(after, reverse=True)
        return
    assert all(one > other for one, other in pairwise(after))
    kept = count - len(changed)
    best = _most_that_may_stay(names, current, highest)
    room = _room(names, current, highest, kept=best)
    assert kept >= best or not room, "more could have stayed"


def _most_that_may_stay(names: Sequence[str], current: dict[str, int], highest: int) -> int:
    """By trying every subset: most jobs whose factors already fall strictly."""
    have = [name for name in names if 1 <= current.get(name, 0) <= highest]
    for size in range(len(have), 0, -1):
        for some in combinations(have, size):
            if all(current[one] > current[other] for one, other in pairwise(some)):
                return size
    return 0


def _room(names: Sequence[str], current: dict[str, int], highest: int, kept: int) -> bool:
    """Whether every choice of so many that stay leaves room for the others between them."""
    have = [name for name in names if 1 <= current.get(name, 0) <= highest]
    for some in combinations(have, kept):
        if not all(current[one] > current[other] for one, other in pairwise(some)):
            continue
        places = [names.index(name) for name in some]
        bounds = [highest + 1, *(current[name] for name in some), 0]
        ends = [-1, *places, len(names)]
        fits = all(
            end - start - 1 <= above - below - 1
            for (start, end), (above, below) in zip(pairwise(ends), pairwise(bounds), strict=True)
        )
        if not fits:
            return False
    return True


# -- on the mock Slurm -----------------------------------------------------------------------------


@pytest.fixture
def world() -> Noting:
    """One job runs on all 16 processors, and five wait."""
    policy = Policy(order=Order.PRIORITY, backfill=Backfill.NONE)
    slurm = MockSlurm(SlurmSetup(processors=16), policy, None, NOW - HOUR)
    for processors, hours in ((16, 5), (16, 4), (8, 1), (16, 3), (1, 2)):
        slurm.submit(submission(processors, hours * HOUR))
    for _ in range(3):
        slurm.submit(submission(16, 6 * HOUR, array_id=50))
    slurm.advance(NOW)
    return Noting(slurm)


Start = Callable[..., Sidecar]


@pytest.fixture
def start(world: Noting, tmp_path: Path) -> Iterator[Start]:
    """Start a sidecar that orders the queue."""
    stores = []

    def start(order: str = "sjf", **more: int) -> Sidecar:
        settings = Settings.model_validate(
            {
                "table": {"path": str(tmp_path / "table")},
                "queue_order": {"order": order} | more,
                "hook": {"disable_file": str(tmp_path / "off")},
            }
        )
        stores.append(Store(tmp_path / "store"))
        return Sidecar(settings, SlurmCommands(world, 0), stores[-1])

    yield start
    for store in stores:
        store.close()


def test_the_queue_is_put_in_order_with_few_changes(world: Noting, start: Start) -> None:
    sidecar = start(highest_site_factor=1000)
    sidecar.look(NOW)
    # 1 runs; by length: 3 (1 h), 5 (2 h), 4 (3 h), 2 (4 h), the array (6 h).
    assert factors_of(world) == {"3": 834, "5": 667, "4": 500, "2": 333, "50": 166}
    assert sorted(line.split()[1] for line in world.sent) == [
        "JobId=2",
        "JobId=3",
        "JobId=4",
        "JobId=5",
        "JobId=50",
    ]
    world.sent.clear()
    sidecar.look(NOW + 60)
    assert world.sent == []
    world.slurm.submit(submission(4, 3 * HOUR + 600))
    sidecar.look(NOW + 120)
    assert world.sent == ["update JobId=9 SiteFactor=416"]


@pytest.mark.parametrize(("order", "first"), [("sjf", 3), ("ljf", 6), ("xf", 3), ("wfp", 3)])
def test_the_first_in_order_starts_first(
    order: str, first: int, world: Noting, start: Start
) -> None:
    start(order).look(NOW)
    world.slurm.advance(NOW + 4 * HOUR + 1)
    started = SlurmCommands(world).queue()
    running = [j.request.job_id for j in started.jobs if j.state is QueueState.RUNNING]
    assert running[0].rpartition("_")[2] == str(first)


def test_whoever_has_waited_too_long_goes_first(world: Noting, start: Start) -> None:
    """All wait for an hour; the longest job is submitted first, and starves under SJF else."""
    sidecar = start(longest_wait_s=2 * HOUR)
    world.slurm.advance(NOW + 30 * 60)
    world.slurm.submit(submission(16, 60))  # 9: the shortest of all
    sidecar.look(NOW + 30 * 60)
    assert in_order(world) == ["9", "3", "5", "4", "2", "50"]
    sidecar.look(NOW + HOUR - 1)
    assert in_order(world) == ["9", "3", "5", "4", "2", "50"]
    sidecar.look(NOW + HOUR)
    assert in_order(world) == ["2", "3", "4", "5", "50", "9"], "9 has not waited for so long"


def test_it_is_given_back_while_foretime_is_disabled(
    world: Noting, start: Start, tmp_path: Path
) -> None:
    sidecar = start()
    sidecar.look(NOW)
    assert set(factors_of(world).values()) != {0}
    (tmp_path / "off").touch()
    sidecar.look(NOW + 60)
    assert set(factors_of(world).values()) == {0}
    assert "off exists" in sidecar.order_refused
    (tmp_path / "off").unlink()
    sidecar.look(NOW + 120)
    assert set(factors_of(world).values()) != {0}
    assert sidecar.order_refused == ""


def test_it_is_given_back_at_the_end(world: Noting, start: Start) -> None:
    sidecar = start()
    sidecar.look(NOW)
    sidecar.end()
    assert set(factors_of(world).values()) == {0}
    assert sidecar.store.site_factors() == {}
    world.sent.clear()
    sidecar.end()
    assert world.sent == []


@pytest.mark.parametrize("again", ["sjf", "none"])
def test_after_a_crash_it_knows_its_own(again: str, world: Noting, start: Start) -> None:
    sidecar = start()
    sidecar.look(NOW)
    world.slurm.submit(submission(4, 3 * HOUR + 600))
    world.dies_at_update = True
    with pytest.raises(KeyboardInterrupt):
        sidecar.look(NOW + 60)
    sidecar.store.close()
    world.dies_at_update = False
    next_one = start(again)
    next_one.look(NOW + 120)
    factors = factors_of(world)
    if again == "none":
        assert set(factors.values()) == {0}
        assert next_one.store.site_factors() == {}
    else:
        assert sorted(factors, key=lambda name: -factors[name]) == ["3", "5", "4", "9", "2", "50"]


def test_jobs_that_are_gone_are_forgotten(world: Noting, start: Start) -> None:
    sidecar = start()
    sidecar.look(NOW)
    assert "2" in sidecar.store.site_factors()
    world.slurm.cancel(2)
    sidecar.look(NOW + 60)
    assert "2" in sidecar.store.site_factors(), "it may be one that is requeued, and completes"
    sidecar.look(NOW + 120)
    assert "2" not in sidecar.store.site_factors()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"PriorityType": "priority/basic"}, "PriorityType is priority/basic"),
        ({"PrioritySiteFactorPlugin": "site_factor/ours"}, "= site_factor/ours sets the site"),
        ({"Federation": "fed1"}, "in the federation fed1"),
        ({"PriorityFlags": "INCR_ONLY"}, "could not be lowered again"),
        ({"SchedulerParameters": "bf_continue,enable_user_top"}, "enable_user_top"),
    ],
)
def test_it_refuses_and_gives_back(
    config: dict[str, str],
    said: str,
    world: Noting,
    start: Start,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sidecar = start()
    sidecar.look(NOW)
    assert any(factors_of(world).values())
    world.config = config
    with caplog.at_level(logging.ERROR, "foretime"):
        sidecar.look(NOW + 60)
        sidecar.look(NOW + 120)
    assert caplog.text.count("the queue is not put in order") == 1
    assert said in caplog.text
    assert not any(factors_of(world).values())
    world.config = {}
    sidecar.look(NOW + 180)
    assert any(factors_of(world).values())


def test_what_somebody_else_has_set_counts_and_is_put_back(world: Noting, start: Start) -> None:
    """Before the first look, between two, and over a crash."""
    SlurmCommands(world.slurm.run).update([JobChange("4", site_factor=-300)])
    sidecar = start(highest_site_factor=1000)
    sidecar.look(NOW)
    assert in_order(world) == ["3", "5", "4", "2", "50"]
    SlurmCommands(world.slurm.run).update([JobChange("2", site_factor=70_000)])
    sidecar.look(NOW + 60)
    assert _by_priority(world) == ["3", "5", "4", "2", "50"]
    assert factors_of(world)["2"] > 70_000
    sidecar.store.close()
    start("none").look(NOW + 120)
    assert factors_of(world) == {"2": 70_000, "3": 0, "4": -300, "5": 0, "50": 0}


def test_whatever_the_order_a_better_qos_stays_first(world: Noting, start: Start) -> None:
    world.config = {"PriorityWeightQOS": "500"}
    world.qos = {"2": "high", "50": "high"}
    start().look(NOW)
    assert in_order(world) == ["2", "50", "3", "5", "4"]


def test_the_sites_own_first_job_stays_first_if_so_set(world: Noting, start: Start) -> None:
    sidecar = start(head_first=True)
    sidecar.look(NOW)
    assert in_order(world) == ["2", "3", "5", "4", "50"], "submitted first"
    SlurmCommands(world.slurm.run).update([JobChange("50", site_factor=90_000)])
    sidecar.look(NOW + 60)
    assert _by_priority(world) == ["50", "3", "5", "4", "2"]


def _by_priority(world: Noting) -> list[str]:
    """Give what waits, highest priority first."""
    waits = [j for j in SlurmCommands(world).queue().jobs if j.state is QueueState.PENDING]
    waits.sort(key=lambda job: -job.priority)
    return list(dict.fromkeys(job.request.array_id or job.request.job_id for job in waits))


def test_without_the_right_to_it_the_look_fails(world: Noting, start: Start) -> None:
    world.refuses = True
    sidecar = start()
    with pytest.raises(SchedulerError, match="permission denied"):
        sidecar.look(NOW)
    world.refuses = False
    sidecar.look(NOW + 60)
    assert any(factors_of(world).values())


def test_it_needs_slurms_commands() -> None:
    order = '[queue_order]\norder = "wfp"\n[scheduler]\n'
    for other in ('client = "slurmrestd"', 'kind = "pbs"\n[hook]\nmechanism = "pbs-soft-walltime"'):
        with pytest.raises(InputError, match=r"f:2: queue_order.order = 'wfp': .* commands"):
            parse_settings(order + other, "f")
