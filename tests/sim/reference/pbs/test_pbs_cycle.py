"""PBS's scheduling cycle, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.reference.pbs.job import Chunk
from foretime_sim.reference.pbs.run import run_pbs
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.site import PbsQueue, PbsReservation, PbsServer

from tests.support.pbs.pbs_sites import job, site_of, starts

STRICT = {"strict_ordering": True}


def test_without_strict_ordering_a_stream_of_small_jobs_passes_a_large_one() -> None:
    jobs = [job(0, 3, 100), job(1, 4, 100), *(job(i, 1, 100) for i in range(2, 8))]
    assert starts(site_of(), *jobs) == [0, 300, 2, 100, 100, 100, 102, 200]


def test_with_strict_ordering_the_first_that_waits_is_not_delayed() -> None:
    jobs = [job(0, 3, 100), job(1, 4, 100), *(job(i, 1, 100) for i in range(2, 6))]
    assert starts(site_of(scheduler=STRICT), *jobs) == [0, 100, 200, 200, 200, 200]
    assert starts(site_of(scheduler=STRICT), *jobs[:2], job(2, 1, 50)) == [0, 100, 2]


def test_only_as_many_are_top_jobs_as_backfill_depth_says() -> None:
    two = (Chunk(2, {"ncpus": 2}),)
    jobs = [
        job(0, 2, 100),
        job(1, 2, 100, chunks=two),
        job(2, 2, 100, chunks=two),
        job(3, 2, 97),
    ]
    site = site_of(2, 2, STRICT)
    shallow = run_pbs(site, jobs)
    assert shallow.start == {0: 0, 1: 100, 2: 200, 3: 3}
    assert {who for _, who, _ in shallow.top_jobs} == {1, 2}
    at_3 = [(who, start) for when, who, start in shallow.top_jobs if when == 3]
    assert at_3 == [(1, 100)]
    deep = run_pbs(replace(site, server=PbsServer(backfill_depth=2)), jobs)
    at_3 = [(who, start) for when, who, start in deep.top_jobs if when == 3]
    assert at_3 == [(1, 100), (2, 200)]


def test_top_jobs_are_planned_anew_in_each_cycle_and_told() -> None:
    run = run_pbs(site_of(scheduler=STRICT), [job(0, 4, 50, 100), job(1, 4, 10), job(2, 1, 5)])
    # As told by walltimes; at 50 job 1 starts, and the next is planned behind it.
    assert run.top_jobs == [(1, 1, 100), (2, 1, 100), (50, 2, 60)]
    assert run.start == {0: 0, 1: 50, 2: 60}


def test_ends_within_one_span_of_a_minute_are_taken_together() -> None:
    site = site_of(scheduler={**STRICT, "opt_backfill_fuzzy_s": 60})
    jobs = [job(0, 2, 125), job(1, 2, 170), job(2, 2, 30)]
    run = run_pbs(site, [replace(each, submit_time=0) for each in jobs])
    # From 125 on there is room, but the ends of 125 and 170 are both before 180.
    assert run.top_jobs[0] == (0, 2, 170)
    assert run.start[2] == 125


def test_backfill_depth_0_with_strict_ordering_lets_nobody_pass() -> None:
    site = site_of(scheduler=STRICT, server=PbsServer(backfill_depth=0))
    jobs = [job(0, 3, 100), job(1, 4, 100), job(2, 1, 10)]
    assert starts(site, *jobs) == [0, 100, 200]


def test_a_queue_with_backfill_depth_0_stops_its_own_jobs_alone() -> None:
    queues = (PbsQueue("workq", backfill_depth=0), PbsQueue("other"))
    site = site_of(scheduler=STRICT, queues=queues)
    jobs = [job(0, 3, 100), job(1, 4, 100), job(2, 1, 10), job(3, 1, 10, queue="other")]
    assert starts(site, *jobs) == [0, 100, 200, 3]


def test_alike_jobs_share_one_verdict_whatever_their_soft_walltimes() -> None:
    """P2 in SCHEDULERS.md."""
    jobs = [
        job(0, 3, 100),
        job(1, 4, 100),
        job(2, 1, 40, 200),
        job(3, 1, 40, 200, soft_walltime_s=50),
    ]
    site = site_of(scheduler=STRICT)
    assert starts(site, *jobs)[3] == 200
    told = site_of(scheduler={**STRICT, "resources": ("ncpus", "soft_walltime")})
    assert starts(told, *jobs)[3] == 3


def test_a_running_job_is_extended_by_whole_soft_walltimes_up_to_its_walltime() -> None:
    planned = job(0, 1, 500, 250, soft_walltime_s=100)
    assert [planned.planned_end(0, now) for now in (0, 100, 101, 199, 200, 251)] == [
        100,
        100,
        200,
        200,
        250,
        250,
    ]
    plain = job(0, 1, 500, 250)
    assert [plain.planned_end(0, now) for now in (250, 251)] == [250, 252]


def test_queues_go_by_priority_and_in_turn_among_equals() -> None:
    queues = (PbsQueue("low", priority=1), PbsQueue("a", priority=5), PbsQueue("b", priority=5))
    names = ["low", "a", "a", "b", "b"]
    jobs = [job(0, 4, 100, queue="low")] + [
        job(i + 1, 4, 10, queue=name) for i, name in enumerate(names)
    ]

    def order(**scheduler: bool) -> list[int]:
        site = site_of(scheduler=scheduler, queues=queues)
        return run_pbs(site, jobs).start_order[1:]

    assert order(by_queue=True) == [2, 3, 4, 5, 1]
    assert order(by_queue=False) == [1, 2, 3, 4, 5]
    # One job a cycle: the first queue's is always the first in turn.
    assert order(round_robin=True) == [2, 3, 4, 5, 1]
    both = [replace(each, chunks=(Chunk(1, {"ncpus": 1}),)) for each in jobs[1:]]
    held = [job(0, 4, 100, queue="low"), *both]
    site = site_of(scheduler={"round_robin": True}, queues=queues)
    assert run_pbs(site, held).start_order[1:] == [2, 4, 3, 5, 1]


def test_jobs_go_by_the_formula_then_by_job_sort_key() -> None:
    jobs = [job(0, 4, 100), job(1, 1, 10), job(2, 4, 20), job(3, 4, 10)]
    site = site_of(scheduler=STRICT, server=PbsServer(job_sort_formula="ncpus"))
    assert run_pbs(site, jobs).start_order == [0, 2, 3, 1]
    site = site_of(scheduler={**STRICT, "job_sort_key": (("walltime", False),)})
    assert run_pbs(site, jobs).start_order == [0, 1, 3, 2]


def test_jobs_at_the_threshold_of_the_formula_do_not_start() -> None:
    server = PbsServer(job_sort_formula="ncpus", job_sort_formula_threshold=1)
    assert starts(site_of(server=server), job(0, 1, 10), job(1, 2, 10)) == [None, 1]


def test_limits_hold_for_who_is_named_before_the_generic() -> None:
    limits = PbsLimits(max_run={"u:PBS_GENERIC": 1, "u:alice": 2})
    site = site_of(server=PbsServer(limits=limits))
    jobs = [job(i, 1, 100, user=("alice", "bob")[i % 2]) for i in range(6)]
    assert starts(site, *jobs) == [0, 1, 2, 101, 100, 201]


def test_limits_of_resources_and_queues_hold() -> None:
    queue = PbsQueue("workq", limits=PbsLimits(max_run_res={"ncpus": {"o:PBS_ALL": 2}}))
    assert starts(site_of(queues=(queue,)), job(0, 2, 50), job(1, 1, 10)) == [0, 50]
    queue = PbsQueue("workq", resources_available={"ncpus": 2})
    assert starts(site_of(queues=(queue,)), job(0, 2, 50), job(1, 1, 10)) == [0, 50]


def test_jobs_above_max_queued_are_refused() -> None:
    server = PbsServer(limits=PbsLimits(max_queued={"u:PBS_GENERIC": 1}))
    run = run_pbs(site_of(server=server), [job(0, 1, 50), job(1, 1, 10), job(60, 1, 10)])
    assert run.start == {0: 0, 60: 60}
    assert "max" not in run.refused[1]
    assert "u:PBS_GENERIC" in run.refused[1] or "u:user" in run.refused[1]


def test_chunks_go_to_the_first_hosts_with_room_as_place_says() -> None:
    two = (Chunk(2, {"ncpus": 2}),)
    site = site_of(2, 4)
    placed = {
        place: run_pbs(site, [job(0, 2, 10, chunks=two, place=place)]).placement[0]
        for place in ("free", "pack", "scatter")
    }
    assert placed == {
        "free": {"n0": {"ncpus": 4}},
        "pack": {"n0": {"ncpus": 4}},
        "scatter": {"n0": {"ncpus": 2}, "n1": {"ncpus": 2}},
    }
    busy = [job(0, 3, 100), job(1, 2, 10, chunks=two, place="pack")]
    assert run_pbs(site, busy).placement[1] == {"n1": {"ncpus": 4}}
    alone = [job(0, 1, 100), job(1, 1, 10, exclusive=True), job(2, 1, 10)]
    assert [list(p) for p in run_pbs(site, alone).placement.values()] == [["n0"], ["n1"], ["n0"]]


def test_nobody_starts_into_a_reservation_and_soft_walltimes_do_not_count_there() -> None:
    reservation = PbsReservation("R1", 100, 200, {"n0": {"ncpus": 4}})
    site = site_of(reservations=(reservation,))
    assert starts(site, job(0, 1, 100)) == [0]
    assert starts(site, job(0, 1, 10, 101)) == [200]
    assert starts(site, job(0, 1, 10, 101, soft_walltime_s=20)) == [200]
    assert starts(site, job(0, 1, 10, submit_time=150)) == [200]


def test_jobs_of_other_queues_keep_out_of_dedicated_time() -> None:
    queues = (PbsQueue("workq"), PbsQueue("dedtime"))
    site = site_of(queues=queues, dedicated_time=((100, 200),))
    jobs = [job(0, 1, 150), job(1, 1, 99), job(2, 1, 50, queue="dedtime"), job(110, 1, 10)]
    # Nothing tells PBS that dedicated time has ended but the next cycle: 600 s after the last.
    assert starts(site, *jobs) == [750, 1, 100, 750]


def test_a_cycle_comes_at_least_every_scheduler_iteration() -> None:
    site = site_of(dedicated_time=((0, 150),), server=PbsServer(scheduler_iteration_s=60))
    assert starts(site, job(0, 1, 10)) == [180]


def test_jobs_that_end_in_one_second_leave_one_by_one() -> None:
    site = site_of(2, 4, server=PbsServer(limits=PbsLimits(max_run={"o:PBS_ALL": 2})))
    jobs = [job(0, 4, 100), job(1, 4, 99), job(2, 4, 10), job(3, 4, 10)]
    run = run_pbs(site, jobs, [("E", 1), ("E", 0)])
    # When job 1 has ended, job 0 is no longer counted but still has its host.
    assert run.start == {0: 0, 1: 1, 2: 100, 3: 100}
    assert (list(run.placement[2]), list(run.placement[3])) == (["n1"], ["n0"])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"queues": (PbsQueue("workq", priority=150),)}, "express queue"),
        ({"queues": (PbsQueue("workq"), PbsQueue("p_day"))}, "primetime"),
        ({"scheduler": {"backfill_prime": True}}, "backfill_prime"),
        ({"scheduler": {"smp_cluster_dist": "round_robin"}}, "smp_cluster_dist"),
        ({"scheduler": {"fairshare_entity": "Account_Name"}}, "Account_Name"),
        ({"server": PbsServer(job_sort_formula="open('x')")}, "open"),
        ({"server": PbsServer(job_sort_formula="ncpus ** [1]")}, "List"),
        (
            {"server": PbsServer(job_sort_formula="eligible_time", eligible_time_enable=True)},
            "eligible_time",
        ),
    ],
)
def test_what_is_not_modelled_is_refused_by_name(settings: dict[str, object], told: str) -> None:
    site = site_of(**settings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=told):
        run_pbs(site, [job(0, 1, 10)])


def test_jobs_that_are_not_modelled_are_refused() -> None:
    with pytest.raises(InputError, match="place=vscatter"):
        job(0, 1, 10, place="vscatter")
    with pytest.raises(InputError, match="shrink to fit"):
        job(0, 1, 10, resources={"min_walltime": 5})
    with pytest.raises(InputError, match="soft_walltime"):
        job(0, 1, 10, soft_walltime_s=0)
    with pytest.raises(InputError, match="did you mean 'workq'"):
        run_pbs(site_of(), [job(0, 1, 10, queue="work")])


def test_top_jobs_of_a_queue_with_its_own_depth_do_not_count_for_the_server() -> None:
    queues = (PbsQueue("workq", backfill_depth=1), PbsQueue("other"))
    site = site_of(scheduler={**STRICT, "by_queue": False}, queues=queues)
    jobs = [
        job(0, 3, 100),
        *(job(i, 4, 10 * i, queue=("other", "workq")[i % 2]) for i in range(1, 5)),
    ]
    run = run_pbs(site, jobs)
    assert [(who, start) for when, who, start in run.top_jobs if when == 4] == [(1, 100), (2, 110)]


def test_limits_hold_when_a_top_job_will_run_too() -> None:
    limits = PbsLimits(max_run={"u:alice": 1})
    site = site_of(2, 4, STRICT, server=PbsServer(limits=limits))
    jobs = [
        job(0, 4, 100),
        job(1, 3, 300),
        job(2, 4, 50, user="alice"),
        job(3, 1, 200, user="alice"),
    ]
    # Job 3 fits beside job 1, but alice's job 2 will run from 100 on.
    assert starts(site, *jobs) == [0, 1, 100, 150]


def test_a_job_that_would_run_all_through_dedicated_time_waits() -> None:
    site = site_of(dedicated_time=((100, 200),), server=PbsServer(scheduler_iteration_s=60))
    # The last cycle for a job was at 1, then each minute.
    assert starts(site, job(0, 1, 300), job(1, 1, 100)) == [241, 241]
    assert starts(site, job(0, 1, 99)) == [0]


def test_jobs_of_queues_that_may_not_run_now_are_no_top_jobs() -> None:
    queues = (PbsQueue("workq"), PbsQueue("dedtime"), PbsQueue("stopped", started=False))
    site = site_of(
        scheduler={**STRICT, "by_queue": False}, queues=queues, dedicated_time=((100, 200),)
    )
    jobs = [
        job(0, 1, 50, queue="dedtime"),
        job(1, 1, 50, queue="stopped"),
        job(2, 4, 50),
        job(3, 4, 20),
    ]
    run = run_pbs(site, jobs)
    assert {who for _, who, _ in run.top_jobs} == {3}
    assert 1 not in run.start
