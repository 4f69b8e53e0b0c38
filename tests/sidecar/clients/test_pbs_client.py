"""The PBS client passes the shared checks: on commands that print files, and on the mock PBS."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.array_indices import count_indices
from foretime_sidecar.clients.client import Cursor, JobChange, QueuedJob, QueueState
from foretime_sidecar.clients.pbs.commands import PbsCommands, PbsProcesses
from foretime_sidecar.clients.pbs.json import (
    parse_configuration,
    parse_history,
    parse_queue,
    parse_reservations,
    parse_vnodes,
)
from foretime_sidecar.clients.pbs.json_text import read_json
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st

from tests.support.client_checks import CHANGING, READING, Check

NOW = 1_795_176_000  # 2026-11-20 12:00 UTC, when the replies were given
MIDNIGHT = NOW - 43_200
START = 1_800_000_000


@pytest.fixture
def assets(repository: Path) -> Path:
    return repository / "tests/assets/pbs/openpbs"


COMMANDS = {
    "qstat": """case "$*" in
  "-t -f -F json") cat {assets}/qstat.json ;;
  "-x -t -f -F json") cat {assets}/qstat-x.json ;;
  "-B -f -F json") cat {assets}/qstat-B.json ;;
  *) echo "qstat: illegal option $*" >&2; exit 2 ;;
esac""",
    "pbsnodes": 'test "$*" = "-a -F json" && cat {assets}/pbsnodes.json',
    "pbs_rstat": 'test "$*" = "-f" && test "$TZ" = UTC0 && cat {assets}/pbs_rstat.txt',
    "qalter": 'echo "$*" >> {folder}/altered; echo "qalter: Unknown Job Id 9.pbs01" >&2; exit 153',
}


@pytest.fixture
def commands_dir(assets: Path, tmp_path: Path) -> Path:
    """Commands that print what PBS would."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in COMMANDS.items():
        path = folder / name
        words = script.replace("{assets}", str(assets)).replace("{folder}", str(tmp_path))
        path.write_text(f"#!/bin/sh\n{words}\n")
        path.chmod(0o755)
    return folder


def _submission(processors: int = 4, **changed: Any) -> PbsSubmission:
    values: dict[str, Any] = {
        "user": "alice",
        "account": "physics",
        "queue": "workq",
        "processors": processors,
        "requested_time": 3600,
        "actual_runtime": 600,
    }
    return PbsSubmission(**(values | changed))


def _busy_pbs(folder: Path) -> MockPbs:
    """Some jobs have ended in every way that the mock knows, some run, some wait."""
    setup = PbsSetup(16, {}, folder / "accounting", folder / "server_logs")
    pbs = MockPbs(setup, Policy(), None, START)
    for number, ending in enumerate(Ending):
        if ending is not Ending.NEVER_STARTED:
            pbs.submit(_submission(1, ending=ending, actual_runtime=100 + 10 * number))
    pbs.submit(_submission(1, requested_time=120, actual_runtime=500))
    pbs.submit(_submission(2, array_id=50))
    pbs.submit(_submission(2, array_id=50))
    pbs.advance(START + 1000)
    pbs.submit(_submission(12, actual_runtime=3000))
    pbs.submit(_submission(16, requested_time=7200))
    pbs.submit(_submission(16, user=None, account=None))
    pbs.submit(_submission(16, array_id=51))
    pbs.submit(_submission(16, array_id=51))
    pbs.delete(pbs.submit(_submission(16)))
    pbs.advance(START + 1100)
    return pbs


Made = Callable[[], PbsCommands]


@pytest.fixture(params=["commands", "commands-history", "mock", "mock-history"])
def client(
    request: pytest.FixtureRequest, assets: Path, commands_dir: Path, tmp_path: Path
) -> PbsCommands:
    """Each way to a PBS that there is."""
    history = request.param.endswith("-history")
    if request.param.startswith("mock"):
        pbs = _busy_pbs(tmp_path)
        accounting = None if history else tmp_path / "accounting"
        return PbsCommands(pbs.run, accounting, tmp_path / "server_logs", overlap_s=0)
    run = PbsProcesses(str(commands_dir), attempts=1)
    accounting = None if history else assets / "accounting"
    return PbsCommands(run, accounting, assets / "server_logs", overlap_s=0)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.__name__)
def test_reading_passes_the_shared_checks(check: Check, client: PbsCommands) -> None:
    check(client)


@pytest.mark.parametrize("check", CHANGING, ids=lambda check: check.__name__)
def test_changing_passes_the_shared_checks(check: Check, tmp_path: Path) -> None:
    pbs = _busy_pbs(tmp_path)
    pbs.has_ranks = True  # foretime install pbs has made the resource
    check(PbsCommands(pbs.run, tmp_path / "accounting", overlap_s=0))


