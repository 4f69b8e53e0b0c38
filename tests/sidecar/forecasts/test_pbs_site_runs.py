"""The queue run forward as the site's own PBS schedules, and what that does not know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import AskedChunks, HeldNode
from foretime_sidecar.forecasts.forecast_board import Board
from foretime_sidecar.forecasts.job_question import JobParameters, question_of
from foretime_sidecar.forecasts.pbs_moment import check_room, under_pbs
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob, QueueMoment
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.engine.forward import start_times_of
from foretime_sim.engine.told_pbs_jobs import ToldPbsJob
from foretime_sim.policies.policy import Correction
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import (
    PbsHost,
    PbsQueue,
    PbsReservation,
    PbsServer,
    PbsSite,
    ShareGroup,
)
from foretime_sim.workloads.node_request import HostChunk

NOW = 1_700_000_000
HOSTS = tuple(PbsHost(f"n{number}", {"ncpus": 4, "mem": 8 * 2**30}) for number in range(1, 5))
# Nobody passes a job that waits.
SITE = PbsSite(
    (PbsHost("login", {"ncpus": 0}), *HOSTS),
    (PbsQueue("workq"), PbsQueue("high", priority=100)),
    PbsServer(backfill_depth=0),
    PbsScheduler(strict_ordering=True),
)
DEFAULTS = replace(SITE, scheduler=PbsScheduler())


def chunk(cpus: int, number: int = 1, **more: Any) -> AskedChunks:
    return AskedChunks((HostChunk(number, cpus),), project="_pbs_project_default", **more)


HELD = QueuedJob(
    JobRequest("1.pbs", "ann", None, 12, 3600, NOW - 900, "workq"),
    QueueState.RUNNING,
    start_time=NOW - 600,
    has_nodes=tuple(HeldNode(f"n{number}", 4) for number in (1, 2, 3)),
    chunks=chunk(4, 3),
)


def waiting(number: int, asked: AskedChunks | None, cpus: int = 4, **more: Any) -> QueuedJob:
    values: dict[str, Any] = {"user": "bob", "queue": "workq", "walltime_s": 1800} | more
    request = JobRequest(
        f"{number}.pbs",
        values["user"],
        None,
        cpus,
        values["walltime_s"],
        NOW - 800 + number,
        values["queue"],
    )
    return QueuedJob(request, QueueState.PENDING, chunks=asked)


# The first can't start before the running job has ended, the second has room beside it.
HEAD, SMALL = waiting(2, chunk(4, 4), 16), waiting(3, chunk(2), 2)


@dataclass
class Known:
    """A site that is known, and what was noted of it."""

    site: PbsSite | None
    noted: str = "nothing"
    read_at: int | None = None

    def note_runs(self, why_not: str) -> None:
        self.noted = why_not


def look(*jobs: QueuedJob, away: frozenset[str] = frozenset(), running: QueuedJob = HELD) -> Look:
    queue = Queue(16 - 4 * len(away), (running, *jobs), away)
    return Look(NOW, queue, soft_limit=True, correction=Correction.PBS)


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


def starts(site: PbsSite, seen: Look, *runtime_s: int, read_at: int | None = None) -> list[int]:
    """Seconds from now at which the jobs start that wait."""
    moment = QueueMoment.of(seen, ForecastSettings()).everybody()
    by_site, _ = under_pbs(moment, site, read_at)
    runtimes = np.array([runtime_s], dtype=np.int64)
    found = start_times_of(by_site.asked, by_site.snapshot, by_site.policy, runtimes)[0]
    return [int(start) - NOW for start in found]


def test_the_queue_goes_on_as_the_site_schedules_and_that_is_said() -> None:
    known = Known(SITE)
    waits, board = board_of(known, look(HEAD, SMALL))
    assert known.noted == ""
    assert likely(board, "3.pbs") > 60
    assert board.assumptions[0] == (
        "the queue is simulated as this site's PBS 23.06.06 schedules, by its order and limits"
    )
    assert not any(
        "reservations and limits are not taken into account" in each for each in board.assumptions
    )
    new = waits.what_if(board, NewJob(JobRequest("", "cat", None, 2, 600, NOW, "workq")))
    assert new.waits is not None
    assert new.waits.at(0.5) > 60
    # With PBS's defaults whoever fits starts, and so it is by the settings, where no site is known.
    for other in (Known(DEFAULTS), Known(None), None):
        _, board = board_of(other, look(HEAD, SMALL))
        assert likely(board, "3.pbs") == 0
    assert (
        board.assumptions[0]
        == "the queue is simulated in the order priority, with easy backfilling"
    )


def test_a_job_that_is_asked_about_has_its_chunks() -> None:
    """Four CPUs are free on one host, and n1 to n3 are taken for 300 to 3,000 s more."""
    known = Known(DEFAULTS)
    waits, board = board_of(known, look(HEAD))

    def likely_of(**asked: object) -> int:
        parameters = JobParameters.model_validate({"time": "10", **asked})
        question = question_of(parameters, "cat", NOW)
        new = NewJob(question.request, chunks=question.chunks)
        found = waits.what_if(board, new).waits
        assert found is not None
        return found.at(0.5)

    assert board.site is DEFAULTS
    assert likely_of(select="2:ncpus=2") == 0
    assert likely_of(select="2:ncpus=2", place="scatter") > 0
    assert likely_of(select="1:ncpus=2:mem=8gb+1:ncpus=2") == 0
    assert likely_of(select="2:ncpus=2:mem=8gb") > 0
    assert likely_of(ntasks=2, cpus_per_task=2) == 0
    assert likely_of(nodes="2", ntasks=2) > 0
    # A generic backfilling has a flat pool, and says what it does not look at.
    waits, board = board_of(Known(None), look(HEAD))
    assert board.site is None
    assert likely_of(select="2:ncpus=2", place="scatter") == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"select": "1:ncpus=6"}, "1 x 6 CPUs: .* have room for 0; ask for less"),
        ({"select": "1+1:ncpus=4:mem=9gb"}, "1 x 4 CPUs, 9,216 MiB: .* room for 0"),
        ({"select": "1:ngpus=1"}, r"1 CPUs, 1 GPUs: .* at most 4 CPUs, 8,192 MiB\)"),
        ({"select": "5:ncpus=1", "place": "scatter"}, "5 x 1 CPUs: .* have room for 4;"),
        ({"select": "3:ncpus=2", "place": "pack"}, "3 x 2 CPUs: .* have room for 2;"),
        ({"select": "9:ncpus=2:mem=8gb"}, "processors = 18: only 16 processors are up now"),
        ({"nodes": "5", "ntasks": 5}, "5 x 1 CPUs: .* have room for 4;"),
    ],
)
def test_chunks_that_fit_on_no_hosts_are_refused(asked: dict[str, object], said: str) -> None:
    waits, board = board_of(Known(DEFAULTS), look(HEAD))
    question = question_of(JobParameters.model_validate({"time": "10", **asked}), "cat", NOW)
    new = NewJob(question.request, chunks=question.chunks)
    with pytest.raises(InputError, match=said):
        waits.what_if(board, new)


def test_hosts_of_a_queue_and_those_that_are_away_are_no_room_for_others() -> None:
    gpus = PbsHost("g1", {"ncpus": 8, "ngpus": 2}, queue="high")
    site = replace(DEFAULTS, hosts=(*HOSTS, gpus))
    two = AskedChunks((HostChunk(1, 8, 0, 2),))
    check_room(site, two, "high")
    for queue, away in (("workq", ()), (None, ()), ("high", ("g1",))):
        with pytest.raises(InputError, match="have room for 0"):
            check_room(site, two, queue, frozenset(away))


def test_jobs_have_the_hosts_and_chunks_that_pbs_tells() -> None:
    # Two of three on one host each, and n1 to n3 are taken: free packs what scatter does not.
    two = AskedChunks((HostChunk(2, 2),))
    scattered = replace(two, place="scatter")
    assert starts(DEFAULTS, look(waiting(2, two)), 900, 60) == [0]
    assert starts(DEFAULTS, look(waiting(2, scattered)), 900, 60) == [300]
    alone = replace(two, exclusive=True)
    assert starts(DEFAULTS, look(SMALL, waiting(4, alone)), 900, 500, 60) == [0, 300]
    large = AskedChunks((HostChunk(1, 1, 9 * 2**30),))
    nobody = starts(DEFAULTS, look(waiting(2, large)), 900, 60)[0]
    assert nobody > 10**9, "no host has that much memory"


def test_queues_priorities_and_limits_are_those_of_the_site() -> None:
    late, wide = waiting(2, chunk(4, 4), 16), waiting(3, chunk(4, 4), 16, queue="high")
    assert starts(SITE, look(late, wide), 900, 60, 60) == [360, 300]
    keys = replace(SITE.scheduler, job_sort_key=(("job_priority", True),))
    raised = waiting(3, chunk(4, 4, priority=5), 16)
    assert starts(replace(SITE, scheduler=keys), look(late, raised), 900, 60, 60) == [360, 300]
    limits = PbsServer(limits=PbsLimits(max_run={"u:PBS_GENERIC": 1}))
    anns = waiting(2, chunk(1), 1, user="ann")
    assert starts(replace(DEFAULTS, server=limits), look(anns, SMALL), 900, 60, 60) == [300, 0]


def test_a_host_that_is_away_takes_no_jobs_and_its_own_run_on() -> None:
    away = frozenset({"n4"})
    assert starts(DEFAULTS, look(SMALL, away=away), 900, 60) == [300]
    assert starts(DEFAULTS, look(SMALL, away=frozenset({"n1"})), 900, 60) == [0]
    with pytest.raises(InputError, match="no host takes jobs now"):
        starts(SITE, look(SMALL, away=frozenset({"login", "n1", "n2", "n3", "n4"})), 900, 60)


def test_reservations_of_the_site_are_heeded_and_jobs_inside_them_have_no_hosts_besides() -> None:
    night = PbsReservation("R9.pbs", NOW + 60, NOW + 7_000, {"n4": {"ncpus": 4}})
    site = replace(DEFAULTS, reservations=(night,))
    assert starts(site, look(SMALL), 900, 60) == [300]
    inside = replace(
        HELD,
        request=replace(HELD.request, queue="R9", processors=4),
        has_nodes=(HeldNode("n4", 4),),
        reservation="R9",
    )
    now = replace(night, start=NOW - 700)
    seen = look(waiting(2, chunk(4, 4), 16), running=inside)
    assert starts(replace(DEFAULTS, reservations=(now,)), seen, 900, 60) == [7_000]


def test_fair_share_goes_on_from_the_usage_when_it_was_read() -> None:
    fair = PbsScheduler(strict_ordering=True, fair_share=True, fairshare_usage_res="ncpus*walltime")
    anns, bobs = (
        waiting(number, chunk(4, 4), 16, user=user) for number, user in ((2, "ann"), (3, "bob"))
    )
    # Ann's job has used 12 * 600 s until now, and 12 * 100 s of it since the site was read.
    for bob_used, read_at, expected in (
        (1_100.0, NOW, [300, 360]),
        (900.0, NOW, [360, 300]),
        (1_100.0, NOW - 100, [360, 300]),
        (2_300.0, NOW - 100, [300, 360]),
    ):
        groups = (ShareGroup("ann", usage=1_000.0), ShareGroup("bob", usage=bob_used))
        site = replace(SITE, scheduler=fair, share_groups=groups)
        told = starts(site, look(anns, bobs), 900, 60, 60, read_at=read_at)
        assert told == expected, (bob_used, read_at)


def test_usage_is_as_of_its_file_and_decays_on() -> None:
    """Ann's job, of 12 CPUs, is charged for 150 s more by the last cycle before it ends: 1,800."""
    fair = PbsScheduler(
        strict_ordering=True,
        fair_share=True,
        fairshare_usage_res="ncpus*walltime",
        fairshare_decay_time_s=1000,
    )
    server = PbsServer(backfill_depth=0, scheduler_iteration_s=150)
    anns, bobs = (
        waiting(number, chunk(4, 4), 16, user=user) for number, user in ((2, "ann"), (3, "bob"))
    )
    ann_first, bob_first = [300, 360], [360, 300]
    for written, decayed, bob_used, expected in (
        (NOW, NOW, 2_799.0, bob_first),
        (NOW, NOW, 2_801.0, ann_first),
        # 1,200 more since the file was written, which was before the site was read.
        (NOW - 100, NOW, 3_999.0, bob_first),
        (NOW - 100, NOW, 4_001.0, ann_first),
        # A decay is due now: her 1,000 are 500.
        (NOW, NOW - 1_001, 4_599.0, bob_first),
        (NOW, NOW - 1_001, 4_601.0, ann_first),
    ):
        groups = (ShareGroup("ann", usage=1_000.0), ShareGroup("bob", usage=bob_used))
        site = replace(
            SITE,
            server=server,
            scheduler=fair,
            share_groups=groups,
            usage_at=written,
            decayed_at=decayed,
        )
        told = starts(site, look(anns, bobs), 900, 60, 60, read_at=NOW - 50)
        assert told == expected, (written, decayed, bob_used)


