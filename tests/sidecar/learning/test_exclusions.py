"""What is left alone: the site's limits and reservations, as they are read and put together.

Which jobs follow from it is in tests/plugin/exclusion_cases.toml.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import (
    QueuedJob,
    QueueState,
    Reservation,
    SiteLimits,
    SlurmPartition,
)
from foretime_sidecar.clients.slurm.site import expand_nodes, parse_limits, parse_partitions
from foretime_sidecar.learning.exclusions import Why, exclusions_of, reservations_ahead, why_plain
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.table import Reservation as TableReservation

NOW = 1_000_000
HOUR = 3600
PARTITIONS = (
    SlurmPartition("main", None, None, expand_nodes("n[1-4]")),
    SlurmPartition("short", 2 * HOUR, "Held", expand_nodes("n[1-2]")),
    SlurmPartition("gpu", None, None, expand_nodes("g1")),
)
LIMITS = SiteLimits(
    PARTITIONS,
    frozenset({("user", "cy"), ("account", "Tight"), ("qos", "held")}),
    {("account", "p"): HOUR, ("qos", "slow"): 5 * HOUR},
)
JOB = QueuedJob(
    JobRequest("1", "ann", "p", 8, 3 * HOUR, NOW - 60, "main"), QueueState.PENDING, qos="normal"
)


def test_a_job_without_names_is_in_nobodys_way() -> None:
    nameless = replace(JOB.request, user=None, project=None, queue=None)
    exclusions = exclusions_of(Settings(), LIMITS, [], NOW)
    assert why_plain(replace(JOB, request=nameless, qos=None), exclusions, NOW) is None


def test_what_users_and_sites_choose_is_no_danger() -> None:
    chosen = {Why.NO_LIMIT, Why.OPTED_OUT, Why.CHOSEN}
    assert {why for why in Why if not why.is_danger} == chosen


def spans(*reservations: Reservation) -> list[tuple[int, int, tuple[str, ...] | None]]:
    found = reservations_ahead(reservations, PARTITIONS, NOW)
    return [(r.start_time - NOW, r.end_time - NOW, r.slurm_partitions) for r in found]


def reservation(start: int, end: int, nodes: str | None, *flags: str) -> Reservation:
    names = None if nodes is None else expand_nodes(nodes)
    return Reservation("r", NOW + start, NOW + end, flags=frozenset(flags), nodes=names)


def test_a_reservation_concerns_the_partitions_of_its_nodes() -> None:
    assert spans(reservation(0, 9, "n1"), reservation(-9, 9, "n1")) == [], "it has its nodes"
    assert spans(reservation(1, 9, "n[1,3]")) == [(1, 9, ("main", "short"))]
    assert spans(reservation(1, 9, "n3")) == [(1, 9, ("main",))]
    assert spans(reservation(1, 9, "n3,g1", "MAINT")) == [(1, 9, ("gpu", "main"))]
    assert spans(reservation(1, 9, "n1,g1")) == [(1, 9, None)]
    assert spans(reservation(1, 9, "elsewhere")) == []
    assert spans(reservation(1, 9, None)) == [(1, 9, None)], "licenses, say"
    assert spans(reservation(1, 9, "n3", "REPLACE")) == [(1, 9, None)]
    both = [reservation(5, 9, "n3"), reservation(1, 9, "n3")]
    assert spans(*both) == [(1, 9, ("main",)), (5, 9, ("main",))]


def test_a_weekly_reservation_comes_again() -> None:
    day = 24 * HOUR
    assert spans(reservation(-9, 9, "g1", "DAILY")) == [(day - 9, day + 9, ("gpu",))]
    assert spans(reservation(9, 19, "g1", "WEEKLY", "SPEC_NODES")) == [
        (9, 19, ("gpu",)),
        (7 * day + 9, 7 * day + 19, ("gpu",)),
    ]


def test_a_magnetic_reservation_draws_jobs_in() -> None:
    assert spans(reservation(-9, 9, "g1", "MAGNETIC")) == [(-9, 9, ("gpu",))]
    assert spans(reservation(-9, 0, "g1", "MAGNETIC")) == []


@pytest.mark.parametrize(
    ("start", "end", "where", "expected"),
    [
        (3 * HOUR, 4 * HOUR, None, None),
        (3 * HOUR - 1, 4 * HOUR, None, Why.RESERVATION),
        (3 * HOUR - 1, 4 * HOUR, ("gpu",), None),
        (3 * HOUR - 1, 4 * HOUR, ("gpu", "main"), Why.RESERVATION),
        (-10, 1, None, Why.RESERVATION),
        (-10, 0, None, None),
    ],
)
def test_a_job_that_may_run_into_a_reservation_is_left_alone(
    start: int, end: int, where: tuple[str, ...] | None, expected: Why | None
) -> None:
    ahead = TableReservation(NOW + start, NOW + end, where)
    exclusions = replace(exclusions_of(Settings(), LIMITS, [], NOW), reservations=(ahead,))
    assert why_plain(JOB, exclusions, NOW) is expected
    if start == 3 * HOUR:
        assert why_plain(JOB, exclusions, NOW, 1) is Why.RESERVATION, "it may start later"


def test_lists_of_nodes_are_written_out() -> None:
    assert expand_nodes("n[01-03,7],login") == {"n01", "n02", "n03", "n7", "login"}
    assert expand_nodes("r[1-2]n[9-10]-ib") == {"r1n9-ib", "r1n10-ib", "r2n9-ib", "r2n10-ib"}
    assert expand_nodes("") == frozenset()


@pytest.mark.parametrize("nodes", ["n[1-99999999]", "n[1-" + "9" * 5_000 + "]", "n[1-²]"])
def test_more_nodes_than_there_are_stand_for_no_node(nodes: str) -> None:
    assert len(expand_nodes(f"{nodes},login")) == 2
    assert "login" in expand_nodes(f"{nodes},login")
    assert expand_nodes("r[1-9999]n[1-9999]") == {"r[1-9999]n[1-9999]"}


# As 22.05.8 and 26.05.5 print them, shortened.
SHOWN = (
    "PartitionName=main AllowGroups=ALL Default=YES QoS=N/A DefaultTime=01:00:00 MaxNodes=UNLIMITED"
    " MaxTime=UNLIMITED MinNodes=0 Nodes=n[1-4] State=UP TotalCPUs=16\n"
    "PartitionName=short QoS=pq MaxTime=1-02:00:00 NodeSets=ALL Nodes=n[1-2] State=UP\n"
    "PartitionName=none MaxTime=00:05:00 Nodes=(null) State=UP\n"
)


def test_slurm_partitions_are_read_with_their_limits_and_nodes() -> None:
    assert parse_partitions(SHOWN) == (
        SlurmPartition("main", None, None, frozenset({"n1", "n2", "n3", "n4"})),
        SlurmPartition("short", 26 * HOUR, "pq", frozenset({"n1", "n2"})),
        SlurmPartition("none", 300),
    )
    with pytest.raises(SchedulerError, match="named no partition"):
        parse_partitions("")
    with pytest.raises(SchedulerError, match="'5x' is not a duration"):
        parse_partitions("PartitionName=a MaxTime=5x\n")


ASSOCIATIONS = """\
root||||||||
root|root|||||||
free||root|||00:50:00|||
free|bob|||||||
phys||root|2-00:00:00||cpu=40|||
sub||phys||||||
sub|alice||00:30:00|cpu=100|||cpu=9|
sub|dave|||||||cpu=8
"""
QOS = """\
normal|||||||
q1|1-00:00:00|cpu=7|||cpu=3|cpu=5|
q2|||||||cpu=5
fast|00:10:00||||||
"""


def test_limits_are_inherited() -> None:
    limits = parse_limits((), ASSOCIATIONS, QOS)
    assert limits.accumulating == {
        ("account", "free"),
        ("account", "phys"),
        ("account", "sub"),
        ("user", "alice"),
        ("user", "dave"),
        ("qos", "q1"),
        ("qos", "q2"),
    }
    assert limits.longest_walltime == {
        ("account", "phys"): 48 * HOUR,
        ("account", "sub"): 48 * HOUR,
        ("user", "alice"): 1800,
        ("qos", "q1"): 24 * HOUR,
        ("qos", "fast"): 600,
    }
    with pytest.raises(SchedulerError, match="answered 2 fields, not 9"):
        parse_limits((), "root|", "")