# What is read, by hand ---------------------------------------------------------------------------


@pytest.fixture
def queue(assets: Path) -> dict[str, QueuedJob]:
    jobs = parse_queue((assets / "qstat.json").read_text())
    return {job.request.job_id.removesuffix(".pbs01"): job for job in jobs}


def test_the_queue_has_each_job_as_qstat_tells_it(queue: dict[str, QueuedJob]) -> None:
    assert set(queue) == {
        "101", "102", "103", "104", "105", "106", "107[]", "107[0]", "107[1]", "108", "109", "111",
    }  # fmt: skip
    running = queue["101"]
    assert running.state is QueueState.RUNNING
    assert (running.start_time, running.time_min) == (NOW - 3600, 3000)
    assert running.request.requested_time == 7200
    assert (running.request.user, running.request.project) == ("alice", "physics")
    assert running.suspended_time == 0, "MoM tells of the runtime late; that is no suspension"
    suspended = queue["102"]
    assert suspended.state is QueueState.SUSPENDED
    assert suspended.suspended_time == 8000 - 3600
    assert suspended.request.project == "chem"
    waiting = queue["103"]
    assert waiting.state is QueueState.PENDING
    assert waiting.request.user == "carol"
    assert waiting.request.project is None
    assert waiting.start_time == NOW + 1800
    assert waiting.eligible_time == NOW - 300, "it has accrued five minutes, of ten in the queue"
    assert waiting.reason.startswith("Not Running")
    assert queue["111"].request.processors == 16
    assert queue["111"].request.requested_time == 360_000


def test_holds_dependencies_and_times_to_come(queue: dict[str, QueuedJob]) -> None:
    assert (queue["104"].held, queue["104"].dependent) == (True, False)
    assert (queue["105"].held, queue["105"].dependent) == (False, True)
    assert queue["106"].eligible_time == NOW + 7200
    assert queue["108"].reservation == "R12"
    assert queue["103"].reservation is None
    assert queue["109"].request.requested_time == 4 * 3600, "shrink-to-fit: its max_walltime"


def test_an_array_is_its_waiting_tasks_and_each_that_runs(queue: dict[str, QueuedJob]) -> None:
    array = queue["107[]"]
    assert (array.tasks, array.state) == (8, QueueState.PENDING)
    assert array.request.array_id == queue["107[0]"].request.array_id == "107[].pbs01"
    assert queue["107[0]"].state is QueueState.RUNNING
    assert count_indices("-") == 0
    assert count_indices("2-9,12-20:2, 30") == 8 + 5 + 1
    assert count_indices(f"1-9:0,1-{'9' * 5_000},7") == 1, "what is no range counts nothing"


def test_the_configuration_is_read_from_qstat(assets: Path) -> None:
    configuration = parse_configuration((assets / "qstat-B.json").read_text())
    assert (configuration.scheduler, configuration.cluster) == ("pbs", "pbs01")
    assert configuration.version == "23.06.06"
    assert configuration.parameters["backfill_depth"] == "10"
    assert configuration.parameters["resources_default.walltime"] == "01:00:00"
    assert configuration.soft_limit
    assert configuration.time_step_s == 1


def test_only_processors_that_are_up_or_used_count(assets: Path) -> None:
    # Three nodes of 16 are up; on the one that is offline 4 are still used.
    processors, away = parse_vnodes((assets / "pbsnodes.json").read_text())
    assert processors == 3 * 16 + 4
    assert away == {"n03", "n04"}


def test_reservations_are_read_from_pbs_rstat(assets: Path) -> None:
    (reservation,) = parse_reservations((assets / "pbs_rstat.txt").read_text())
    assert reservation.name == "R12.pbs01"
    assert (reservation.start_time, reservation.end_time) == (NOW + 86_400, NOW + 93_600)
    assert reservation.processors == 32
    with pytest.raises(SchedulerError, match=r"pbs_rstat: can't read the times of R1: .*tomorrow"):
        parse_reservations("Resv ID: R1\nreserve_start = tomorrow\nreserve_end = later\n")


