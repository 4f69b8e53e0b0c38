"""Reading and writing SWF: nothing lost, and every kind of bad file is one clear error."""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.swf import (
    FIELDS,
    _read_fast,
    _read_line_by_line,
    format_swf,
    parse_swf,
    read_swf,
)
from foretime_sim.workloads.job_log import ARRAY_COLUMNS, LABEL_COLUMNS, JobLog
from foretime_sim.workloads.workload import ENDINGS
from hypothesis import given
from hypothesis import strategies as st

LINE = "1 0 10 100 4 -1 -1 4 200 -1 1 7 3 -1 2 -1 -1 -1"
HEADER = "; MaxProcs: 338 (batch partition; 512 total)\n; UnixStartTime: 843480031\n"


def same(one: JobLog, other: JobLog) -> bool:
    for name in ARRAY_COLUMNS:
        a, b = np.ma.asarray(getattr(one, name)), np.ma.asarray(getattr(other, name))
        if not np.array_equal(np.ma.getmaskarray(a), np.ma.getmaskarray(b)):
            return False
        if not np.array_equal(a.filled(-1), b.filled(-1)):
            return False
    for name in LABEL_COLUMNS:
        a, b = getattr(one, name), getattr(other, name)
        if [a and a.get(i) for i in range(len(one))] != [b and b.get(i) for i in range(len(other))]:
            return False
    facts = ("machine_processors", "machine_nodes", "unix_start_time", "time_zone")
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts)


def number(index: int) -> st.SearchStrategy[str]:
    largest = min(FIELDS[index].largest, 10_000)
    whole = st.integers(0, largest).map(str)
    if index == 0:
        return whole
    if index == 5:
        return st.one_of(st.just("-1"), st.floats(0, 1e6).map(repr))
    return st.one_of(st.just("-1"), whole)


swf_lines = st.lists(st.tuples(*(number(i) for i in range(18))).map(" ".join), min_size=1)


@given(swf_lines, st.sampled_from(["", HEADER, "; Queue: 1 short\n; Queue: 2 UNKNOWN\n"]))
def test_round_trip_loses_nothing(lines: list[str], header: str) -> None:
    log = parse_swf(header + "\n".join(lines) + "\n", source="x.swf")
    again = parse_swf(format_swf(log), source="x.swf")
    assert same(log, again)
    assert format_swf(again) == format_swf(log)


@given(swf_lines)
def test_fast_and_careful_reading_agree(lines: list[str]) -> None:
    fast = _read_fast("\n".join(lines))
    careful, notes = _read_line_by_line("\n".join(lines), "x", lenient=False)
    assert fast is not None
    assert not notes
    np.testing.assert_array_equal(fast.numbers, careful.numbers)
    np.testing.assert_array_equal(fast.cpu_time, careful.cpu_time)
    assert list(fast.fractional) == list(careful.fractional)


@given(st.text(alphabet="0159+-.eEx_ \t\v\r", max_size=24), st.integers(0, 17))
def test_fast_reading_takes_nothing_that_careful_reading_refuses(word: str, field: int) -> None:
    words = LINE.split()
    words[field] = word
    text = " ".join(words)
    fast = _read_fast(text)
    try:
        careful, _ = _read_line_by_line(text, "x", lenient=False)
    except InputError:
        assert fast is None
        return
    assert fast is not None or set(word) & set("\v\r")
    if fast is not None:
        np.testing.assert_array_equal(fast.numbers, careful.numbers)
        np.testing.assert_array_equal(fast.cpu_time, careful.cpu_time)
        assert list(fast.fractional) == list(careful.fractional)


@pytest.mark.parametrize(
    "word", ["+3", "007", "1e3", "5.", ".5", "2.5", "-1.0", "-0", "1" + "0" * 9]
)
def test_numbers_are_read_in_every_spelling(word: str) -> None:
    words = LINE.split()
    words[1] = words[5] = word
    fast = _read_fast(" ".join(words) + "\n\n" + LINE)
    assert fast is not None
    assert fast.numbers[:, 1].tolist() == [round(float(number)) for number in LINE.split()]
    assert fast.numbers[1, 0] == np.rint(float(word))
    assert fast.cpu_time[0] == float(word)
    assert fast.fractional[1] == (float(word) % 1 != 0)


@given(st.text(alphabet="0123456789 -.einfa\n;x", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        log = parse_swf(text, source="x.swf")
    except InputError:
        return
    assert len(log) > 0


def test_reads_fields_and_header() -> None:
    log = parse_swf(HEADER + LINE + "\n", source="folder/KTH.swf.gz")
    assert (log.name, log.machine_processors, log.unix_start_time) == ("KTH", 338, 843480031)
    assert log.runtime[0] == 100
    assert np.ma.getmaskarray(log.used_memory)[0]
    assert log.users is not None
    assert log.users.get(0) == "user7"
    assert log.queues is not None
    assert log.queues.get(0) == "queue2"
    assert log.executables is None


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("UnixStartTime: soon", "the header's UnixStartTime is 'soon', no number of at least 0"),
        ("MaxProcs: 0", "the header's MaxProcs is '0', no number of at least 1"),
        ("MaxProcs: -1", ""),
        ("MaxNodes: unknown", ""),
    ],
)
def test_a_header_field_that_is_no_number_is_told(field: str, said: str) -> None:
    log = parse_swf(f"; {field}\n{LINE}\n", source="a.swf")
    assert log.notes == ((f"{said}: taken as not known",) if said else ())


