"""Who should start now: by hand, on nodes, and against EASY written out in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import (
    AskedNodes,
    Cluster,
    ClusterNode,
    ClusterPartition,
    HeldNode,
)
from foretime_sidecar.ordering.start_plan import (
    AGEING_S,
    StartMoments,
    StartPlan,
    plan_starts,
    plan_starts_in,
)
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_snapshot import snapshot_of
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_800_000_000
HOUR = 3600


def _cluster(cpus: int, **partitions: tuple[int, int, int]) -> Cluster:
    """Give nodes of one CPU: of each partition its first node, the one after its last, its tier."""
    named = partitions or {"main": (0, cpus, 1)}
    return Cluster(
        tuple(ClusterNode(f"n{number}", 1) for number in range(cpus)),
        tuple(
            ClusterPartition(name, frozenset(f"n{n}" for n in range(first, end)), tier)
            for name, (first, end, tier) in named.items()
        ),
    )


def _waits(job_id: str, processors: int, hours: float, **changed: Any) -> QueuedJob:
    wait_s = changed.pop("wait_s", 60)
    request = JobRequest(
        job_id,
        "ann",
        None,
        processors,
        round(hours * HOUR),
        NOW - wait_s,
        changed.pop("queue", "main"),
        changed.pop("array_id", None),
    )
    values = {"eligible_time": NOW - wait_s, "reason": "Priority"} | changed
    return QueuedJob(request, QueueState.PENDING, **values)


def _runs(job_id: str, first: int, processors: int, hours: float, ago_s: int = 0) -> QueuedJob:
    request = JobRequest(job_id, "bob", None, processors, round(hours * HOUR), NOW - ago_s, "main")
    has = tuple(HeldNode(f"n{n}", 1, 0, 0) for n in range(first, first + processors))
    return QueuedJob(request, QueueState.RUNNING, start_time=NOW - ago_s, has_nodes=has)


def _plan(
    cluster: Cluster,
    *jobs: QueuedJob,
    expected: dict[str, float] | None = None,
    late: float | dict[str, float] = 0.0,
    raised: dict[str, int] | None = None,
    protected: Mapping[str, float] | None = None,
) -> StartPlan:
    """Plan with expected hours by job; jobs that are not named may not be started."""

    def expected_of(job: QueuedJob) -> RolePrediction | None:
        hours = (expected or {}).get(job.request.job_id)
        if hours is None:
            return None
        return RolePrediction(round(hours * HOUR), round(hours * HOUR), job.request.requested_time)

    def own_priority(job: QueuedJob) -> int:
        return job.priority - (raised or {}).get(job.request.job_id, 0)

    asked = (
        expected_of,
        own_priority,
        lambda name: late.get(name, 0.0) if isinstance(late, dict) else late,
        lambda job: (protected or {}).get(job.request.job_id),
    )
    kept = StartMoments()
    looks = [Look(NOW, Queue(len(cluster.nodes), jobs), cluster=cluster) for _ in range(3)]
    anew = plan_starts(looks[0], *asked)
    for look in (*looks, looks[-1]):
        assert plan_starts(look, *asked, kept) == anew, "what is kept changes nothing"
    taken = snapshot_of(looks[0].queue, cluster, taken_at=NOW)
    assert plan_starts_in(taken, *asked) == anew, "nor does it that none fits what is free"
    return anew


def _names(plan: StartPlan) -> list[str]:
    return [job.request.job_id for job in plan.starts]


# -- by hand ---------------------------------------------------------------------------------------


def test_what_is_expected_to_end_before_the_head_job_starts() -> None:
    """Two of four CPUs are free until the head job, which needs all, starts in two hours."""
    queue = (
        _runs("1", 0, 2, 3, ago_s=HOUR),
        _waits("2", 4, 1, priority=9),
        _waits("3", 2, 5, priority=8),
        _waits("4", 1, 4, priority=7),
        _waits("5", 1, 4, priority=6),
    )
    plan = _plan(_cluster(4), *queue, expected={"2": 0.5, "3": 3, "4": 1.5, "5": 1})
    assert _names(plan) == ["5", "4"], "3 would run into the head job; the shortest is first"
    assert {name: job.request.job_id for name, job in plan.heads.items()} == {"main": "2"}


def test_of_another_look_nothing_is_taken_from_the_look_before() -> None:
    """The running job has ended, with all else as it was."""
    cluster, kept = _cluster(4), StartMoments()
    waiting = (_waits("2", 4, 1, priority=9), _waits("3", 2, 1, priority=8))

    def names(*jobs: QueuedJob) -> list[str]:
        look = Look(NOW, Queue(4, jobs), cluster=cluster)
        plan = plan_starts(
            look,
            lambda job: RolePrediction(60, 60, HOUR),
            lambda job: job.priority,
            lambda _: 0.0,
            lambda _: None,
            kept,
        )
        return [*_names(plan), *(head.request.job_id for head in plan.heads.values())]

    runs = _runs("1", 0, 2, 3, ago_s=HOUR)
    assert names(runs, *waiting) == ["3", "2"]
    assert names(*waiting) == ["3"], "2 starts by itself, and 3 has to wait"
    assert names(runs, *waiting) == ["3", "2"]


def test_where_nobody_fits_the_first_job_of_each_partition_is_named() -> None:
    cluster = _cluster(4, main=(0, 2, 1), other=(1, 4, 1))
    queue = (
        _runs("1", 0, 3, 3),
        _waits("2", 2, 1, priority=8),
        _waits("3", 2, 1, priority=9, eligible_time=NOW + 60),
        _waits("4", 3, 1, priority=7, queue="other"),
        _waits("5", 2, 1, priority=1, queue="other,main"),
    )
    plan = _plan(cluster, *queue, expected={"5": 0.5})
    assert not plan.starts
    assert {name: job.request.job_id for name, job in plan.heads.items()} == {
        "main": "2",
        "other": "4",
    }


def test_running_jobs_use_all_that_they_asked_for() -> None:
    """A job past its limit, which Slurm is about to end, has ended no sooner than in a minute."""
    queue = (
        _runs("1", 0, 3, 1, ago_s=2 * HOUR),
        _waits("2", 4, 1, priority=9),
        _waits("3", 1, 1, priority=8),
        _waits("4", 1, 1, priority=7),
    )
    plan = _plan(_cluster(4), *queue, expected={"3": 0.5, "4": 0.01})
    assert _names(plan) == ["4"]


def test_what_starts_fits_the_nodes_that_are_free() -> None:
    """One node is free, without GPUs, the feature fast or much memory, and not n1."""
    nodes = (
        ClusterNode("n0", 2, memory_mib=8000),
        ClusterNode("n1", 2, memory_mib=32_000, gpus=2, features=("fast",)),
    )
    cluster = Cluster(nodes, (ClusterPartition("main", frozenset({"n0", "n1"})),))
    wants = {
        "3": AskedNodes(tasks=1, constraint=("fast",)),
        "4": AskedNodes(tasks=1, gpus_per_node=1),
        "5": AskedNodes(tasks=1, memory_per_node_mib=16_000),
        "6": AskedNodes(tasks=1, required=frozenset({"n1"})),
        "7": AskedNodes(tasks=1, memory_per_node_mib=4000),
    }
    queue = [
        replace(_runs("1", 1, 1, 3), has_nodes=(HeldNode("n1", 2, 32_000, 2),)),
        _waits("2", 4, 1, priority=90),
    ]
    for name, asked in wants.items():
        queue.append(_waits(name, 1, 5, priority=10 - int(name), asked=asked))
    plan = _plan(cluster, *queue, expected=dict.fromkeys(wants, 1.0))
    assert _names(plan) == ["7"]


def test_a_head_job_that_starts_in_a_week_is_protected() -> None:
    """Slurm plans no start of it within its bf_window of a day."""
    queue = (
        _runs("1", 0, 3, 7 * 24),
        _waits("2", 4, 1, priority=9),
        _waits("3", 1, 20 * 24, priority=8),
        _waits("4", 1, 20 * 24, priority=7),
    )
    plan = _plan(_cluster(4), *queue, expected={"3": 8 * 24, "4": 6 * 24})
    assert (_names(plan), plan.heads["main"].request.job_id) == (["4"], "2")


def test_who_is_first_is_started_by_slurm_itself() -> None:
    queue = (
        _runs("1", 0, 2, 3),
        _waits("2", 1, 9, priority=9),
        _waits("3", 4, 1, priority=8),
        _waits("4", 1, 5, priority=7),
    )
    plan = _plan(_cluster(4), *queue, expected={"2": 1, "3": 1, "4": 1})
    assert _names(plan) == ["4"]
    assert plan.heads["main"].request.job_id == "3"
    assert _plan(_cluster(4), *queue[:2], expected={"2": 1}) == StartPlan((), {})


def test_what_leaves_enough_nodes_needs_to_end_at_no_time() -> None:
    queue = (
        _runs("1", 0, 2, 3),
        _waits("2", 3, 1, priority=9),
        _waits("3", 1, 90, priority=8),
        _waits("4", 1, 90, priority=7),
    )
    assert _names(_plan(_cluster(4), *queue, expected={"3": 50, "4": 40})) == ["4"]


def test_what_may_not_be_expected_is_never_started() -> None:
    queue = (_runs("1", 0, 3, 3), _waits("2", 4, 1, priority=9), _waits("3", 1, 1, priority=8))
    assert _names(_plan(_cluster(4), *queue, expected={"3": 1})) == ["3"]
    assert _names(_plan(_cluster(4), *queue)) == []


def test_the_later_the_head_job_is_the_more_must_fit() -> None:
    """The head job starts in two hours; four hours are asked for, and one is expected."""
    queue = (_runs("1", 0, 3, 2), _waits("2", 4, 1, priority=9), _waits("3", 1, 4, priority=8))
    for late, names in ((-1.0, ["3"]), (0.3, ["3"]), (0.4, []), (1.0, []), (7.0, [])):
        assert _names(_plan(_cluster(4), *queue, expected={"3": 1}, late=late)) == names


def test_who_is_protected_holds_a_reservation_behind_the_head_job() -> None:
    """The head job has three of four CPUs from hour 2 to 3; then 3 needs all of them."""
    queue = (
        _runs("1", 0, 2, 2),
        _waits("2", 3, 1, priority=9),
        _waits("3", 4, 5, priority=7),
        _waits("4", 1, 9, priority=8),
    )
    for hours, names in ((2.9, ["4"]), (3.1, [])):
        assert _names(_plan(_cluster(4), *queue, expected={"4": hours})) == ["4"]
        plan = _plan(_cluster(4), *queue, expected={"4": hours}, protected={"3": 0.0})
        assert _names(plan) == names
        assert plan.heads["main"].request.job_id == "2"


def test_the_later_and_wider_a_protected_job_is_the_more_must_fit() -> None:
    """The head job starts in two hours; four hours are asked for, and one is expected."""
    for processors, late, names in (
        (4, 0.3, ["3"]),
        (4, 0.4, []),
        (3, 0.6, ["3"]),
        (3, 0.7, []),
        (2, 1.0, ["3"]),
    ):
        queue = (
            _runs("1", 0, 3, 2),
            _waits("2", 4, 1, priority=9),
            _waits("3", 1, 4, priority=8),
            _waits("4", processors, 9, priority=7),
        )
        plan = _plan(_cluster(4), *queue, expected={"3": 1}, protected={"4": late})
        assert _names(plan) == names, (processors, late)


def test_a_late_job_counts_by_its_share_of_its_partition_for_all_of_the_same_nodes() -> None:
    """Two of the two nodes of `fat`, behind its head; `main` and `urgent` have them, too."""
    cluster = _cluster(6, main=(0, 4, 1), fat=(2, 4, 1), urgent=(0, 4, 5), other=(4, 6, 1))
    for queue, late, names in (
        ("main", 0.3, ["3"]),
        ("main", 0.4, []),
        ("urgent", 1.0, ["3"]),
        ("other", 1.0, ["3"]),
    ):
        jobs = (
            _runs("1", 0, 3, 2),
            _runs("5", 4, 1, 2),
            _waits("2", 2 if queue == "other" else 4, 1, priority=9, queue=queue),
            _waits("3", 1, 4, priority=8, queue=queue),
            _waits("6", 2, 9, priority=7, queue="fat"),
            _waits("4", 2, 9, priority=6, queue="fat"),
        )
        plan = _plan(cluster, *jobs, expected={"3": 1}, protected={"4": late})
        assert _names(plan) == names, (queue, late)


def test_who_is_protected_starts_if_it_fits_by_what_it_asked_for() -> None:
    """It goes before shorter ones, though not before the head job."""
    queue = (
        _runs("1", 0, 3, 2),
        _waits("2", 4, 1, priority=9),
        _waits("3", 1, 1, priority=8),
        _waits("4", 1, 2, priority=7),
    )
    expected = {"3": 0.5, "4": 1}
    assert _names(_plan(_cluster(4), *queue, expected=expected)) == ["3"]
    assert _names(_plan(_cluster(4), *queue, expected=expected, protected={"4": 0.0})) == ["4"]
    late = (*queue[:3], _waits("4", 1, 3, priority=7))
    assert _names(_plan(_cluster(4), *late, expected=expected, protected={"4": 0.0})) == ["3"]


def test_who_has_waited_for_long_is_not_passed_over_for_ever() -> None:
    def plan(wait_s: int) -> list[str]:
        queue = (
            _runs("1", 0, 3, 9),
            _waits("2", 4, 1, priority=9),
            _waits("3", 1, 4, priority=8, wait_s=wait_s),
            _waits("4", 1, 4, priority=7, wait_s=0),
        )
        return _names(_plan(_cluster(4), *queue, expected={"3": 3, "4": 1.4}))

    assert plan(AGEING_S) == ["4"]
    assert plan(2 * AGEING_S) == ["3"]


def test_what_we_added_to_a_priority_does_not_make_a_head_job() -> None:
    queue = (
        _runs("1", 0, 3, 3),
        _waits("2", 4, 1, priority=9),
        _waits("3", 2, 1, priority=2008),
    )
    plan = _plan(_cluster(4), *queue, expected={"3": 1}, raised={"3": 2000})
    assert plan.heads["main"].request.job_id == "2"


def test_of_an_array_one_task_is_started_at_a_time() -> None:
    tasks = _waits("7_[3-9]", 1, 1, priority=8, array_id="7", tasks=7, pending_tasks="3-9")
    plan = _plan(
        _cluster(4), _runs("1", 0, 1, 3), _waits("2", 4, 1, priority=9), tasks,
        expected={"7_[3-9]": 0.5},
    )  # fmt: skip
    assert plan.starts == (tasks,)


def test_what_cant_start_now_keeps_nobody() -> None:
    held = _waits("2", 4, 1, priority=9, held=True)
    later = _waits("3", 4, 1, priority=9, eligible_time=NOW + HOUR)
    limited = _waits("4", 4, 1, priority=9, reason="QOSMaxJobsPerUserLimit")
    plan = _plan(_cluster(4), held, later, limited, _waits("5", 1, 1, priority=1))
    assert plan.heads == {}


def test_each_partition_has_its_head_job() -> None:
    cluster = _cluster(4, left=(0, 2, 1), right=(2, 4, 1))
    queue = (
        _runs("1", 0, 1, 2),
        _runs("2", 2, 1, 4),
        _waits("3", 2, 1, priority=9, queue="left"),
        _waits("4", 2, 1, priority=5, queue="right"),
        _waits("5", 1, 9, priority=3, queue="left"),
        _waits("6", 1, 9, priority=3, queue="right"),
        _waits("7", 1, 9, priority=3, queue="left,right"),
    )
    plan = _plan(cluster, *queue, expected={"5": 3, "6": 3, "7": 9})
    assert _names(plan) == ["6"], "before 3 there are two hours, before 4 there are four"
    assert {name: job.request.job_id for name, job in plan.heads.items()} == {
        "left": "3",
        "right": "4",
    }


def test_a_late_head_job_counts_for_all_who_may_take_its_nodes() -> None:
    """All head jobs start in two hours or later; four hours are asked for, and one is expected."""
    parts = {"main": (0, 4, 1), "part": (2, 4, 1), "other": (4, 6, 1)}
    queue = (
        _runs("1", 0, 3, 2),
        _waits("2", 4, 1, priority=9),
        _waits("3", 2, 1, priority=8, queue="part"),
        _waits("4", 1, 4, priority=7),
    )
    for late, names in (("main", []), ("part", []), ("other", ["4"])):
        plan = _plan(_cluster(6, **parts), *queue, expected={"4": 1}, late={late: 1.0})
        assert _names(plan) == names, late
    urgent = (
        *queue[:3],
        _waits("5", 4, 1, queue="urgent"),
        _waits("6", 1, 4, queue="urgent"),
    )
    for late, names in (("main", ["6"]), ("urgent", [])):
        cluster = _cluster(6, **parts, urgent=(0, 4, 5))
        assert _names(_plan(cluster, *urgent, expected={"6": 1}, late={late: 1.0})) == names


def test_behind_a_head_job_of_a_higher_tier_nothing_is_started() -> None:
    cluster = _cluster(4, urgent=(0, 4, 5), main=(0, 4, 1))
    queue = (
        _runs("1", 0, 3, 2),
        _waits("2", 4, 1, priority=1, queue="urgent"),
        _waits("3", 2, 1, priority=9),
        _waits("4", 1, 1, priority=8),
        _waits("5", 1, 1, priority=1, queue="urgent"),
    )
    assert _names(_plan(cluster, *queue, expected={"4": 0.5, "5": 0.9})) == []
    assert _names(_plan(cluster, *queue, expected={"4": 0.5, "5": 0.2})) == ["5"]


def test_a_head_job_of_a_higher_tier_does_not_count_on_other_nodes() -> None:
    cluster = _cluster(8, urgent=(4, 8, 5), main=(0, 4, 1), both=(3, 5, 1))
    queue = (
        _runs("1", 0, 3, 2),
        _runs("2", 4, 3, 2),
        _waits("3", 3, 1, priority=9, queue="urgent"),
        _waits("4", 4, 1, priority=9),
        _waits("5", 1, 4, priority=8),
    )
    expected = {"5": 0.5, "6": 0.5}
    assert _names(_plan(cluster, *queue, expected=expected)) == ["5"]
    both = _waits("7", 2, 1, priority=8, queue="both"), _waits("6", 1, 4, queue="both")
    assert _names(_plan(cluster, *queue[:4], *both, expected=expected)) == []
    urgent = _cluster(8, urgent=(5, 8, 5), main=(0, 4, 1), both=(3, 5, 1))
    assert _names(_plan(urgent, *queue[:4], *both, expected=expected)) == ["6"]


# -- against EASY in plain Python ------------------------------------------------------------------


@given(
    cpus=st.integers(1, 8),
    running=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 20)), max_size=4),
    waiting=st.lists(
        st.tuples(st.integers(1, 8), st.integers(1, 20), st.integers(1, 20), st.integers(0, 3)),
        min_size=1,
        max_size=8,
    ),
    late=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_it_is_easy_as_written_out_in_plain_python(
    cpus: int,
    running: list[tuple[int, int]],
    waiting: list[tuple[int, int, int, int]],
    late: float,
) -> None:
    """Jobs have processors, hours asked for, hours expected, and a priority."""
    jobs, free, ends = [], cpus, []
    for number, (processors, hours) in enumerate(running):
        if processors <= free:
            jobs.append(_runs(f"r{number}", cpus - free, processors, hours))
            free -= processors
            ends.append((hours * HOUR, processors))
    queue = [
        (number, processors, hours * HOUR, min(expected, hours) * HOUR, priority)
        for number, (processors, hours, expected, priority) in enumerate(waiting)
        if processors <= cpus
    ]
    for number, processors, asked, _, priority in queue:
        jobs.append(_waits(f"{number}", processors, asked / HOUR, priority=priority, wait_s=0))
    hours_of = {f"{number}": expected / HOUR for number, _, _, expected, _ in queue}
    plan = _plan(_cluster(cpus), *jobs, expected=hours_of, late=late)

    starts: list[str] = []
    in_order = sorted(queue, key=lambda job: (-job[4], job[0]))
    while in_order and in_order[0][1] <= free:
        _, processors, asked, _, _ = in_order.pop(0)
        free -= processors
        ends.append((asked, processors))
    if in_order:
        head, *others = in_order
        room, shadow = free, 0
        for end in sorted({end for end, _ in ends}):
            if room < head[1]:
                room += sum(processors for at, processors in ends if at == end)
                shadow = end
        extra = room - head[1]
        for number, processors, asked, expected, _ in sorted(
            others, key=lambda job: (job[3], job[0])
        ):
            fits = expected + round((asked - expected) * late)
            if processors > free or (fits > shadow and processors > extra):
                continue
            free -= processors
            if fits > shadow:
                extra -= processors
            starts.append(f"{number}")
        assert plan.heads["main"].request.job_id == f"{head[0]}"
    else:
        assert plan.heads == {}
    assert sorted(_names(plan)) == sorted(starts)