def test_finished_jobs_are_read_from_both_logs(assets: Path, commands_dir: Path) -> None:
    run = PbsProcesses(str(commands_dir), attempts=1)
    client = PbsCommands(run, assets / "accounting", assets / "server_logs", 0, clock=lambda: NOW)
    records, cursor = client.finished_since(Cursor())
    found = {record.job.request.job_id.removesuffix(".pbs01"): record for record in records}
    assert list(found) == ["1", "4[0]", "4[1]", "3", "2", "5", "8", "9", "10"]
    assert cursor == Cursor(MIDNIGHT + 9700)
    assert found["1"].eligible_time == MIDNIGHT - 86_400 + 7200 - 1800
    assert found["2"].job.start_time == MIDNIGHT + 100, "the last run counts"
    assert found["2"].eligible_time == MIDNIGHT - 86_400 + 82_200
    assert found["3"].job.ending is Ending.CANCELLED
    assert found["8"].job.ending is Ending.TIMED_OUT
    assert found["8"].state == "Exit_status=-29"
    assert found["9"].job.actual_runtime == 2400, "an hour of it was suspended"
    assert found["10"].job.ending is Ending.OUT_OF_MEMORY
    assert "event=runjob" in found["1"].admin_comment, "the latest decision"
    assert "t_sched=3900 decision=readjusted" in found["1"].admin_comment
    assert "decision=left reason=no-row" in found["4[0]"].admin_comment, "its array's"
    assert found["3"].admin_comment == ""


def test_finished_jobs_of_the_servers_history(assets: Path) -> None:
    records = parse_history((assets / "qstat-x.json").read_text())
    found = {record.job.request.job_id.removesuffix(".pbs01"): record.job for record in records}
    assert list(found) == ["92", "91", "90", "107[99]"]
    assert found["90"].actual_runtime == 2400
    assert found["90"].end_time == NOW - 7600
    assert [found[name].ending for name in ("90", "91", "92")] == [
        Ending.COMPLETED, Ending.TIMED_OUT, Ending.CANCELLED,
    ]  # fmt: skip
    assert found["107[99]"].request.array_id == "107[].pbs01"


# JSON that is none ------------------------------------------------------------------------------


def test_the_known_defects_hide_no_job(assets: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = (assets / "defects.txt").read_text()
    jobs = read_json(text, "qstat", "Jobs")["Jobs"]
    assert set(jobs) == {"201.pbs01", "202.pbs01", "203.pbs01"}
    assert jobs["201.pbs01"]["comment"].endswith('"zaskly scratch" (Sep 04 14:13)')
    variables = jobs["201.pbs01"]["Variable_List"]
    assert variables["foo"] == "005"
    assert variables["FOO1"] == ".123"
    assert variables["TORN"] == "first line\nsecond line"
    assert variables["MYVAR"] == "\\'\"asads\"\\'"
    with caplog.at_level(logging.WARNING, "foretime"):
        queue = parse_queue(text)
    assert [job.request.job_id for job in queue] == ["201.pbs01", "202.pbs01"]
    assert [job.request.processors for job in queue] == [4, 2]
    assert "1 jobs passed over" in caplog.text
    assert "203.pbs01 ('yesterday' is no time)" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "", "qstat: cannot connect", "[]", "{}", "null", '{"a": 1}',
        '{"timestamp":1,"pbs_version":"23","Jobs":{"1.pbs":{"a":005}}', '{"Jobs": []}',
    ],
)  # fmt: skip
def test_what_is_no_reply_of_pbs_is_refused(text: str) -> None:
    with pytest.raises(SchedulerError, match=r"PBS's JSON|not an object"):
        read_json(text, "qstat", "Jobs")


def test_a_reply_of_no_time_is_refused() -> None:
    with pytest.raises(SchedulerError, match="qstat: the timestamp of its reply: 'x' is no time"):
        parse_queue('{"timestamp":"x","pbs_version":"23","Jobs":{}}')


def test_names_that_look_like_numbers_keep_their_spelling() -> None:
    text = (
        '{"timestamp":1,"pbs_version":"23","Jobs":{"1.pbs":{"job_state":"Q","euser":1e5,'
        '"Account_Name":7.10,"project":NaN,"queue":42,"ctime":1000,"Resource_List":{"ncpus":"4"}}}}'
    )
    (job,) = parse_queue(text)
    request = job.request
    assert (request.user, request.project, request.queue) == ("1e5", "7.10", "42")
    assert (request.processors, request.submit_time) == (4, 1000)


def test_a_reply_that_was_cut_off_is_refused(assets: Path) -> None:
    text = (assets / "qstat.json").read_text()
    for end in (100, 1000, len(text) - 10):
        with pytest.raises(SchedulerError, match="PBS's JSON"):
            parse_queue(text[:end])
    assert parse_queue('{"timestamp":1,"pbs_version":"23.06.06","pbs_server":"pbs01"}') == ()


_ODD = ['"x"', r'"\ud800"', "-1", "null", "[]", "{}", "1e400", "x", '"a"b"', ""]


