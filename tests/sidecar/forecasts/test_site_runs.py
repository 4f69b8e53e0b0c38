"""The queue run forward as the site's own Slurm schedules, and what is said where it is not."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState, Reservation
from foretime_sidecar.clients.cluster import (
    AskedNodes,
    Cluster,
    ClusterNode,
    ClusterPartition,
    HeldNode,
)
from foretime_sidecar.forecasts import site_runs
from foretime_sidecar.forecasts.adaptive_forward_runs import ForecastLadder, SampleModels
from foretime_sidecar.forecasts.forecast_board import Board
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.site_runs import COARSELY, SiteRuns
from foretime_sidecar.forecasts.slurm_moment import under_slurm
from foretime_sidecar.forecasts.told_waits import keeps_the_head_first
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob, QueueMoment
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.engine.forward import start_times_of
from foretime_sim.engine.queue_places import waiting_now
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.waits.moment import Moment

NOW = 1_700_000_000
NODES = tuple(ClusterNode(f"n{number}", 4) for number in range(1, 5))
CLUSTER = Cluster(
    NODES,
    (
        ClusterPartition("main", frozenset(f"n{number}" for number in range(1, 5)), default=True),
        ClusterPartition("short", frozenset({"n3", "n4"}), priority_tier=10),
    ),
    counts_memory=False,
)
# Another machine than the one that is up now; backfill looks at the first job only.
SITE = SlurmSite(
    Machine.flat(64),
    (26, 5),
    SlurmParameters(bf_max_job_test=1, bf_interval=1),
    rules={"main": PartitionRules(state="DOWN"), "gone": PartitionRules(qos="q")},
)
BACKFILLS = replace(SITE, parameters=SlurmParameters(bf_interval=1))
HELD = QueuedJob(
    JobRequest("1", "ann", "physics", 12, 3600, NOW - 900, "main"),
    QueueState.RUNNING,
    start_time=NOW - 600,
    has_nodes=tuple(HeldNode(f"n{number}", 4) for number in (1, 2, 3)),
)


def waiting(name: str, cpus: int, priority: int, **more: Any) -> QueuedJob:
    request = JobRequest(name, "bob", "physics", cpus, 1800, NOW - 800 + int(name), "main")
    asked = AskedNodes(tasks=cpus, cpus_per_task=1)
    job = QueuedJob(request, QueueState.PENDING, priority=priority, asked=asked)
    return replace(job, **more)


# The first can't start before the running job has ended, the second has room beside it.
HEAD, SMALL = waiting("2", 16, 500), waiting("3", 2, 400)


@dataclass
class Known:
    """A site that is known, and what was noted of it."""

    site: SlurmSite | None
    noted: str = "nothing"
    read_at: int | None = None

    def note_runs(self, why_not: str) -> None:
        self.noted = why_not


def look(*jobs: QueuedJob, cluster: Cluster | None = CLUSTER, now: int = NOW) -> Look:
    return Look(now, Queue(16, (HELD, *jobs)), cluster=cluster)


def board_of(known: Known | None, seen: Look) -> tuple[WaitForecasting, Board]:
    waits = WaitForecasting(ForecastSettings(), CalibratedBest(20_000, known))
    waits.looked(seen)
    assert waits.refresh(maps=False)
    assert waits.board is not None
    return waits, waits.board


def likely(board: Board, job_id: str) -> int:
    row = board.tasks[job_id].waits
    assert row is not None
    return row.at(0.5)


def test_the_queue_goes_on_as_the_site_schedules_and_that_is_said() -> None:
    known = Known(SITE)
    waits, board = board_of(known, look(HEAD, SMALL))
    assert likely(board, "3") > 60
    assert board.assumptions[0] == (
        "the queue is simulated as this site's Slurm 26.05 schedules, by its priorities and limits"
    )
    assert known.noted == ""
    new = waits.what_if(board, NewJob(JobRequest("", "cat", None, 2, 600, NOW, "main")))
    assert new.waits is not None
    assert new.waits.at(0.5) > 60
    # The same site with a deeper backfill, and no site: there is room at once.
    for other in (Known(BACKFILLS), Known(None), None):
        _, board = board_of(other, look(HEAD, SMALL))
        assert likely(board, "3") == 0
    assert (
        board.assumptions[0]
        == "the queue is simulated in the order priority, with easy backfilling"
    )


def test_what_the_loops_start_within_a_minute_starts_at_once() -> None:
    half_a_minute = Known(replace(SITE, parameters=SlurmParameters(bf_interval=30)))
    _, board = board_of(half_a_minute, look(HEAD, SMALL))
    row = board.tasks["3"].waits
    assert row is not None
    assert (row.at(0.95), row.starts_now > 0.8) == (0, True)


def test_the_order_is_that_of_the_live_priorities() -> None:
    """Who was submitted last goes first, and so does a job that is asked about."""
    jobs = [waiting(str(number), 16, 10 * number) for number in range(2, 12)]
    moment = QueueMoment.of(look(*jobs), ForecastSettings())
    by_site = under_slurm(moment.everybody(), SITE)
    runtimes = np.array([[600, *[60] * 10]])
    starts = start_times_of(by_site.asked, by_site.snapshot, by_site.policy, runtimes)[0]
    assert (np.diff(starts) < 0).all()
    asked = moment.with_job(NewJob(JobRequest("", "bob", None, 16, 600, NOW, "main")))
    by_site = under_slurm(asked, SITE)
    runtimes = np.array([[600, *[60] * 11]])
    starts = start_times_of(range(1, 12), by_site.snapshot, by_site.policy, runtimes)[0]
    # It has the priority of its user's latest, behind which it comes.
    assert np.argsort(starts).tolist() == [9, 10, *range(8, -1, -1)]


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_by_another_order_of_the_settings_the_site_orders_by_submission(order: str) -> None:
    jobs = [waiting(str(number), 16, 10 * number) for number in range(2, 6)]
    settings = ForecastSettings.model_validate({"order": order})
    by_site = under_slurm(QueueMoment.of(look(*jobs), settings).everybody(), SITE)
    starts = start_times_of(
        by_site.asked, by_site.snapshot, by_site.policy, np.array([[600, *[60] * 4]])
    )[0]
    assert (np.diff(starts) > 0).all()


def test_on_a_flat_pool_it_is_not_and_that_is_said() -> None:
    known = Known(SITE)
    _, board = board_of(known, look(HEAD, SMALL, cluster=None))
    assert likely(board, "3") == 0
    assert known.noted == "which nodes and partitions there are is not known"


def test_a_mistake_of_the_model_costs_its_answers_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise RuntimeError("a forward run left jobs waiting for ever")

    monkeypatch.setattr(site_runs, "planned_waits", wrong)
    known = Known(SITE)
    waits, board = board_of(known, look(HEAD, SMALL))
    assert likely(board, "3") == 0
    assert "left jobs waiting for ever" in known.noted
    assert (
        board.assumptions[0]
        == "the queue is simulated in the order priority, with easy backfilling"
    )
    waits.looked(look(HEAD, SMALL, now=NOW + 60))
    waits.refresh(maps=False)
    assert caplog.text.count("is not run forward as this site schedules") == 1


class Slow:
    """Runs that take some of a processor's time, seconds, or all that they may; counted."""

    def __init__(self, took_s: float = 0.0, *, hangs: bool = False) -> None:
        self.took_s = took_s
        self.hangs = hangs
        self.runs = 0

    def __call__(self, moment: Moment, *, most_cpu_s: float) -> Float64Array:
        self.runs += 1
        if self.hangs or self.took_s > most_cpu_s:
            raise TimeoutError
        until = time.thread_time() + self.took_s
        while time.thread_time() < until:
            pass
        return np.zeros(len(moment.asked))