def test_names_from_header_unless_ambiguous() -> None:
    header = "; Queue: 2 night\n; Partition: 4 UNKNOWN\n; Partition: 5 UNKNOWN\n"
    line = LINE.split()
    line[15] = "4"
    log = parse_swf(header + " ".join(line), source="x")
    assert log.queues is not None
    assert log.queues.names == ("night",)
    assert log.slurm_partitions is not None
    assert log.slurm_partitions.names == ("partition4",)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        (4, "abc", "field 4 (run time) is not a number: 'abc'"),
        (4, "nan", "field 4 (run time) is not a number: 'nan'"),
        (4, "inf", "field 4 (run time) is not a number: 'inf'"),
        (4, "1e300", "field 4 (run time) is too large"),
        (2, "1609459200000", "field 2 (submit time) is too large"),
        (5, "-7", "field 5 (number of allocated processors) is negative: '-7'"),
        (1, "-1", "field 1 (job number) is negative"),
        (9, "1_0", "field 9 (requested time) is not a number"),
        (11, "17", "field 11 (status) is too large"),
    ],
)
def test_malformed_value_is_located(field: int, value: str, says: str) -> None:
    words = LINE.split()
    words[field - 1] = value
    text = HEADER + LINE + "\n" + " ".join(words) + "\n"
    with pytest.raises(InputError, match=re.escape(f"x.swf:4: {says}")):
        parse_swf(text, source="x.swf")
    log = parse_swf(text, source="x.swf", lenient=True)
    assert len(log) == 1
    assert log.notes[0].startswith("1 malformed line left out (line 4: field")


@pytest.mark.parametrize("line", ["1 2 3", LINE + " 5"])
def test_a_wrong_number_of_fields_is_refused(line: str) -> None:
    with pytest.raises(InputError, match=r"x:1: \d+ fields where SWF has 18"):
        parse_swf(line, source="x")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"; only a header\n", "no jobs"),
        (b"1 2\n3 \0 4\n", ":2: a NUL byte"),
        (b"\x7fELF\x02\x01\x01\0\0", "NUL byte"),
        (gzip.compress(LINE.encode() * 100, mtime=0)[:-20], "cut off or damaged"),
        (lzma.compress(LINE.encode() * 100)[:-20], "cut off or damaged"),
        (b"\x1f\x8b rubbish", "cut off or damaged"),
        (gzip.compress(b"", mtime=0), "empty"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_log(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_log(tmp_path / "no.swf")
    with pytest.raises(InputError, match="folder"):
        read_log(tmp_path)


def test_compression_is_told_by_content(tmp_path: Path) -> None:
    for name, data in (
        ("a", LINE.encode()),
        ("b", gzip.compress(LINE.encode(), mtime=0)),
        ("c", lzma.compress(LINE.encode())),
        ("d", (LINE + "\r\n").encode()),
    ):
        (tmp_path / name).write_bytes(data)
        assert len(read_log(tmp_path / name)) == 1


def test_unsorted_log_is_sorted_and_says_so() -> None:
    lines = [f"{job} {submit} " + LINE.split(" ", 2)[2] for job, submit in ((1, 9), (2, 5), (3, 9))]
    log = parse_swf("\n".join(lines), source="x")
    assert log.job_id.tolist() == [2, 1, 3]
    assert "1 steps back in time" in log.notes[0]


@pytest.mark.parametrize(
    ("status", "runtime", "ending"),
    [
        (1, 100, Ending.COMPLETED),
        (1, 200, Ending.COMPLETED),
        (0, 100, Ending.FAILED),
        (0, 200, Ending.TIMED_OUT),
        (5, 100, Ending.CANCELLED),
        (5, 0, Ending.NEVER_STARTED),
        (5, -1, Ending.NEVER_STARTED),
        (2, 100, Ending.PREEMPTED),
        (3, 100, Ending.COMPLETED),
        (4, 100, Ending.FAILED),
        (-1, 100, None),
    ],
)
def test_a_status_and_a_runtime_tell_the_ending(
    status: int, runtime: int, ending: Ending | None
) -> None:
    words = LINE.split()
    words[3], words[10] = str(runtime), str(status)
    log = parse_swf(" ".join(words), source="x")
    masked = bool(np.ma.getmaskarray(log.endings)[0])
    assert (None if masked else ENDINGS[int(log.endings.data[0])]) == ending


@pytest.mark.traces
@pytest.mark.parametrize(
    "name", ["KTH-SP2-1996-2.1-cln", "SDSC-Par-1996-3.1-cln", "LLNL-Thunder-2007-1.1-cln"]
)
def test_real_logs_round_trip(trace: Callable[[str], Path], name: str) -> None:
    log = read_swf(trace(f"{name}.swf.gz"))
    again = parse_swf(format_swf(log), source=log.source)
    assert same(log, again)
    assert again.comments == log.comments