def test_what_the_model_leaves_out_is_said() -> None:
    odd = waiting(2, replace(chunk(2), not_modelled=("host of chunks",)))
    strange = waiting(3, chunk(2), queue="new")
    site = replace(DEFAULTS, not_modelled=("Hook limits (queuejob): what it changes.",))
    _, board = board_of(Known(site), look(odd, strange))
    said = "; ".join(board.assumptions)
    assert "host of chunks (1 jobs)" in said
    assert "the site has no hosts for the queues of 1 jobs" in said
    assert "1 things of this site are not modelled" in said


def test_jobs_of_which_pbs_tells_no_chunks_have_their_processors_anywhere() -> None:
    moment = QueueMoment.of(look(waiting(2, None, 6)), ForecastSettings()).everybody()
    told = moment.snapshot.told
    assert told is not None
    assert isinstance(told[1], ToldPbsJob)
    assert told[1].chunks == ()
    assert starts(DEFAULTS, look(waiting(2, None, 6)), 900, 60) == [300]
    assert starts(DEFAULTS, look(waiting(2, None, 4)), 900, 60) == [0]


def test_a_moment_of_which_nothing_is_told_is_refused() -> None:
    moment = QueueMoment.of(look(SMALL), ForecastSettings()).everybody()
    with pytest.raises(InputError, match="what jobs ask of hosts is not known"):
        under_pbs(replace(moment, snapshot=replace(moment.snapshot, told=None)), SITE)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_queue_holds_runs_to_its_end(seed: int) -> None:
    """Chunks of any kind, arrays, queues, jobs that are planned short."""
    rng = np.random.default_rng(seed)
    jobs = []
    for number in range(2, 25):
        asked = AskedChunks(
            tuple(
                HostChunk(int(rng.integers(1, 3)), int(rng.integers(1, 5)))
                for _ in range(rng.integers(1, 3))
            ),
            str(rng.choice(["free", "pack", "scatter"])),  # type: ignore[arg-type]
            bool(rng.integers(2)),
            int(rng.integers(-3, 3)),
        )
        queue = str(rng.choice(["workq", "high"]))
        job = waiting(number, asked, int(rng.integers(1, 17)), queue=queue)
        kind = rng.integers(4)
        if kind == 0:
            array = replace(job.request, job_id=f"{number}[].pbs")
            job = replace(job, request=array, tasks=3, pending_tasks="1-3")
        elif kind == 1:
            job = replace(job, time_min=600)
        jobs.append(job)
    known = Known(replace(SITE, server=PbsServer(backfill_depth=2)))
    _, board = board_of(known, look(*jobs))
    assert known.noted == ""
    assert all(row.waits is not None for row in board.rows)