def site_runs_of(known: Known, monkeypatch: pytest.MonkeyPatch, slow: Slow) -> SiteRuns:
    monkeypatch.setattr(site_runs, "planned_waits", slow)
    return SiteRuns(known, 20_000, SampleModels())


def answers(runs: SiteRuns, seen: Look) -> bool:
    moment = QueueMoment.of(seen, ForecastSettings()).everybody()
    return bool(runs.forecast(moment).answered.all())


def test_a_queue_that_takes_too_long_is_left_to_others_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, slow = Known(SITE), Slow(hangs=True)
    runs = site_runs_of(known, monkeypatch, slow)
    jobs = [waiting(str(number), 2, 100) for number in range(2, 12)]
    assert not answers(runs, look(*jobs))
    assert known.noted == "a run of 11 jobs takes longer than 2 s"
    assert not answers(runs, look(*jobs, now=NOW + 60))
    assert slow.runs == 1
    slow.hangs = False
    assert answers(runs, look(*jobs[:5], now=NOW + 120))
    assert (slow.runs, known.noted) == (3, "")  # coarsely, then in full
    slow.hangs = True
    assert not answers(runs, look(*jobs, now=NOW + 180))
    slow.hangs = False
    assert not answers(runs, look(*jobs, now=NOW + 900))
    assert answers(runs, look(*jobs, now=NOW + 180 + 1800))


def test_with_too_few_samples_in_the_time_it_is_left_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Known(SITE)
    monkeypatch.setattr("foretime_sidecar.forecasts.adaptive_forward_runs._ALL_S", 0.4)
    runs = site_runs_of(known, monkeypatch, Slow(0.1))
    assert not answers(runs, look(HEAD, SMALL))
    assert known.noted == "a run of 3 jobs takes longer than 0.08 s"


