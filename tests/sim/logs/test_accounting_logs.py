"""sacct output and CSV exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending
from foretime_sim.files.durations import MAX_SECONDS, parse_duration
from foretime_sim.logs.accounting import Clock
from foretime_sim.logs.csv_log import parse_csv_log
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import format_of, read_log
from foretime_sim.logs.sacct import parse_sacct
from foretime_sim.workloads.job_log import JobLog
from foretime_sim.workloads.workload import ENDINGS
from hypothesis import example, given
from hypothesis import strategies as st

HEADER = "JobID|JobIDRaw|User|Account|Submit|Eligible|Start|End|Suspended|State|NCPUS|Timelimit"
DAY = "2024-03-01T"


def row(
    job_id: str = "7",
    *,
    raw: str = "7",
    eligible: str = DAY + "00:00:00",
    start: str = DAY + "01:00:00",
    end: str = DAY + "02:00:00",
    suspended: str = "00:00:00",
    state: str = "COMPLETED",
    limit: str = "1-00:00:00",
) -> str:
    submit = DAY + "00:00:00"
    return "|".join(
        [job_id, raw, "ann", "bio", submit, eligible, start, end, suspended, state, "8", limit]
    )


def sacct(*rows: str) -> JobLog:
    return parse_sacct("\n".join([HEADER, *rows]), source="x.txt")


def ending(log: JobLog, job: int = 0) -> Ending | None:
    return None if np.ma.getmaskarray(log.endings)[job] else ENDINGS[int(log.endings.data[job])]


def test_a_job_is_read_from_its_own_row_without_its_steps() -> None:
    log = sacct(row(suspended="00:10:00"), row("7.batch"), row("7.0"))
    assert len(log) == 1
    assert log.runtime[0] == 3_000
    assert log.wait[0] == 3_600
    assert log.requested_time[0] == 86_400
    assert log.allocated_processors[0] == 8
    assert log.unix_start_time == 1_709_251_200
    assert log.users is not None
    assert log.users.get(0) == "ann"


def test_array_tasks_have_their_array_and_held_jobs_wait_from_release() -> None:
    log = sacct(row("7_3", raw="12", eligible=DAY + "00:30:00"), row("8", raw="8"))
    assert log.job_id.tolist() == [8, 12]
    assert log.array_ids is not None
    assert [log.array_ids.get(0), log.array_ids.get(1)] == [None, "7"]
    assert log.submit_time.tolist() == [0, 1_800]
    assert log.wait.tolist() == [3_600, 1_800]


@pytest.mark.parametrize(
    ("state", "start", "expected"),
    [
        ("CANCELLED by 380693", DAY + "01:00:00", Ending.CANCELLED),
        ("CANCELLED by 380693", "None", Ending.NEVER_STARTED),
        ("OUT_OF_MEMORY", DAY + "01:00:00", Ending.OUT_OF_MEMORY),
        ("TIMEOUT", DAY + "01:00:00", Ending.TIMED_OUT),
        ("NODE_FAIL", DAY + "01:00:00", Ending.NODE_FAILED),
        ("PREEMPTED", DAY + "01:00:00", Ending.PREEMPTED),
        ("RUNNING", DAY + "01:00:00", None),
        ("PENDING", "Unknown", None),
    ],
)
def test_each_state_is_an_ending(state: str, start: str, expected: Ending | None) -> None:
    log = sacct(row(state=state, start=start))
    assert ending(log) is expected
    if expected in (None, Ending.NEVER_STARTED):
        assert np.ma.getmaskarray(log.runtime)[0]


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit", ""])
def test_a_job_without_limit_has_no_requested_time(limit: str) -> None:
    assert np.ma.getmaskarray(sacct(row(limit=limit)).requested_time)[0]


def test_errors_are_located() -> None:
    with pytest.raises(InputError, match=r"x.txt:3: State is|x.txt:3: state is 'ODD'"):
        sacct(row(), row(state="ODD"))
    with pytest.raises(InputError, match=r"x.txt:2: Start is '2024-13-01'"):
        sacct(row(start="2024-13-01"))
    with pytest.raises(InputError, match=r"x.txt:2: Timelimit is 'soon': not a duration"):
        sacct(row(limit="soon"))
    with pytest.raises(InputError, match=r"x.txt:2: the job ended before it started"):
        sacct(row(end=DAY + "00:30:00"))
    with pytest.raises(InputError, match="2 fields where there should be 12"):
        sacct("a|b")
    log = parse_sacct(f"{HEADER}\n{row()}\n{row(limit='soon')}\na|b", source="x", lenient=True)
    assert len(log) == 1
    assert "2 malformed lines" in log.notes[0]


def test_headerless_sacct_needs_columns() -> None:
    with pytest.raises(InputError, match="without a header line"):
        parse_sacct(row(), source="x")
    with pytest.raises(InputError, match="x: the file is empty; run: sacct"):
        parse_sacct("\u2028\n", source="x")
    with pytest.raises(InputError, match="did you mean User"):
        parse_sacct(row(), source="x", columns="JobID,Usr")
    assert len(parse_sacct(row(), source="x", columns=HEADER.replace("|", ","))) == 1


@pytest.mark.parametrize(
    ("word", "seconds"),
    [
        ("1-02:03:04", 93_784),
        ("02:03:04", 7_384),
        ("03:04.123", 184),
        ("5", 5),
        ("UNLIMITED", None),
    ],
)
def test_durations_are_read_in_every_form(word: str, seconds: int | None) -> None:
    assert parse_duration(word) == seconds


def test_clock_knows_summer_time() -> None:
    clock = Clock("Europe/Stockholm")
    assert clock.parse("2024-07-01T12:00:00") == clock.parse("2024-07-01T10:00:00+00:00")
    assert clock.parse("2024-01-01T12:34:56") == clock.parse("2024-01-01T11:34:56+00:00")
    assert clock.parse("2024-01-01T12:35:06") == clock.parse("2024-01-01T11:35:06Z")
    with pytest.raises(InputError, match="time zone 'Mars/Base' is unknown"):
        Clock("Mars/Base")


WORDS = st.sampled_from(
    ["00", "07", "30", "59", "60", "99", "²3", "٣٣", "+1", " 1", "1_"]
)  # of minutes and seconds, some of them none
ZONES = ["UTC", "Europe/Prague", "Australia/Lord_Howe"]  # where summer time is half an hour
DAYS = ["2024-03-31", "2024-10-06", "2024-10-27", "1970-01-01", "2286-11-20", "9999-12-31"]
STAMPS = st.builds(
    "{}T{:02d}:{}:{}".format, st.sampled_from(DAYS), st.sampled_from([0, 1, 2, 17]), WORDS, WORDS
)


@given(st.sampled_from(ZONES), st.lists(STAMPS, min_size=2, max_size=8))
@example("UTC", ["2024-03-31T00:00:00", "2024-03-31T00:99:99"])
@example("UTC", ["2024-03-31T00:00:00", "2024-03-31T00:²3:00"])
@example("Australia/Lord_Howe", ["2024-10-06T02:00:00", "2024-10-06T02:30:00"])
@example("UTC", ["2286-11-20T17:00:00", "2286-11-20T17:59:00"])
def test_no_timestamp_is_read_by_what_was_read_before(zone: str, words: list[str]) -> None:
    def parsed(clock: Clock, word: str) -> int | str | None:
        try:
            return clock.parse(word)
        except ValueError as error:
            return str(error)

    clock = Clock(zone)
    for word in words:
        read = parsed(clock, word)
        assert read == parsed(Clock(zone), word)
        assert not isinstance(read, int) or read <= MAX_SECONDS


CSV = (
    "id,owner,limit,cores,t0,t1,t2\na,ann,30,4,2024-03-01 00:00:00,2024-03-01 01:00:00,1709258400\n"
)
MAPPING = (
    "job_id=id,user=owner,requested_time=limit:min,processors=cores,submit_time=t0,"
    "start_time=t1,end_time=t2"
)


def test_a_csv_is_read_by_its_mapping() -> None:
    log = parse_csv_log(CSV, source="x.csv", columns=MAPPING)
    assert log.requested_time[0] == 1_800
    assert log.runtime[0] == 3_600
    assert log.requested_processors[0] == 4
    assert log.job_id[0] == 1
    assert ending(log) is None


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("user=ownr", "did you mean owner"),
        ("usr=owner", "did you mean user"),
        ("owner", "neither fact=column nor a preset"),
        ("user=owner,user=id", "given twice"),
        ("requested_time=limit:wk", "requested_time has no unit 'wk'; use ms, s, min, h, d, hms"),
        ("runtime=limit:fortnight", "runtime has no unit 'fortnight'; use ms, s, min, h, d, hms"),
        ("runtime=limit:", "runtime has no unit ''; use ms"),
        ("memory_per_node=cores:kb", "memory_per_node has no unit 'kb'; use kib, mib, gib"),
        ("submit_time=t0:min", "submit_time has no unit 'min'; use s, ms"),
        ("user=owner:s", "user has no unit 's'; it takes none: user=owner"),
        ("runtime=limt:fortnight", "there is no column 'limt:fortnight' for runtime"),
        ("submit_time=t0", "no column gives runtime"),
        (MAPPING.replace("cores", "owner"), "x.csv:2: owner is 'ann'"),
        (None, "--columns"),
    ],
)
def test_a_wrong_mapping_is_refused_with_the_nearest_name(columns: str | None, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_csv_log(CSV, source="x.csv", columns=columns)


def test_a_columns_name_may_have_a_colon() -> None:
    text = CSV.replace("limit", "limit:max").replace(",30,", ",00:30:00,")
    mapping = MAPPING.replace("limit:min", "limit:max")
    assert parse_csv_log(text, source="x.csv", columns=mapping).requested_time[0] == 1_800


def test_format_is_told_by_content() -> None:
    assert format_of("\n; MaxProcs: 1\n") == "swf"
    assert format_of("1 0 10 100") == "swf"
    assert format_of("1\t0\t10") == "swf"
    assert format_of(HEADER) == "sacct"
    assert format_of(CSV) == "csv"


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "columns", "jobs", "users"),
    [
        ("xdmod-phillips.sacct.txt.xz", "xdmod", 4_285, 4),
        ("xdmod-pozidriv.sacct.txt.xz", "xdmod", 11_704, 18),
        ("NREL-Eagle-2019-sample1000.csv.xz", None, 1_000, 15),
    ],
)
def test_real_exports_are_read_whole(
    trace: Callable[[str], Path], name: str, columns: str | None, jobs: int, users: int
) -> None:
    log = read_log(trace(name), columns=columns)
    assert len(log) == jobs
    assert log.users is not None
    assert len(log.users.names) == users
    workload, report = workload_of_log(log, processors=100_000)
    assert len(workload) == report.jobs_kept > jobs * 0.9


@pytest.mark.parametrize("text", ['{"jobs": []}\n', "\n[1, 2]\n", "<html>\n"])
def test_json_and_markup_are_no_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"jobs\.txt: that is JSON or markup, and no job log"):
        read_log(path)
