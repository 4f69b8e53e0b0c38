"""Cobalt's event logs, a small one and Mira's, and their faults by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.cobalt_log import parse_cobalt_log, read_cobalt_log
from foretime_sim.logs.log_files import format_of, read_log


def line(kind: str = "E", job: int = 7, **changed: str) -> str:
    fields = {
        "queue": "default", "qtime": "1516300000.0", "Resource_List.nodect": "1024",
        "Resource_List.walltime": "01:30:00", "start": "1516300060.0", "end": "1516301060.0",
        "exec_host": "MIR-00000-33371-1-1024", "queue_name": "prod-short",
    }  # fmt: skip
    fields |= {name.replace("__", "."): value for name, value in changed.items()}
    if kind == "S":
        del fields["end"]
    said = " ".join(f"{name}={value}" for name, value in fields.items() if value)
    return f"01/18/2018 18:46:40;{kind};{job};{said}\n"


def test_a_small_log_is_read_in_order_of_submission() -> None:
    text = line("S", 7) + line("S", 8) + line("E", 7) + "\n" + line("E", 9, qtime="1516299000.5")
    read = parse_cobalt_log(text, source="m.log")
    log = read.job_log
    assert log.job_id.tolist() == [9, 7]  # in order of submission
    assert log.unix_start_time == 1_516_299_000
    assert log.submit_time.tolist() == [0, 1_000]
    assert log.wait.tolist() == [1_060, 60]
    assert log.runtime.tolist() == [1_000, 1_000]
    assert log.requested_time.tolist() == [5_400, 5_400]
    assert log.requested_processors.tolist() == [1_024, 1_024]
    assert log.queues is not None
    assert log.queues.get(0) == "prod-short"
    assert read.bgp_partition_of == dict.fromkeys([9, 7], "MIR-00000-33371-1-1024")
    assert "1 job had not ended when the log was written" in log.notes
    assert log.endings.mask.all()


def test_a_job_run_again_counts_once() -> None:
    text = line() + line(start="1516302000.0", end="1516303000.0", exec_host="MIR-B-512")
    read = parse_cobalt_log(text, source="m.log")
    assert read.job_log.wait.tolist() == [2_000]
    assert read.bgp_partition_of == {7: "MIR-B-512"}
    assert "1 job run again; the last run counts" in read.job_log.notes


def test_the_content_tells_it_from_pbs() -> None:
    assert format_of(line("S")) == format_of(line("E")) == "cobalt"
    pbs = line(ctime="1516300000", exec_host="n1/0+n2/0")
    assert format_of(pbs) == "pbs"
    assert format_of(line(exec_host="n1/0")) == "pbs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line(qtime=""), "m.log:1: the E record has no qtime"),
        (line(exec_host=""), "m.log:1: the E record has no exec_host"),
        (line(start="soon"), "m.log:1: start is 'soon': not a number"),
        (line(end="1516300000.0"), "m.log:1: the job ended before it started"),
        (line(Resource_List__walltime="long"), "Resource_List.walltime is 'long': not a duration"),
        (line(Resource_List__nodect="some"), "Resource_List.nodect is 'some': not a number of"),
        ("18.1.2018;E;7;qtime=1", "m.log:1: '18.1.2018' is no date"),
        (line("S"), "m.log: no job ended in this log"),
    ],
)
def test_a_fault_is_refused_by_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_cobalt_log(text, source="m.log")
    assert message in str(caught.value)


def test_malformed_lines_are_left_out() -> None:
    text = line(qtime="") + line(job=8) + line(job=9, start="soon")
    read = parse_cobalt_log(text, source="m.log", lenient=True)
    assert read.job_log.job_id.tolist() == [8]
    assert read.bgp_partition_of == {8: "MIR-00000-33371-1-1024"}
    assert any("2 malformed lines left out" in note for note in read.job_log.notes)


@pytest.mark.parametrize(("week", "jobs"), [(1, 2_147), (2, 1_511), (3, 2_882), (4, 1_335)])
def test_miras_log_is_read_whole(week: int, jobs: int, bluegene: Callable[[str], Path]) -> None:
    path = bluegene(f"mira-2018-wk{week}.cobalt.log.gz")
    read = read_cobalt_log(path)
    log = read.job_log
    assert len(log.job_id) == len(read.bgp_partition_of) == jobs
    assert not log.wait.mask.any()
    assert int(log.requested_processors.max()) <= 49_152
    assert all(name.startswith("MIR-") for name in read.bgp_partition_of.values())
    same = read_log(path)
    assert same.job_id.tolist() == log.job_id.tolist()
    assert same.name == f"mira-2018-wk{week}"


def test_options_that_it_does_not_take(tmp_path: Path) -> None:
    path = tmp_path / "m.log"
    path.write_text(line())
    with pytest.raises(InputError, match="--time-zone is for sacct, CSV and PBS"):
        read_log(path, time_zone="UTC")
    with pytest.raises(InputError, match="--columns is for sacct and CSV"):
        read_log(path, columns="user=user")