class ByDetail(Slow):
    """Runs that are quick only where they are coarse."""

    def __call__(self, moment: Moment, *, most_cpu_s: float) -> Float64Array:
        slurm = moment.policy.backfill
        assert isinstance(slurm, Slurm)
        self.took_s = 0.01 if slurm.coarse else 0.1
        return super().__call__(moment, most_cpu_s=most_cpu_s)


def test_a_long_queue_is_run_coarsely_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known(SITE)
    monkeypatch.setattr("foretime_sidecar.forecasts.adaptive_forward_runs._ALL_S", 2.0)
    runs = site_runs_of(known, monkeypatch, ByDetail())
    assert answers(runs, look(HEAD, SMALL))
    assert (known.noted, runs.leaves_out) == ("", (COARSELY,))
    # Ten of the others fit, and fifty do not; in ten seconds they do.
    monkeypatch.setattr("foretime_sidecar.forecasts.adaptive_forward_runs._ALL_S", 10.0)
    assert answers(runs, look(HEAD, SMALL, now=NOW + 60))
    assert runs.leaves_out == ()


def test_jobs_in_a_reservation_start_with_it_as_the_site_says() -> None:
    known = Known(SITE)
    night = Reservation("night", NOW + 600, NOW + 7_200, nodes=frozenset({"n4"}))
    inside = waiting("4", 2, 300, reservation="night")
    seen = replace(look(HEAD, SMALL, inside), reservations=(night,))
    moment = QueueMoment.of(seen, ForecastSettings()).everybody()
    answer = SiteRuns(known, 20_000, SampleModels()).forecast(moment)
    assert known.noted == ""
    assert answer.answered.all()
    likely_s = dict(zip(("2", "3", "4"), answer.wait_s[:, 11].tolist(), strict=True))
    assert 600 <= likely_s["4"] <= 700
    assert likely_s["3"] > 700


LIMITED = replace(
    BACKFILLS,
    qos={"normal": Qos("normal", limits=Limits(max_jobs=1))},
    associations=(
        Association("root"),
        Association("physics", parent="root"),
        *(
            Association("physics", user=user, qos=("normal",), default_qos="normal")
            for user in ("ann", "bob")
        ),
    ),
    enforced=frozenset({"associations", "limits", "qos"}),
)
"""One job of a user at a time."""


def of_ann(job: QueuedJob, **more: Any) -> QueuedJob:
    return replace(job, request=replace(job.request, user="ann"), qos="normal", **more)


def test_a_job_at_a_limit_starts_when_the_limit_lets_it() -> None:
    kept = of_ann(waiting("4", 2, 900), reason="QOSMaxJobsPerUserLimit")
    _, board = board_of(Known(LIMITED), look(SMALL, kept))
    assert likely(board, "3") == 0
    row = board.tasks["4"]
    assert row.kept_back is None
    assert row.waits is not None
    # As soon as the running job of that user has ended, which asked for 50 minutes more.
    assert 0 < row.waits.at(0.5) <= 3_100
    # Without a site nobody knows: it is forecast as if it were let go.
    _, board = board_of(Known(None), look(SMALL, kept))
    assert board.tasks["4"].kept_back == "at a limit"
    assert "limits of users, accounts and QOS are not known: jobs at one are left out" in (
        board.assumptions
    )


def test_the_policy_of_the_settings_says_nothing_of_a_job_at_a_limit() -> None:
    kept = of_ann(waiting("4", 16, 900), reason="AssocGrpCpuLimit")
    moment = QueueMoment.of(look(SMALL, kept), ForecastSettings(), knows_limits=True)
    answer = ForecastLadder(20_000).forecast(moment.everybody())
    assert answer.answered.tolist() == [True, False]
    # Nor does it stand in anybody's way, or is it promised a start.
    assert answer.wait_s[0, -1] == 0
    assert waiting_now(moment.taken.snapshot).tolist() == [True, False]


def test_what_the_site_does_not_know_of_a_job_is_left_out() -> None:
    odd = replace(SMALL, qos="new", licenses="matlab:2", nice=7)
    moment = QueueMoment.of(look(HEAD, odd), ForecastSettings()).everybody()
    told = under_slurm(moment, LIMITED).snapshot.told
    assert told is not None
    assert isinstance(told[2], ToldJob)
    assert (told[2].said.qos, told[2].said.licenses, told[2].said.nice) == (None, None, 7)
    assert (told[2].user, told[2].account, told[2].priority) == ("bob", "physics", 400)


def test_a_new_job_of_somebody_at_a_limit_waits_for_it() -> None:
    waits, board = board_of(Known(LIMITED), look(SMALL))
    new = NewJob(JobRequest("", "ann", "physics", 1, 600, NOW, "main"))
    answer = waits.what_if(board, new).waits
    assert answer is not None
    assert answer.at(0.5) > 0


