"""Lines of PBS accounting logs, in all dialects, by hand."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.jobs import Ending
from foretime_sim.files.pbs_durations import format_pbs_duration, parse_pbs_duration
from foretime_sim.logs.pbs_records import (
    EXIT_OF_ENDING,
    JobFollower,
    NotAJobError,
    Record,
    array_of,
    ended_job,
    ending_of_exit,
    fields_of,
    parse_line,
    processors_of_chunks,
    project_of,
    requested_processors,
)
from hypothesis import given
from hypothesis import strategies as st

STAMP = "11/20/2026 12:00:00"


@pytest.mark.parametrize(
    ("word", "seconds"),
    [
        ("0", 0), ("45000", 45_000), ("90:00", 5400), ("12:30:00", 45_000), ("100:00:00", 360_000),
        ("1:00:00:00", 86_400), ("3:02:01:05", 266_465), ("00:01:40.25", 100), ("7.5", 7),
    ],
)  # fmt: skip
def test_durations_are_read_in_every_form(word: str, seconds: int) -> None:
    assert parse_pbs_duration(word) == seconds


@pytest.mark.parametrize(
    "word", ["", "-1", "1:2:3:4:5", "12h", "١", "1::2", "9" * 12, "9" * 5_000, "²"]
)
def test_what_is_no_duration_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"duration|too long"):
        parse_pbs_duration(word)


@given(st.integers(0, 10**8))
def test_a_duration_written_is_read(seconds: int) -> None:
    assert parse_pbs_duration(format_pbs_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("resources", "processors"),
    [
        ({"ncpus": "16", "select": "2:ncpus=8:mem=16gb"}, 16),
        ({"select": "2:ncpus=8:mem=16gb+1"}, 17),
        ({"select": "3:mpiprocs=4:ncpus=4"}, 12),
        ({"ncpus": "1", "nodes": "1:ppn=8"}, 8),
        ({"nodes": "node01:ppn=4+2:ppn=2"}, 8),
        ({"nodes": "4"}, 4),
        ({"nodes": "4:ncpus=2"}, 8),
        ({"procs": "24", "ncpus": "1"}, 24),
        ({"ncpus": "12"}, 12),
        ({"nodect": "3"}, 3),
        ({"ncpus": "0"}, None),
        ({}, None),
    ],
)
def test_processors_are_counted_from_what_was_asked_for(
    resources: dict[str, str], processors: int | None
) -> None:
    assert requested_processors(resources.get) == processors


def test_processors_that_are_no_number_are_refused() -> None:
    with pytest.raises(ValueError, match="many"):
        processors_of_chunks("1:ncpus=many", "ncpus")
    for word in ("²", "-4", "9" * 5_000):
        with pytest.raises(ValueError, match="is no number of processors"):
            processors_of_chunks(f"2:ncpus={word}", "ncpus")
        with pytest.raises(ValueError, match="is no number of processors"):
            requested_processors({"ncpus": word}.get)
    with pytest.raises(ValueError, match="not from 0"):
        requested_processors({"ncpus": "100000001"}.get)


@pytest.mark.parametrize(
    ("account", "project", "charged"),
    [
        ("physics", "chem", "physics"),
        (None, "chem", "chem"),
        ("", "_pbs_project_default", None),
        (None, None, None),
    ],
)
def test_the_project_is_the_one_that_the_hook_takes(
    account: str | None, project: str | None, charged: str | None
) -> None:
    assert project_of(account, project) == charged


def test_a_sub_job_tells_its_array() -> None:
    assert array_of("12[3].pbs") == "12[].pbs"
    assert array_of("12-3.napali") == "12[].napali"
    assert array_of("12.pbs") is None
    assert array_of("12[].pbs") is None
    assert Record(STAMP, "E", "12[].pbs", "").array_parent


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "1 parts where a record has 4"),
        (f"{STAMP};E;1.pbs", "3 parts"),
        ("2026-11-20 12:00:00;E;1.pbs;", "no date like"),
        (f"{STAMP};EE;1.pbs;", "no kind of record"),
        (f"{STAMP};5;1.pbs;", "no kind of record"),
        (f"{STAMP};E;1 2;", "no job identifier"),
    ],
)
def test_a_malformed_line_is_refused(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_line(line)


@pytest.mark.parametrize("job_id", ["R12.pbs", "S3.pbs", "license", "pbs01"])
def test_records_that_are_about_no_job_are_told_apart(job_id: str) -> None:
    with pytest.raises(NotAJobError):
        parse_line(f"{STAMP};B;{job_id};owner=root")


def test_a_users_words_change_no_field() -> None:
    # PBS does not escape quotes: qsub -A 'x" user="mallory" Resource_List.walltime="1' and so on.
    fields = fields_of(
        'user=alice group=g account="x" user="mallory" Resource_List.walltime="1" '
        'jobname=STDIN project="a b" Resource_List.walltime=01:00:00 Exit_status=0'
    )
    assert fields["user"] == "alice"
    assert fields["account"] == "x"
    assert fields["project"] == "a b"
    assert fields["Resource_List.walltime"] == "01:00:00"
    assert fields_of('account="odd "words" account" project=p')["account"] == 'odd "words" account'


def _ended(**changed: str | None) -> Record:
    fields: dict[str, str | None] = {
        "user": "alice", "queue": "workq", "ctime": "1000", "qtime": "1000", "etime": "1000",
        "start": "2000", "Resource_List.ncpus": "4", "Resource_List.walltime": "01:00:00",
        "end": "2600", "Exit_status": "0", "resources_used.walltime": "00:10:00",
    }  # fmt: skip
    fields.update({name.replace("__", "."): value for name, value in changed.items()})
    words = [f"{name}={value}" for name, value in fields.items() if value is not None]
    return parse_line(f"{STAMP};E;1.pbs;{' '.join(words)}")


@pytest.mark.parametrize(
    ("changed", "eligible"),
    [
        ({}, 1000),
        ({"etime": "1500"}, 1500),  # held until then
        ({"etime": None}, 1000),
        ({"eligible_time": "00:05:00"}, 1700),  # the server accrues it: the rest was a limit
        ({"eligible_time": "10:00:00"}, 1000),
        ({"etime": "5000"}, 2000),
        ({"ctime": "5000", "etime": "5001"}, 2000),  # another server's clock
    ],
)
def test_a_job_is_eligible_when_it_was_released(
    changed: dict[str, str | None], eligible: int
) -> None:
    job = ended_job(_ended(**changed))
    assert job is not None
    assert job.eligible_time == eligible


@pytest.mark.parametrize(
    ("used", "runtime"),
    [("00:10:00", 600), ("00:05:00", 300), ("00:00:00", 600), (None, 600), ("01:00:00", 600)],
)
def test_runtime_leaves_suspended_time_out(used: str | None, runtime: int) -> None:
    job = ended_job(_ended(resources_used__walltime=used))
    assert job is not None
    assert job.runtime == runtime


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"end": None}, "no end"),
        ({"end": "soon"}, "end='soon' is no time in epoch seconds"),
        ({"end": "1999"}, "end=1999 lies before start=2000"),
        ({"ctime": None, "qtime": None}, "no qtime"),
        ({"Resource_List__walltime": "long"}, "Resource_List.walltime='long' can't be read"),
        ({"Exit_status": "x"}, "Exit_status='x' can't be read"),
        ({"Resource_List__ncpus": "x"}, "Resource_List: .*'x'"),
        ({"end": "99999999999"}, "no time in epoch seconds"),
    ],
)
def test_what_an_end_can_not_be_without(changed: dict[str, str | None], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ended_job(_ended(**changed))


def test_a_job_that_never_ran_has_no_end() -> None:
    assert ended_job(_ended(start="0")) is None


@pytest.mark.parametrize(
    ("exit_status", "ran_s", "deleted", "torque", "ending"),
    [
        (0, 600, False, False, Ending.COMPLETED),
        (None, 600, False, False, Ending.COMPLETED),
        (0, 600, True, False, Ending.CANCELLED),  # it caught the signal and left in peace
        (1, 600, False, False, Ending.FAILED),
        (137, 600, False, False, Ending.FAILED),
        (271, 600, False, False, Ending.CANCELLED),
        (271, 3600, False, False, Ending.TIMED_OUT),  # SIGTERM at its walltime, as older PBS says
        (271, 3600, True, False, Ending.TIMED_OUT),
        (265, 600, True, False, Ending.CANCELLED),
        (-29, 3605, False, False, Ending.TIMED_OUT),
        (-27, 60, False, False, Ending.OUT_OF_MEMORY),
        (-11, 60, False, False, Ending.REQUEUED),
        (-11, 3605, False, True, Ending.TIMED_OUT),  # TORQUE's number for it
        (-10, 60, False, True, Ending.OUT_OF_MEMORY),
        (-14, 60, False, False, Ending.NODE_FAILED),
    ],
)
def test_an_exit_status_tells_the_ending(
    exit_status: int | None, ran_s: int, deleted: bool, torque: bool, ending: Ending
) -> None:
    found = ending_of_exit(
        exit_status, ran_s=ran_s, requested_s=3600, deleted=deleted, torque=torque
    )
    assert found is ending


@pytest.mark.parametrize("ending", [e for e in Ending if e is not Ending.NEVER_STARTED])
def test_an_ending_written_is_read(ending: Ending) -> None:
    assert ending_of_exit(EXIT_OF_ENDING[ending], ran_s=10, requested_s=3600) is ending


# Several records of one job ----------------------------------------------------------------------


def _follow(*lines: str) -> list[object]:
    follower = JobFollower(lambda stamp: int(stamp[-2:]))
    return [follower.take(parse_line(line)) for line in lines]


_END = _ended().message


def test_only_the_last_run_counts() -> None:
    ended = _follow(
        f"{STAMP};Q;1.pbs;queue=workq",
        f"{STAMP};S;1.pbs;start=1200",
        f"{STAMP};R;1.pbs;start=1200 end=1800 Exit_status=-11",
        f"{STAMP};S;1.pbs;start=2000",
        f"{STAMP};E;1.pbs;{_END}",
    )
    assert ended[:4] == [None] * 4
    job = ended_job(_ended(), requeued_at=1800)
    assert ended[4] == job
    assert job is not None
    assert job.eligible_time == 1800, "it waited from the end of its first run"


def test_a_rerun_without_fields_counts_by_its_stamp() -> None:
    ended = _follow("08/26/2014 17:00:59;R;1.pbs;", f"{STAMP};E;1.pbs;{_END}")
    assert ended[1] == ended_job(_ended(), requeued_at=59)


def test_a_deletion_makes_the_end_a_cancellation() -> None:
    assert _follow(f"{STAMP};D;1.pbs;requestor=x", f"{STAMP};E;1.pbs;{_END}")[1] == ended_job(
        _ended(), deleted=True
    )
    # Of an array as a whole: of each sub-job.
    array = _follow(f"{STAMP};D;1[].pbs;requestor=x", f"{STAMP};E;1[7].pbs;{_END}")[1]
    assert getattr(array, "ending", None) is Ending.CANCELLED
    # A number used again is another job.
    again = _follow(
        f"{STAMP};D;1.pbs;requestor=x",
        f"{STAMP};Q;1.pbs;queue=workq",
        f"{STAMP};E;1.pbs;{_END}",
    )
    assert again[2] == ended_job(_ended())


def test_an_array_as_a_whole_is_no_job() -> None:
    assert _follow(f"{STAMP};E;1[].pbs;{_END}") == [None]


_WORDS = st.sampled_from(
    ["start", "end", "ctime", "etime", "eligible_time", "Exit_status", "Resource_List.walltime",
     "Resource_List.select", "Resource_List.nodes", "Resource_List.ncpus", "account",
     "resources_used.walltime"]
)  # fmt: skip
_VALUES = st.one_of(
    st.integers(-5, 1 << 70).map(str), st.text(max_size=8), st.sampled_from(["1:2", "2:ppn=x", '"'])
)


@given(
    kind=st.sampled_from("EQSRDAz"),
    odd=st.lists(st.tuples(_WORDS, _VALUES), max_size=4),
    stamp=st.one_of(st.just(STAMP), st.text(max_size=19)),
)
def test_odd_records_are_read_or_refused(kind: str, odd: list[tuple[str, str]], stamp: str) -> None:
    message = f"{_END} " + " ".join(f"{name}={value}" for name, value in odd)
    follower = JobFollower(lambda stamp: 0)
    try:
        job = follower.take(parse_line(f"{stamp};{kind};1.pbs;{message}"))
    except ValueError:
        return
    if job is not None:
        assert 0 <= job.runtime <= job.end_time - job.start_time
        assert job.submit_time <= job.eligible_time <= job.start_time
        assert job.processors is None or job.processors >= 1
        assert job.requested_time is None or job.requested_time >= 1
