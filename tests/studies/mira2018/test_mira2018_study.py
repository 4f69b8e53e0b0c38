"""The replay of Mira's weeks: what it begins with, what is scored, and how near it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.cobalt_log import parse_cobalt_log
from foretime_sim.machines.bluegene.cobalt_partitions import read_cobalt_partitions
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.bluegene.machine_file import parse_bgp_machine
from foretime_sim.policies.order import Order
from foretime_studies.mira2018.command import report
from foretime_studies.mira2018.study import (
    SCORED_S,
    Mira2018,
    Week,
    busy_share,
    half_empty_s,
    policy_of,
    read_weeks,
    replay,
    study,
    week_of,
)
from foretime_studies.mira2018.tables import rank_correlation, tables

from tests.support.workloads.bgp_descriptions import TWO_ROWS

MIDNIGHT, DAY, HOUR = 1_516_320_000, 86_400, 3_600
BEGIN = MIDNIGHT + 2 * DAY


def machine() -> BgpMachine:
    return parse_bgp_machine(TWO_ROWS, source="two-rows.toml")


def event(
    job: int, submit: int, start: int, runtime: int, nodes: int, on: str, queue: str = "prod"
) -> str:
    return (
        f"01/18/2018 00:00:00;E;{job};qtime={submit} Resource_List.nodect={nodes} "
        f"Resource_List.walltime=12:00:00 start={start} end={start + runtime} "
        f"exec_host={on} queue_name={queue}\n"
    )


def made_week(*more: str) -> Week:
    """Give two prepared days, a running and a waiting job at their end, and what is said."""
    text = (
        event(1, MIDNIGHT - HOUR, MIDNIGHT - HOUR, 2 * HOUR, 512, "TORUS-R00-M0-512")
        + event(2, BEGIN - HOUR, BEGIN - HOUR, 5 * HOUR, 4_096, "TORUS-R10-R13-4096")
        + event(3, BEGIN - DAY, BEGIN + 4 * HOUR, HOUR, 8_192, "TORUS-R00-R13-8192")
        + "".join(more)
    )
    return week_of(parse_cobalt_log(text, source="made.log"))


def test_a_week_by_hand() -> None:
    """Job 3 wants the whole machine, which is free when job 2 ends; job 5 is backfilled, 4 waits.

    Job 2 was given five hours, of which one is over, and asked for twelve: so job 3 is expected to
    start in eleven hours, and what asked for twelve does not start before it.
    """
    week = made_week(
        event(4, BEGIN + 60, BEGIN + 6 * HOUR, HOUR, 512, "TORUS-R00-M0-512"),
        event(5, BEGIN + 60, BEGIN + 60 + HOUR, HOUR, 512, "TORUS-R00-M1-512").replace(
            "walltime=12", "walltime=10"
        ),
    )
    assert week.begin == BEGIN - week.unix_start_time
    assert week.running.tolist() == [False, False, True, False, False]  # by submission: 1, 3, 2
    assert week.waiting.tolist() == [False, True, False, False, False]
    assert week.scored.tolist() == [False, False, False, True, True]
    done = replay(week, machine(), policy_of(Order.FCFS))
    begin = week.begin
    assert (done.start_time - begin).tolist()[1:] == [4 * HOUR, -HOUR, 5 * HOUR, 60]
    assert done.bgp_partitions[1:3] == ("TORUS-R00-R13-8192", "TORUS-R10-R13-4096")
    assert done.moved == 0
    inside = 4_096 * 4 * HOUR + 8_192 * HOUR + 512 * 2 * HOUR
    assert busy_share(week, done.start_time, machine()) == pytest.approx(
        inside / (8_192 * SCORED_S)
    )
    # Row 1 alone is half of the machine: half empty is less than that, as when job 4 alone waits.
    assert half_empty_s(week, done.start_time, machine()) == 0
    late = replace(week, submit_time=np.minimum(week.submit_time, begin))
    assert half_empty_s(late, week.start_time, machine()) == HOUR


def test_what_ran_on_an_unknown_bgp_partition_is_placed_anew() -> None:
    week = made_week()
    names = tuple(name.replace("R10-R13", "R10-R19") for name in week.bgp_partitions)
    done = replay(replace(week, bgp_partitions=names), machine(), policy_of(Order.WFP))
    assert done.moved == 1
    assert done.start_time.tolist() == week.start_time.tolist()


def test_reservations_are_not_scored() -> None:
    week = made_week(event(4, BEGIN, BEGIN + 9, 9, 512, "TORUS-R00-M0-512", "R.hw.test"))
    assert not week.scored.any()


def test_days_that_are_not_prepared() -> None:
    with pytest.raises(InputError, match="its first two days are not prepared"):
        made_week(event(4, MIDNIGHT, MIDNIGHT + 9, HOUR, 512, "TORUS-R00-M0-512"))


def test_ties_share_their_rank_in_the_correlation() -> None:
    """Ties share their rank: 1, 2.5, 2.5, 4 against 1, 2, 3.5, 3.5."""
    a, b = np.array([1, 5, 5, 9]), np.array([0, 2, 7, 7])
    assert rank_correlation(a, a) == pytest.approx(1)
    assert rank_correlation(a, -a) == pytest.approx(-1)
    assert rank_correlation(a, b) == pytest.approx(0.8333333)


@pytest.fixture(scope="module")
def mira(bluegene: Callable[[str], Path]) -> Mira2018:
    real = read_cobalt_partitions(bluegene("mira-partitions.xml.gz"))
    logs = [bluegene(f"mira-2018-wk{week}.cobalt.log.gz") for week in (1, 2, 3, 4)]
    return study(read_weeks(logs), real)


def test_simulated_waits_are_near_the_logged_ones(mira: Mira2018) -> None:
    """WFP, which Mira ran, comes much nearer than FCFS, which it did not."""
    means = {
        order: float(np.concatenate(mira.waits(order)).mean()) / HOUR
        for order in (None, Order.WFP, Order.FCFS)
    }
    assert means[None] == pytest.approx(9.16, abs=0.01)
    assert abs(means[Order.WFP] / means[None] - 1) < 0.05
    assert means[Order.FCFS] / means[None] > 1.3
    for week in range(4):
        real, wfp = mira.waits(None)[week].mean(), mira.waits(Order.WFP)[week].mean()
        assert abs(wfp / real - 1) < 0.25


def test_the_real_schedule_keeps_the_models_laws(mira: Mira2018) -> None:
    """What really ran at once does not conflict, but for the seconds in which an end is written.

    The prepared days of the third week are left out: there a few bgp_partitions have two jobs.
    """
    names = {part.name: index for index, part in enumerate(mira.machine.bgp_partitions)}
    conflicts = mira.machine.conflicts
    pairs, lasting = 0, []
    for week in mira.weeks:
        index = np.array([names.get(name, -1) for name in week.bgp_partitions])
        order = np.flatnonzero((index >= 0) & (week.end_time > week.begin))
        order = order[np.argsort(week.start_time[order], kind="stable")]
        for place, job in enumerate(order.tolist()):
            if week.start_time[job] < week.begin:
                continue
            before = order[:place]
            before = before[week.end_time[before] > week.start_time[job]]
            clash = before[conflicts[index[job], index[before]]]
            lasting += (week.end_time[clash] - week.start_time[job]).tolist()
            pairs += len(before)
    assert pairs > 50_000
    assert len(lasting) == 2
    assert max(lasting) < 15


def test_the_report(mira: Mira2018, tmp_path: Path) -> None:
    written = report(mira)
    written.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "report.md", "results.json",
        *(f"{table.key}.csv" for table in tables(mira)),
        *(f"{key}.{ending}" for key in written.figures for ending in ("svg", "png")),
    }  # fmt: skip
    assert "| all | WFP | 5,374 |" in " ".join((tmp_path / "report.md").read_text().split())
