"""What every hook of ours decides: the Lua one in Slurm and the Python one in PBS, table by table.

Cases are data: what differs in the table, what differs in the job, and t_sched in seconds or why
the job is left alone. The table is written here by hand, apart from the sidecar's own writer.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from foretime_sidecar.table.table import Table, TableRow, parse_table, table_bytes
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hooks.hook_sites import (
    MAKERS,
    NOW,
    ROWS,
    Job,
    PbsScheduler,
    Site,
    decisions,
    mutations_of,
    summed,
    table_text,
)


@dataclass(frozen=True)
class Case:
    """A decision: t_sched in seconds, or ``None`` and the reason that the PBS hook logs."""

    name: str
    expected: int | None
    job: Job = Job()  # noqa: RUF009 - it can't change
    reason: str = "-"
    table: str = table_text()
    now: int = NOW


LEFT = (
    "leave user left",
    "leave account closed",
    "leave account upper",
    "leave slurm_partition closed",
    "leave queue closed",
    "reservation 95000 96000 other,main",
)
TWICE = ("longest user alice 36000", "longest user alice 3600", "longest user alice 40000")
ONLY = "only account phys"
CLASSES = table_text(
    ("user alice 0 0.500000 -", "user alice 1 0.250000 -"), requested_time_bounds_s="36000,72000"
)
# sum("alice") mod 100; whoever is below the share is in it.
ALICE = int(summed("alice")) % 100
CASES = (
    Case("both rows, rounded up", 14_460),
    Case("the project's alone", 18_060, Job(user="nobody")),
    Case("the user's alone", 10_800, Job(project=None)),
    Case("a name of any characters", 3_600, Job(user="nobody", project="a|b\nc é#")),
    Case("neither row", None, Job(user="nobody", project=None), "no-row"),
    Case("A is 1", None, Job(user="bob", project=None), "as-requested"),
    Case("scheme user", 10_800, table=table_text(scheme="user")),
    Case("scheme user, no such row", None, Job(user="nobody"), "no-row", table_text(scheme="user")),
    Case("scheme project", 18_060, table=table_text(scheme="project")),
    Case("least A", 21_600, table=table_text(minimum_adjustment="0.600000")),
    Case("A is 0", 3_600, table=table_text(("user alice 0 0.000000 -",))),
    Case(
        "A and its least are 0",
        600,
        table=table_text(("user alice 0 0.000000 -",), minimum_adjustment="0.000000"),
    ),
    Case("least t_sched", 20_040, table=table_text(minimum_scheduled_time_s="20040")),
    Case(
        "least t_sched above t_req",
        None,
        reason="as-requested",
        table=table_text(minimum_scheduled_time_s="40000"),
    ),
    Case("least t_sched of a short job", 600, Job(walltime_s=900)),
    Case("a shorter job", None, Job(walltime_s=600), "as-requested"),
    Case("rounding", 18_000, table=table_text(rounding_s="3600")),
    Case(
        "rounding beyond t_req", None, reason="as-requested", table=table_text(rounding_s="40000")
    ),
    Case("at a class' bound", 18_000, table=CLASSES),
    Case("above it", 9_060, Job(walltime_s=36_060), table=CLASSES),
    Case("a class without a row", None, Job(walltime_s=72_060), "no-row", CLASSES),
    Case("the row's largest job", 3_600, Job(user="small", project=None)),
    Case("a larger one", None, Job(user="small", project=None, processors=5), "no-row"),
    Case("a larger one, with a project", 18_060, Job(user="small", processors=5)),
    *(
        Case(
            f"{line}, {asked} s asked for",
            None if asked > 36_000 else 14_460,
            Job(walltime_s=asked),
            reason if asked > 36_000 else "-",
            table_text(lines=("longest user b 1", "longest any * 90000", line)),
        )
        for line, reason in (
            ("longest user alice 36000", "user"),
            ("longest account PHYS 36000", "account"),
            ("longest any * 36000", "longest"),
        )
        for asked in (36_000, 36_060)
    ),
    Case("the shortest counts", None, reason="user", table=table_text(lines=TWICE)),
    Case(
        "into another's reservation",
        14_460,
        Job(begin_time=90_000, queue="long"),
        table=table_text(lines=LEFT),
    ),
    Case("after it", 14_460, table=table_text(lines=("reservation 1000 2000 *",))),
    Case("in it", None, reason="reservation", table=table_text(lines=("reservation 1000 2001 *",))),
    Case("observe", None, table=table_text(mode="observe")),
    Case("off", None, reason="off", table=table_text(mode="off")),
    Case("advise", None, table=table_text(mode="advise")),
    Case("a mode to come", None, reason="off", table=table_text(mode="predict")),
    Case("enforced for no user", None, table=table_text(enforce_share_percent="0")),
    Case("outside of the share", None, table=table_text(enforce_share_percent=str(ALICE))),
    Case("in the share", 14_460, table=table_text(enforce_share_percent=str(ALICE + 1))),
    Case("only this account", 14_460, table=table_text(lines=("only account phys",))),
    Case("of another case", 14_460, table=table_text(lines=("only account PHYS",))),
    Case("only another account", None, table=table_text(lines=("only account chem",))),
    Case("one of two accounts", 14_460, table=table_text(lines=("only account chem", ONLY))),
    Case("no account, one wanted", None, Job(project=None), table=table_text(lines=(ONLY,))),
    Case("account and share", None, table=table_text(lines=(ONLY,), enforce_share_percent="0")),
    Case(
        "told and waits are known, and change nothing",
        14_460,
        table=table_text(lines=("told_until 5", "told a%20b 5", "told b 6", "median_wait_s 0 7")),
    ),
    Case(
        "since when no job was planned is known, and changes nothing",
        14_460,
        table=table_text(lines=("unplanned_since 5",)),
    ),
    Case("valid to the last", 14_460, now=100_000),
    Case("out of date", None, reason="table", now=100_001),
    Case("an hour ahead", 14_460, table=table_text(header={"written": NOW + 3600})),
    Case("further ahead", None, reason="table", table=table_text(header={"written": NOW + 3601})),
    Case("a first line of digits", None, reason="table", table=f"foretime-table {'1' * 300_000}\n"),
    Case(
        "a length of many digits",
        None,
        reason="table",
        table=table_text().replace("length=", f"length={'0' * 300_000}"),
    ),
    Case("another version", None, reason="table", table=table_text(version="2")),
    Case("no version", None, reason="table", table=table_text().replace("table 1 ", "table ")),
    Case("no buckets", None, reason="table", table=table_text(header={"buckets": 0})),
    Case("other buckets", None, reason="table", table=table_text(header={"buckets": 1_000_000})),
    Case("half of two rows", None, reason="table", table=table_text(header={"buckets": 2})),
    Case("an unknown setting", None, reason="table", table=table_text(lines=("colour red",))),
    Case("a setting twice", None, reason="table", table=table_text(lines=("mode enforce",))),
    Case("an empty line", None, reason="table", table=table_text(lines=("",))),
    Case("a setting missing", None, reason="table", table=table_text(without="scheme")),
    *(
        Case(
            f"{name} {value!r}",
            None,
            reason="table",
            table=table_text(without=name, lines=(f"{name} {value}",)),
        )
        for name, values in {
            "mode": ("Enforce", "", "enforce "),
            "enforce_share_percent": ("101", "-1", "x", "1e1", "0x10", ""),
            "scheme": ("both", ""),
            "mechanism": ("magic", ""),
            "user_time_min": ("drop", ""),
            "minimum_adjustment": ("0.1", "1.000001", "2.000000", ".100000", "0.1000000", "-"),
            "minimum_scheduled_time_s": ("-1", "1.5", "1e3", "x", "0x10", "1 2"),
            "rounding_s": ("0", "-60", "60.0", "x", "1e2"),
            "requested_time_bounds_s": ("x", "3600,x", "3600,,7200", ",3600", "3600,", "1e3", ""),
        }.items()
        for value in values
    ),
    *(
        Case(f"line {line!r}", None, reason="table", table=table_text(lines=(line,)))
        for line in (
            "leave",
            "leave user",
            "leave user ",
            "leave user a b",
            "leave group a",
            "leave  a",
            "reservation",
            "reservation 1 2",
            "reservation 1 x *",
            "reservation x 1 *",
            "reservation -1 1 *",
            "reservation 1 2 * x",
            "reservation 1 2 ",
            "longest user a",
            "longest user a x",
            "longest user a -1",
            "longest user a 1 2",
            "longest any",
            "longest group a 1",
            "Mode enforce",
            "only",
            "only user alice",
            "only account",
            "only account a b",
            "told",
            "told alice",
            "told alice x",
            "told alice 1 2",
            "told_until",
            "told_until x",
            "told_until 1 2",
            "unplanned_since",
            "unplanned_since x",
            "unplanned_since 1 2",
            "median_wait_s 0",
            "median_wait_s x 1",
            "median_wait_s 0 x",
        )
    ),
    *(
        Case(f"row {row!r}", None, reason="table", table=table_text((row,)))
        for row in (
            "user alice 0 0.3 -",
            "user alice 0 1.000001 -",
            "user alice 0 0.300000 x",
            "user alice 0 0.300000 1e9",
            "user alice 0 0.300000",
            "user alice 0 0.300000 - -",
            "user alice 0 0.300000  -",
            "user alice 0 ",
        )
    ),
    *(
        Case(f"{line!r} twice", None, reason="table", table=table_text(lines=(line, line)))
        for line in ("told a 1", "told_until 1", "median_wait_s 0 1", "unplanned_since 1")
    ),
    Case("another's row", None, reason="no-row", table=table_text(("user alicia 0 0.300000 -",))),
    Case("another class' row", None, reason="no-row", table=table_text(("user alice 1 0.3 -",))),
    Case("no rows", None, reason="no-row", table=table_text(())),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_hook_decides_each_case_as_written(maker: str, case: Case, tmp_path: Path) -> None:
    site = MAKERS[maker](tmp_path)
    site.table.write_text(case.table)
    assert site.submit(case.job, case.now) == case.expected
    if isinstance(site, PbsScheduler):
        assert site.reason == case.reason


def test_the_tables_here_are_those_of_the_sidecar() -> None:
    for case in CASES:
        if case.expected is not None:
            table = parse_table(case.table.encode())
            assert isinstance(table, Table)


def test_enforced_in_some_queues_only(site: Site) -> None:
    ours, others = ("queue", "slurm_partition")[:: 1 if isinstance(site, PbsScheduler) else -1]
    site.table.write_text(table_text(lines=(f"only {ours} long", f"only {ours} main")))
    assert site.submit(Job()) == site.submit(Job(queue="long")) == 14_460
    assert site.submit(Job(queue="closed")) is None
    site.table.write_text(table_text(lines=(f"only {others} main",), header={"generation": 2}))
    assert site.submit(Job()) is None  # nothing here is one of the other scheduler's


def test_jobs_are_left_alone_while_the_switch_is_off(site: Site) -> None:
    assert site.submit(Job())
    site.off.touch()
    assert site.submit(Job()) is None
    site.off.unlink()
    assert site.submit(Job())
    os.mkfifo(site.off)
    assert site.submit(Job()) is None


@pytest.mark.timeout(60)
def test_what_is_no_table_at_all(site: Site) -> None:
    site.table.unlink()
    assert site.submit(Job()) is None
    site.table.mkdir()
    assert site.submit(Job()) is None
    site.table.rmdir()
    os.mkfifo(site.table)  # must not block
    assert site.submit(Job()) is None
    site.table.unlink()
    site.table.write_text(table_text())
    assert site.submit(Job())
    site.table.write_bytes(b"")
    assert site.submit(Job()) is None
    with site.table.open("wb") as noise:
        noise.truncate(100_000_000)
    assert site.submit(Job()) is None
    site.table.unlink()
    site.table.symlink_to("/dev/zero")
    assert site.submit(Job()) is None
    site.table.unlink()
    site.table.symlink_to(site.table)
    assert site.submit(Job()) is None


STATES = {
    "enforce": (table_text(), NOW),
    "observe": (table_text(mode="observe"), NOW),
    "off": (table_text(mode="off"), NOW),
    "old": (table_text(), 200_000),
    "none": (None, NOW),
    "damaged": (table_text()[:-9], NOW),
    "switch": (table_text(), NOW),
}


@pytest.mark.parametrize("state", STATES)
def test_a_user_may_lower_the_walltime_whatever_the_table_is(site: Site, state: str) -> None:
    """A user may always lower the walltime; a planned job that must be plain loses its t_sched."""
    assert site.submit(Job()) == 14_460
    text, now = STATES[state]
    if text is None:
        site.table.unlink()
    else:
        site.table.write_text(text)
    if state == "switch":
        site.off.touch()
    site.forget()
    planned = 14_460
    asked = {
        "lowered below t_sched": (Job(walltime_s=6_000), None),
        "lowered to t_sched": (Job(walltime_s=14_460), planned),
        "lowered above it": (Job(walltime_s=20_000 // 60 * 60), planned),
        "raised": (Job(walltime_s=72_000), planned),
        "without a limit": (Job(walltime_s=4_000_000_020), None),
        "opted out": (Job(opted_out=True), None),
        "another project": (Job(project="other"), planned),
        "nothing": (Job(), planned),
    }
    for what, (request, expected) in asked.items():
        assert site.modify(request, Job(), planned, now) == expected, what


def test_modification_is_judged_by_the_table(site: Site) -> None:
    site.table.write_text(table_text(lines=LEFT))
    assert site.modify(Job(project="CLOSED"), Job(), 14_460) is None
    assert site.modify(Job(begin_time=90_000), Job(), 14_460) is None
    assert site.modify(Job(begin_time=90_000, queue="long"), Job(queue="long"), 14_460) == 14_460
    assert site.modify(Job(project="other"), Job(), 14_460) == 14_460


def test_damaged_tables_never_change_a_job_wrongly(all_sites: list[Site]) -> None:
    """Whatever happens to the file: the valid generation's value or an untouched job.

    A user's or project's row that can't be seen must not be taken for one that isn't there.
    """
    valid = table_text().encode()
    previous = table_text(
        (*(" ".join(row.split()[:3]) + " 0.050000 -" for row in ROWS), "user nobody 0 0.050000 -"),
        header={"generation": 0},
    ).encode()
    planned = {
        Job(): 14_460,
        Job(project="none"): 10_800,
        Job(user="nobody"): 18_060,
        Job(user="nobody", project="none"): None,
    }
    jobs = tuple(planned)
    touched = [0] * len(jobs)
    mutations = mutations_of(valid, previous)
    for content in mutations:
        if content == previous:  # a whole, valid table
            continue
        for at, (job, seconds) in enumerate(
            zip(jobs, decisions(all_sites, content, jobs), strict=True)
        ):
            assert seconds in (None, planned[job]), (content, job)
            touched[at] += seconds is not None
    assert len(mutations) > 1_500
    assert touched.pop() == 0
    assert all(0 < count < len(mutations) for count in touched)


def test_hooks_read_nonsense_alike(all_sites: list[Site]) -> None:
    """Text that no sidecar writes, with sums that are right: every hook makes the same of it."""
    choose = random.Random(2)
    # The class of the job that is asked for is the one that the rows are of.
    original = table_text(lines=LEFT, requested_time_bounds_s="36000,86400")
    assert decisions(all_sites, original.encode(), (Job(),))[0] is not None
    start = original.index("\n") + 1
    stop = original.index("check ")
    letters = "01259.,-*% \t#aeEx_\r\0+"
    planned = 0
    for _ in range(600):
        body = list(original[start:stop])
        for _ in range(choose.randrange(1, 3)):
            body[choose.randrange(len(body) - 1)] = choose.choice(letters)
        head = original[:start] + "".join(body)
        content = f"{head}check {summed(head)}\n{original[stop + 17 :]}"
        planned += decisions(all_sites, content.encode(), (Job(),))[0] is not None
    assert 40 < planned < 600


@given(
    user=st.integers(0, 1_000_000),
    project=st.integers(0, 1_000_000),
    minutes=st.integers(1, 60_000_000),
    rounding_s=st.integers(1, 10_000),
    minimum_s=st.integers(0, 100_000),
)
def test_hooks_and_estimators_agree_to_the_second(
    all_sites: list[Site],
    user: int,
    project: int,
    minutes: int,
    rounding_s: int,
    minimum_s: int,
) -> None:
    rows = (TableRow("user", "alice", 0, user), TableRow("project", "phys", 0, project))
    table = parse_table(table_text(()).encode())
    settings = replace(table.settings, rounding_s=rounding_s, minimum_scheduled_time_s=minimum_s)
    content = table_bytes(replace(table, settings=settings, rows=rows))
    adjustment = max(Fraction(ceil(Fraction(user + project, 2)), 1_000_000), Fraction(1, 10))
    requested = minutes * 60
    rounded = ceil(adjustment * requested / rounding_s) * rounding_s
    exact = max(rounded, minimum_s, 1)
    all_sites[0].table.write_bytes(content)
    for site in all_sites:
        site.forget()
        unit = 1 if isinstance(site, PbsScheduler) else 60  # Slurm's are minutes
        expected = min(requested, ceil(Fraction(exact, unit)) * unit)
        planned = site.submit(Job(walltime_s=requested))
        assert planned == (None if expected == requested else expected)


@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        min_size=1,
        max_size=40,
        unique=True,
    )
)
def test_every_row_is_found(all_sites: list[Site], names: list[str]) -> None:
    rows = tuple(
        TableRow("project", name, 0, 200_000 + 10_000 * number)
        for number, name in enumerate(names[1:])
    )
    table = parse_table(table_text((), minimum_adjustment="0.000000").encode())
    content = table_bytes(replace(table, rows=rows))
    expected = [None, *(7_200 + 360 * number for number in range(len(rows)))]
    jobs = tuple(Job(user="nobody", project=name) for name in names)
    assert decisions(all_sites, content, jobs) == expected
