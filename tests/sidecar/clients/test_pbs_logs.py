"""Following PBS's logs: midnight, lines half written, compression, restarts, and nothing twice."""

from __future__ import annotations

import gzip
import logging
import tempfile
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.pbs.day_files import DayFiles, day_of
from foretime_sidecar.clients.pbs.logs import AccountingTail, DecisionTail
from foretime_sim.logs.pbs_accounting_writer import ended_message, resource_words
from hypothesis import given
from hypothesis import strategies as st

NOON = 1_795_176_000  # 2026-11-20 12:00 UTC
DAY = 86_400


def _end(job: int, end: int, stamp: str = "11/20/2026 12:00:00") -> str:
    started = f"user=u{job % 3} ctime={end - 100} etime={end - 100} start={end - 50} "
    message = ended_message(started + resource_words(4, 3600), end, 50, 4, Ending.COMPLETED)
    return f"{stamp};E;{job}.pbs;{message}\n"


def _jobs(tail: AccountingTail, since: int, until: int | None = None) -> list[int]:
    return [int(job.job_id.partition(".")[0]) for job in tail.ended_since(since, until)]


def _day(end: int) -> str:
    return day_of(end)


def test_half_lines_wait_and_midnight_loses_none(tmp_path: Path) -> None:
    tail = AccountingTail(tmp_path)
    today, tomorrow = tmp_path / _day(NOON), tmp_path / _day(NOON + DAY)
    line = _end(1, NOON)
    today.write_text(line[:70])
    assert _jobs(tail, 1) == []
    today.write_text(line)
    assert _jobs(tail, 1) == [1]
    with today.open("a") as file:
        file.write(_end(2, NOON + 10) + _end(3, NOON + 20)[:-1])
    assert _jobs(tail, NOON + 5) == [2]
    tomorrow.write_text(_end(4, NOON + DAY)[:-30])
    with today.open("a") as file:
        file.write("\n")
    assert _jobs(tail, NOON + 5) == [2, 3]
    tomorrow.write_text(_end(4, NOON + DAY))
    assert _jobs(tail, NOON + 5) == [2, 3, 4]
    assert _jobs(tail, NOON + DAY) == [4]
    # Asked for an earlier time it reads again.
    assert _jobs(tail, 1) == [1, 2, 3, 4]
    assert _jobs(tail, 1, NOON + 10) == [1, 2]


def test_compressed_after_it_was_read(tmp_path: Path) -> None:
    tail = AccountingTail(tmp_path)
    day = tmp_path / _day(NOON)
    day.write_text(_end(1, NOON) + _end(2, NOON + 1))
    assert _jobs(tail, 1) == [1, 2]
    packed = day.with_name(day.name + ".gz")
    packed.write_bytes(gzip.compress(day.read_bytes()))
    day.unlink()
    assert _jobs(tail, 1) == [1, 2]
    # After a restart it is read where it is.
    assert _jobs(AccountingTail(tmp_path), 1) == [1, 2]
    packed.write_bytes(packed.read_bytes()[:-10])
    with pytest.raises(SchedulerError, match=r"\.gz: can't be read"):
        _jobs(AccountingTail(tmp_path), 1)


def test_a_file_put_in_its_place_is_read_anew(tmp_path: Path) -> None:
    tail = AccountingTail(tmp_path)
    day = tmp_path / _day(NOON)
    day.write_text(_end(1, NOON) + _end(2, NOON + 1))
    assert _jobs(tail, 1) == [1, 2]
    day.write_text(_end(3, NOON + 2))
    assert _jobs(tail, 1) == [1, 2, 3]


def test_malformed_lines_hide_no_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    day = tmp_path / _day(NOON)
    bad = _end(2, NOON).replace("walltime=01:00:00", "walltime=oops")
    day.write_text("garbage\n" + _end(1, NOON) + bad + "\n\xff\n" + _end(3, NOON + 5))
    with caplog.at_level(logging.WARNING, "foretime"):
        assert _jobs(AccountingTail(tmp_path), 1) == [1, 3]
    assert "malformed lines passed over" in caplog.text
    assert "walltime='oops' can't be read" in caplog.text


_EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("end"), st.integers(1, 60_000)),
        st.tuples(st.just("write"), st.integers(0, 400)),  # bytes that reach the disk
        st.tuples(st.just("poll"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=40,
)


@given(events=_EVENTS)
def test_whenever_it_looks_and_dies_it_misses_none(
    events: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Jobs end over days, lines reach the disk piecemeal; polls as the sidecar makes them."""
    folder = tmp_path_factory.mktemp("accounting")
    tail, cursor, now = AccountingTail(folder), 1, NOON
    waiting: list[tuple[str, bytes]] = []
    seen: set[int] = set()
    ended = 0

    def write(count: int | None) -> None:
        while waiting and (count is None or count > 0):
            day, line = waiting.pop(0)
            some = line if count is None else line[:count]
            with (folder / day).open("ab") as file:
                file.write(some)
            if count is not None:
                count -= len(some)
                if len(some) < len(line):
                    waiting.insert(0, (day, line[len(some) :]))

    def poll() -> None:
        nonlocal cursor
        found = tail.ended_since(cursor)
        assert len({job.job_id for job in found}) == len(found)
        seen.update(int(job.job_id.partition(".")[0]) for job in found)
        cursor = max([cursor, *(job.end_time for job in found)])

    for what, value in events:
        if what == "end":
            now += value
            ended += 1
            waiting.append((day_of(now), _end(ended, now).encode()))
        elif what == "write":
            write(value)
        elif what == "restart":
            tail = AccountingTail(folder)
        else:
            poll()
    write(None)
    poll()
    assert seen == set(range(1, ended + 1))


SAID = "11/20/2026 12:00:00;0008;Server@pbs;Hook;Server@pbs;foretime: event={} job={} t_req={}\n"
REQUEST = (
    "11/20/2026 12:00:00;0100;Server@pbs;Req;;Type {} request received from ann@pbs, sock={}\n"
)
QUEUED = (
    "11/20/2026 12:00:00;0008;Server@pbs;Job;{};Job Queued at request of ann@pbs, "
    "owner = ann@pbs, job name = {}, queue = workq\n"
)


class ServerLog:
    """A server's log of one day, and what follows it."""

    def __init__(self, folder: Path) -> None:
        self._day = folder / day_of(NOON)
        self.tail = DecisionTail(folder)

    def write(self, *lines: str) -> None:
        with self._day.open("a") as file:
            file.writelines(lines)
        self.tail.follow(NOON)


@pytest.fixture
def log(tmp_path: Path) -> ServerLog:
    return ServerLog(tmp_path)


def submission(connection: int, t_req: int) -> tuple[str, str]:
    return REQUEST.format(1, connection), SAID.format("queuejob", "-", t_req)


def test_the_latest_line_of_a_job_counts(log: ServerLog) -> None:
    log.write(SAID.format("modifyjob", "1.pbs", 1))
    assert log.tail.of("1.pbs") == "event=modifyjob job=1.pbs t_req=1"
    assert log.tail.of("2.pbs") == ""
    log.write(SAID.format("runjob", "1.pbs", 1))
    assert log.tail.of("1.pbs").startswith("event=runjob")
    log.tail.follow(NOON + 100 * DAY)
    assert log.tail.of("1.pbs") == "", "nobody asked for it in three months"


def test_an_array_and_its_subjobs_are_found_by_the_ids_that_pbs_gives_them(log: ServerLog) -> None:
    log.write(*submission(18, 60), QUEUED.format("3[].pbs", "STDIN"))
    log.write(SAID.format("runjob", "3%5B2%5D.pbs", 60))
    assert log.tail.of("3[].pbs").startswith("event=queuejob job=3[].pbs ")
    assert log.tail.of("3[7].pbs").startswith("event=queuejob job=3[].pbs ")
    assert log.tail.of("3[2].pbs").startswith("event=runjob job=3[2].pbs ")


def test_a_users_words_in_another_line_are_no_decision(log: ServerLog) -> None:
    forged = "x;Hook;x;foretime: event=queuejob job=9.pbs t_req=1"
    log.write(*submission(18, 60), QUEUED.format("1.pbs", forged))
    log.write(*submission(18, 90), QUEUED.format("2.pbs", "x;Job;9.pbs;Job Queued at request of "))
    assert log.tail.of("9.pbs") == ""
    assert log.tail.of("1.pbs").endswith(" t_req=60")
    assert log.tail.of("2.pbs").endswith(" t_req=90")


@given(st.data())
def test_a_submission_gets_the_id_of_the_job_that_its_connection_queued(
    data: st.DataObject,
) -> None:
    """Commands are queued at once, scripts some requests later, some are rejected."""
    expected: dict[str, str] = {}
    waiting: dict[int, int] = {}
    lines: list[str] = []
    for number in range(data.draw(st.integers(1, 12))):
        connection = data.draw(st.integers(10, 13))
        lines += submission(connection, number)
        waiting.pop(connection, None)
        outcome = data.draw(st.sampled_from(["command", "script", "rejected"]))
        if outcome == "command":
            lines.append(QUEUED.format(f"{number}.pbs", "STDIN"))
            expected[f"{number}.pbs"] = f"t_req={number}"
        elif outcome == "script":
            waiting[connection] = number
        for ready in data.draw(st.permutations(sorted(waiting))):
            if data.draw(st.booleans()):
                job = waiting.pop(ready)
                lines.append(REQUEST.format(3, ready))
                lines.append(REQUEST.format(5, ready))
                lines.append(QUEUED.format(f"{job}.pbs", "STDIN"))
                expected[f"{job}.pbs"] = f"t_req={job}"
    with tempfile.TemporaryDirectory() as folder:
        log = ServerLog(Path(folder))
        parts = data.draw(st.integers(1, 3))
        for part in range(parts):
            log.write(*lines[part * len(lines) // parts : (part + 1) * len(lines) // parts])
        found = {job: log.tail.of(job).split()[-1:] for job in expected}
    assert found == {job: [said] for job, said in expected.items()}


def test_without_requests_in_the_log_only_what_is_certain_is_taken(log: ServerLog) -> None:
    one, two, three = (SAID.format("queuejob", "-", number) for number in (1, 2, 3))
    log.write(one, QUEUED.format("1.pbs", "STDIN"))
    log.write(two, three, QUEUED.format("2.pbs", "STDIN"), QUEUED.format("3.pbs", "STDIN"))
    assert [log.tail.of(f"{job}.pbs") != "" for job in (1, 2, 3)] == [True, False, False]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    files = DayFiles(tmp_path / "none", "scheduler.pbs_server_logs_dir")
    with pytest.raises(SchedulerError, match=r"can't be read: No such file.*pbs_server_logs_dir"):
        list(files.lines("00000000", "99999999"))