WEIGHED = replace(
    LIMITED,
    parameters=SlurmParameters(bf_interval=1),
    priority=SlurmPriority(weight_qos=1_000),
    qos={**LIMITED.qos, "high": Qos("high", priority=100), "never": Qos("never", priority=1)},
    associations=tuple(
        replace(one, qos=("normal", "high")) if one.user == "ann" else one
        for one in LIMITED.associations
    ),
)
"""As LIMITED; a QOS ``high`` goes before all, and knows no limit."""


def of_qos(site: SlurmSite, qos: str | None) -> int:
    """Give the likely wait of a new job of ann's beside HEAD, which has to wait itself."""
    waits, board = board_of(Known(site), look(HEAD))
    new = NewJob(JobRequest("", "ann", "physics", 12, 600, NOW, "main"), qos=qos)
    answer = waits.what_if(board, new).waits
    assert answer is not None
    return answer.at(0.5)


def test_a_new_job_has_the_limits_and_the_priority_of_its_qos() -> None:
    # Under high it goes before HEAD, and waits for the running job alone.
    assert 0 < of_qos(WEIGHED, "high") < of_qos(WEIGHED, "normal")
    assert of_qos(WEIGHED, "normal") == of_qos(WEIGHED, None)
    # The limit of the default QOS keeps a narrow job that would have room at once.
    waits, board = board_of(Known(WEIGHED), look(SMALL))
    narrow = NewJob(JobRequest("", "ann", "physics", 1, 600, NOW, "main"))
    kept, free = (waits.what_if(board, replace(narrow, qos=qos)).waits for qos in (None, "high"))
    assert kept is not None
    assert free is not None
    assert (free.at(0.5), kept.at(0.5) > 0) == (0, True)


@pytest.mark.parametrize(
    ("qos", "told"),
    [
        ("hihg", "qos = 'hihg': there is no such QOS; there are high, never, normal"),
        ("never", "qos = 'never': ann may not have it in account physics; there are high, normal"),
    ],
)
def test_a_qos_that_nobody_could_have_is_refused(qos: str, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        of_qos(WEIGHED, qos)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_queue_holds_runs_to_its_end(seed: int) -> None:
    """Arrays, dependencies, begin times, reservations, nodes by name, and limits on tasks."""
    rng = np.random.default_rng(seed)
    jobs = []
    for number in range(2, 25):
        job = waiting(str(number), int(rng.integers(1, 9)), int(rng.integers(1, 9)))
        kind = rng.integers(8)
        if kind == 0:
            array = replace(job.request, array_id=job.request.job_id)
            job = replace(job, request=array, tasks=4, pending_tasks="1-4", array_limit=2)
        elif kind == 1:
            on = int(rng.integers(1, number))
            text = f"{rng.choice(['after', 'afterany'])}:{on}"
            text += "+3(unfulfilled)" if text.startswith("after:") else "(unfulfilled)"
            job = replace(job, dependent=True, dependency=text)
        elif kind == 2:
            job = replace(job, eligible_time=NOW + int(rng.integers(0, 9_000)))
        elif kind == 3:
            job = replace(job, reservation="night")
        elif kind == 4:
            job = replace(job, request=replace(job.request, queue="short,main"))
        elif kind == 5:
            asked = AskedNodes(nodes=1, tasks=1, required=frozenset({"n2"}))
            job = replace(job, request=replace(job.request, processors=1), asked=asked)
        elif kind == 6:
            job = replace(job, asked=AskedNodes(nodes=2, tasks=2, exclusive=True))
        jobs.append(job)
    night = Reservation("night", NOW + 600, NOW + 7_200, nodes=frozenset({"n4"}))
    seen = replace(look(*jobs), reservations=(night,))
    known = Known(replace(BACKFILLS, parameters=SlurmParameters()))
    _, board = board_of(known, seen)
    assert known.noted == ""
    assert all(row.waits is not None for row in board.rows)


def test_a_higher_tier_goes_before_the_first_of_the_queue() -> None:
    """By age alone its plan is a bound, but not where partitions differ in their tiers."""
    by_age = replace(SITE, priority=SlurmPriority(weight_age=1000))
    moment = QueueMoment.of(look(HEAD), ForecastSettings()).everybody()
    machine = moment.snapshot.machine
    assert machine is not None
    one_tier = tuple(replace(part, priority_tier=1) for part in machine.slurm_partitions)
    flat = replace(moment.snapshot, machine=replace(machine, slurm_partitions=one_tier))
    assert keeps_the_head_first(flat, moment.policy, by_age)
    assert not keeps_the_head_first(moment.snapshot, moment.policy, by_age)