@given(data=st.data())
def test_odd_replies_are_read_or_refused(repository: Path, data: st.DataObject) -> None:
    text = (repository / "tests/assets/pbs/openpbs/qstat-x.json").read_text()
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(4, len(lines) - 5))
        key, colon, _ = lines[at].partition(":")
        odd = data.draw(
            st.sampled_from(['"x"', "-1", "null", "[]", "{}", "1e400", "x", '"a"b"', ""])
        )
        lines[at] = f"{key}{colon}\t{odd}," if colon else odd
    for parse in (parse_queue, parse_history):
        try:
            found: Sequence[Any] = parse("\n".join(lines))
        except SchedulerError:
            continue
        for job in found:
            request = job.request if isinstance(job, QueuedJob) else job.job.request
            assert isinstance(request.job_id, str)
            assert request.processors >= 1
            assert request.requested_time >= 1
            assert request.user is None or request.user.encode()


# Changes ----------------------------------------------------------------------------------------


def test_alike_changes_are_one_command(commands_dir: Path, tmp_path: Path) -> None:
    client = PbsCommands(PbsProcesses(str(commands_dir), attempts=3), None)
    changes = [
        JobChange("1.pbs01", time_min=600),
        JobChange("2.pbs01", time_min=600),
        JobChange("3.pbs01", time_limit=1200, time_min=900),
        JobChange("103.pbs01", time_min=0),
        JobChange("9.pbs01", time_min=0),
    ]
    with pytest.raises(SchedulerError, match=r"9.pbs01: no such job.*Unknown Job Id 9.pbs01"):
        client.update(changes)
    # Once each: what was refused would be refused again.
    assert (tmp_path / "altered").read_text().splitlines() == [
        "-l soft_walltime=600 1.pbs01 2.pbs01",
        "-l walltime=1200,soft_walltime=900 3.pbs01",
        "-l soft_walltime=86400 103.pbs01",
    ]


def test_a_job_of_walltime_0_is_cleared_without_setting_it_to_0(tmp_path: Path) -> None:
    """Below 1 s pbs_sched would die; above walltime pbs_server would refuse."""
    pbs = _busy_pbs(tmp_path)
    client = PbsCommands(pbs.run, None)
    waiting = [job.request.job_id for job in client.queue().jobs if job.state.name == "PENDING"][:2]
    for walltime in (0, 1):
        for name in waiting:
            pbs.alter(name, {"walltime": 3600})
        client.update([JobChange(name, time_min=600) for name in waiting])
        pbs.alter(waiting[0], {"soft_walltime": 0, "walltime": walltime})
        client.update([JobChange(waiting[0], time_min=0)])
        client.update([JobChange(waiting[1], time_limit=walltime, time_min=0)])
        for name in waiting:
            listed = pbs.job_at(pbs.index_of(name)).resources
            assert listed["walltime"] == walltime
            assert "soft_walltime" not in listed


def test_commands_that_are_not_there_or_fail_are_told_of(commands_dir: Path) -> None:
    client = PbsCommands(PbsProcesses("/nowhere", attempts=1), None)
    with pytest.raises(SchedulerError, match="install PBS's client commands"):
        client.configuration()
    with pytest.raises(SchedulerError, match="qstat failed with exit code 2: qstat: illegal"):
        PbsProcesses(str(commands_dir), attempts=1)(["qstat", "-Q"])


def test_a_command_is_tried_again(commands_dir: Path, tmp_path: Path) -> None:
    flaky = commands_dir / "qstat"
    flaky.write_text(
        f"#!/bin/sh\necho x >> {tmp_path}/tries\n"
        f'test $(wc -l < {tmp_path}/tries) -ge 2 && echo "{{}}"\n'
    )
    assert PbsProcesses(str(commands_dir), attempts=2)(["qstat"]) == "{}\n"


def test_local_time_does_not_matter(
    assets: Path, commands_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    client = PbsCommands(PbsProcesses(str(commands_dir), attempts=1), assets / "accounting")
    assert client.reservations()[0].start_time == NOW + 86_400
    assert os.environ["TZ"] == "America/New_York"


def test_an_unreadable_accounting_folder_says_what_to_do(tmp_path: Path) -> None:
    client = PbsCommands(lambda argv: "", tmp_path / "none")
    with pytest.raises(SchedulerError, match=r"none: can't be read.*scheduler.pbs_accounting_dir"):
        client.finished_since(Cursor())


def test_unreadable_server_logs_keep_no_job_from_being_learned(
    assets: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = PbsCommands(lambda argv: "", assets / "accounting", tmp_path / "none", 0)
    with caplog.at_level(logging.WARNING, "foretime"):
        assert len(client.finished_since(Cursor())[0]) == 9
        client.finished_since(Cursor())
    assert caplog.text.count("stored without the hook's decisions") == 1
    assert "scheduler.pbs_server_logs_dir" in caplog.text
