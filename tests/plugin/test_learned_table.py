"""Tables of the scheme learned: every hook takes the first row of the back-off order."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_sidecar.table.row_kinds import KINDS, BackOff, LearnedRow
from foretime_sidecar.table.table import Scheme, Table, TableRow, parse_table, table_bytes
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hooks.hook_sites import (
    Job,
    PbsScheduler,
    Site,
    decisions,
    mutations_of,
    summed,
    table_text,
)

ORDER = "user+request+size,user+request,user+class,project+class+size,project+request,class+size"
HEAD = ("size_bounds 1,4,16", f"backoff {ORDER}")
ROWS = (
    "class+size - 2.1 0.900000 -",
    "class+size - 2.2 0.800000 144000000",
    "project+class+size phys 2.1 0.500000 -",
    "project+request phys 36000 0.700000 -",
    "user+class alice 2 0.600000 -",
    "user+class bob 1 0.050000 -",
    "user+request alice 36000 0.400000 -",
    "user+request+size alice 36000.1 0.200000 144000",
)


def learned_text(
    rows: tuple[str, ...] = ROWS, lines: tuple[str, ...] = HEAD, generation: int = 1
) -> str:
    return table_text(
        rows,
        lines=lines,
        header={"generation": generation},
        scheme="learned",
        requested_time_bounds_s="3600,7200",
    )


@pytest.mark.parametrize(
    ("job", "share"),
    [
        (Job(), 0.2),  # 36000 s of 4 processors: size class 1, exactly
        (Job(processors=3), 0.2),
        (Job(processors=5), 0.4),  # another size
        (Job(processors=1), 0.4),
        (Job(walltime_s=36_060), 0.6),  # another request, too large for LARGEST
        (Job(user="bob"), 0.5),
        (Job(user="bob", processors=5), 0.7),
        (Job(user="bob", project="other"), 0.9),
        (Job(user="bob", project=None), 0.9),
        (Job(user="bob", project=None, processors=16), 0.8),
        (Job(user="bob", project=None, processors=17), None),
        (Job(user="zoe", walltime_s=7_200), None),
        (Job(user="-", project="-", walltime_s=7_200), None),
        (Job(user="-", project="-"), 0.9),
    ],
)
def test_the_first_row_found_counts(site: Site, job: Job, share: float | None) -> None:
    site.table.write_text(learned_text())
    requested = job.walltime_s or 0
    assert site.submit(job) == (None if share is None else ceil(requested * share / 60) * 60)


def test_a_row_for_smaller_jobs_is_passed_over(site: Site) -> None:
    rows = ("user+request+size alice 36000.1 0.200000 143999", *ROWS[:-1])
    site.table.write_text(learned_text(rows))
    assert site.submit(Job()) == 14_400


def test_no_more_is_planned_than_asked_for(site: Site) -> None:
    site.table.write_text(learned_text(("user+request alice 36000 1.000000 -", *ROWS[:5])))
    assert site.submit(Job()) is None  # nobody else's row stands in for it


@pytest.mark.parametrize(
    "lines",
    [
        (),
        HEAD[:1],
        HEAD[1:],
        (*HEAD, "size_bounds 1"),
        (*HEAD, HEAD[1]),
        ("size_bounds", HEAD[1]),
        ("size_bounds x", HEAD[1]),
        ("size_bounds 1,", HEAD[1]),
        (HEAD[0], "backoff user"),
        (HEAD[0], "backoff user+request,"),
        (HEAD[0], "backoff queue+request"),
        (HEAD[0], "backoff request+user"),
        (HEAD[0], "backoff user+size"),
        (HEAD[0], "backoff user+request+size+size"),
        (HEAD[0], "backoff USER+request"),
        (HEAD[0], "backoff user+request user+class"),
        (HEAD[0], "backoff -"),
        (HEAD[0], "backoff +request"),
    ],
)
def test_a_head_that_can_not_be_read_has_every_job_left_alone(
    site: Site, lines: tuple[str, ...]
) -> None:
    site.table.write_text(learned_text(lines=lines))
    assert site.submit(Job()) is None
    if isinstance(site, PbsScheduler):
        assert site.reason == "table"
    with pytest.raises(StateError):
        parse_table(site.table.read_bytes())


def test_an_older_hook_does_not_know_it(site: Site) -> None:
    """What it does with a scheme of the future it did with this one."""
    site.table.write_text(learned_text().replace("scheme learned", "scheme dreamed"))
    head, rest = site.table.read_text().split("check ")
    site.table.write_text(f"{head}check {summed(head)}{rest[10:]}")
    assert site.submit(Job()) is None


def test_damage_never_lets_another_row_stand_in(all_sites: list[Site]) -> None:
    valid = learned_text().encode()
    previous = learned_text(
        (*(" ".join(row.split()[:3]) + " 0.110000 -" for row in ROWS), "class - 2 0.120000 -"),
        generation=0,
    ).encode()
    assert parse_table(valid).learned_rows
    planned = {
        Job(): 7_200,
        Job(processors=5): 14_400,
        Job(user="nobody"): 18_000,
        Job(user="nobody", project="none"): 32_400,
        Job(user="nobody", project="none", processors=17): None,
    }
    jobs = tuple(planned)
    touched = [0] * len(jobs)
    mutations = [content for content in mutations_of(valid, previous) if content != previous]
    for content in mutations:
        for at, (job, seconds) in enumerate(
            zip(jobs, decisions(all_sites, content, jobs), strict=True)
        ):
            assert seconds in (None, planned[job]), (content, job)
            touched[at] += seconds is not None
    assert touched.pop() == 0
    assert all(0 < count < len(mutations) for count in touched)


NAMES = st.sampled_from(["alice", "bob", "-", "zoë #1", "user+class"])
SIZES = st.sampled_from([1, 2, 4, 5, 16, 300])
MINUTES = st.sampled_from([30, 60, 61, 120, 600, 66_000_000])
LEARNED_ROWS = st.builds(
    lambda kind, name, minutes, time_class, size, micro, largest: LearnedRow(
        kind.word,
        name if kind.who else "-",
        (minutes * 60 if kind.exact else time_class, *((size,) if kind.sized else ())),
        micro,
        largest,
    ),
    st.sampled_from(list(KINDS.values())),
    NAMES,
    MINUTES,
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(0, 1_000_000),
    st.none() | st.integers(0, 10_000_000),
)


@given(
    rows=st.lists(LEARNED_ROWS, max_size=60, unique_by=lambda row: row.key),
    order=st.lists(st.sampled_from(list(KINDS)), min_size=1, unique=True),
    jobs=st.lists(
        st.tuples(NAMES, st.none() | NAMES, SIZES, MINUTES), min_size=1, max_size=8, unique=True
    ),
)
def test_every_reader_finds_the_same_row(
    all_sites: list[Site],
    rows: list[LearnedRow],
    order: list[str],
    jobs: list[tuple[str, str | None, int, int]],
) -> None:
    """The hooks, and the arithmetic of TABLE.md in fractions on what the sidecar reads."""
    table = parse_table(learned_text(()).encode())
    content = table_bytes(
        replace(table, back_off=BackOff((1, 4, 16), tuple(order)), learned_rows=tuple(rows))
    )
    read = parse_table(content)
    assert {row.key for row in read.learned_rows} == {row.key for row in rows}
    asked = tuple(
        Job(user=user, project=project, processors=size, walltime_s=minutes * 60)
        for user, project, size, minutes in jobs
    )
    expected = [_plain_scheduled_time(read, job) for job in asked]
    assert decisions(all_sites, content, asked) == expected


def _plain_scheduled_time(table: Table, job: Job) -> int | None:
    requested, settings = job.walltime_s or 0, table.settings
    assert table.back_off is not None
    time_class = sum(bound < requested for bound in settings.requested_time_bounds_s)
    size_class = sum(bound < job.processors for bound in table.back_off.size_bounds)
    for word in table.back_off.kinds:
        parts = word.split("+")
        name = {"user": job.user, "project": job.project}.get(parts[0], "-")
        values = [requested if "request" in parts else time_class]
        values += [size_class] if "size" in parts else []
        for row in table.learned_rows:
            largest = row.largest_processor_seconds
            if (row.kind, row.name, row.values) == (word, name, tuple(values)) and (
                largest is None or job.processors * requested <= largest
            ):
                share = max(Fraction(row.adjustment_micro, 1_000_000), Fraction(1, 10))
                planned = max(ceil(share * requested / 60) * 60, 600)
                return planned if planned < requested <= 4_000_000_000 else None
    return None


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"back_off": None}, "with a back-off"),
        ({"rows": (TableRow("user", "a", 0, 1),)}, "with a back-off"),
        ({"learned_rows": (LearnedRow("class", "-", (0,), 1),) * 2}, "another such row"),
        ({"learned_rows": (LearnedRow("class", "a", (0,), 1),)}, "rows of its kind"),
        ({"learned_rows": (LearnedRow("class", "-", (0, 1), 1),)}, "rows of its kind"),
        ({"learned_rows": (LearnedRow("class+size", "-", (0,), 1),)}, "rows of its kind"),
        ({"learned_rows": (LearnedRow("class", "-", (-1,), 1),)}, "rows of its kind"),
        ({"learned_rows": (LearnedRow("class", "-", (0,), 1_000_001),)}, "millionths"),
        ({"learned_rows": (LearnedRow("class", "-", (0,), 1, 1 << 60),)}, "2\\*\\*53"),
    ],
)
def test_what_cannot_be_written_is_named(change: dict[str, object], what: str) -> None:
    table = parse_table(learned_text().encode())
    with pytest.raises(InputError, match=what):
        table_bytes(replace(table, **change))  # type: ignore[arg-type]


def test_a_back_off_goes_with_the_scheme_alone() -> None:
    table = parse_table(learned_text(()).encode())
    combined = replace(table.settings, scheme=Scheme.COMBINED)
    with pytest.raises(InputError, match="with a back-off"):
        table_bytes(replace(table, settings=combined))


@pytest.mark.parametrize(
    ("bounds", "kinds", "what"),
    [
        ((2, 1), ("class",), "must ascend from 1"),
        ((0,), ("class",), "must ascend from 1"),
        ((), (), "at least one"),
        ((), ("class", "class"), "each once"),
        ((), ("klass",), "Valid: user\\+request\\+size, "),
    ],
)
def test_a_back_off_that_is_none_is_named(
    bounds: tuple[int, ...], kinds: tuple[str, ...], what: str
) -> None:
    with pytest.raises(InputError, match=what):
        BackOff(bounds, kinds)
