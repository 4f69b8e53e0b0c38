"""The parsers and one poll, on what `tests.slurm.harness.record_replies` had live Slurms answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.client import Cursor, QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.control_texts import (
    parse_federation,
    parse_load,
    parse_numbers,
    parse_processors,
    parse_site_factors,
)
from foretime_sidecar.clients.slurm.json import parse_finished
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import parse_settings, to_toml
from foretime_sidecar.store.store import Store


class Recorded:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        name = argv[0] if argv[0] != "scontrol" else f"scontrol-{argv[2]}"
        if "--json" in argv:
            return json.loads((self.folder / f"{name}.json").read_text())
        return (self.folder / f"{name}.txt").read_text()


@pytest.fixture(params=["22.05", "26.05"])
def recorded(request: pytest.FixtureRequest, repository: Path) -> Recorded:
    """Each release."""
    return Recorded(repository / "tests/assets/slurm" / request.param)


@pytest.fixture
def now(recorded: Recorded) -> int:
    """Soon after the last job that ended."""
    return SlurmCommands(recorded).finished_since(Cursor())[1].end_time + 60


def test_finished_jobs_have_the_endings_and_runtimes_that_they_had(recorded: Recorded) -> None:
    records = parse_finished(recorded(["sacct", "--json"]))
    by_id = {r.job.request.job_id: r for r in records}
    assert len(by_id) == len(records)
    endings = {
        "1": Ending.COMPLETED,
        "2": Ending.FAILED,
        "3": Ending.TIMED_OUT,
        "5_1": Ending.COMPLETED,
        "5_2": Ending.COMPLETED,
        "5_3": Ending.COMPLETED,
        "8": Ending.CANCELLED,
        "9": Ending.CANCELLED,
        "10": Ending.NODE_FAILED,
        "11": Ending.REQUEUED,
        "12": Ending.NEVER_STARTED,
    }
    assert {job_id: r.job.ending for job_id, r in by_id.items()} == endings, (
        "job 4 had no limit, so no accuracy"
    )
    assert (by_id["3"].job.request.requested_time, by_id["3"].job.actual_runtime > 60) == (60, True)
    assert by_id["11"].state == "REQUEUED"
    suspended = by_id["9"].job
    assert suspended.start_time is not None
    assert suspended.end_time - suspended.start_time - suspended.actual_runtime >= 3
    assert {r.job.request.user for r in records} == {"alice", "bob", "carol"}
    assert {r.job.request.project for r in records} == {"physics"}
    assert by_id["5_2"].job.request.array_id == "5"
    assert all(r.eligible_time for r in records if r.job.start_time is not None)
    assert by_id["12"].eligible_time is None, "it was held all the time"


@pytest.mark.parametrize("field", ["user", "account"])
def test_a_job_with_a_name_that_is_no_text_is_dropped(
    field: str,
    recorded: Recorded,
    now: int,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = json.dumps(recorded(["sacct", "--json"]))
    good = parse_finished(json.loads(text))
    bad = "1"
    reply = json.loads(text)
    spoilt = [job for job in reply["jobs"] if str(job["job_id"]) == bad]
    for job in spoilt:
        job["association"][field] = json.loads(r'"al\ud800ice"')

    def run(argv: Sequence[str], stdin: str | None = None) -> object:
        return reply if argv[0] == "sacct" else recorded(argv, stdin)

    settings = parse_settings(f'[table]\npath = "{tmp_path}/table"\n[scheduler]\nhistory_days = 1')
    store = Store(tmp_path / "store")
    with caplog.at_level(logging.WARNING, "foretime"):
        records = parse_finished(reply)
        learned = Sidecar(settings, SlurmCommands(run), store).poll(now).learned
    store.close()
    assert [r for r in good if r.job.request.job_id != bad] == records
    assert learned == len(records)
    assert f"{len(good) - len(records)} finished jobs dropped" in caplog.text
    assert f"job {bad}" in caplog.text


def test_the_queue_has_each_job_as_it_stood(recorded: Recorded) -> None:
    queue = SlurmCommands(recorded).queue()
    jobs = {job.request.job_id: job for job in queue.jobs}
    assert queue.processors == 16
    running, paused = jobs.pop("13"), jobs.pop("14")
    assert (running.state, running.request.processors) == (QueueState.RUNNING, 12)
    assert paused.state is QueueState.SUSPENDED
    assert {job.state for job in jobs.values()} == {QueueState.PENDING}
    assert (jobs["16"].tasks, jobs["16"].request.array_id) == (12, "16")
    assert [name for name, job in jobs.items() if job.held] == ["17"]
    assert [name for name, job in jobs.items() if job.dependent] == ["18"]
    assert [name for name, job in jobs.items() if job.deadline] == ["20"]
    assert [name for name, job in jobs.items() if job.heterogeneous] == ["21", "22"]
    assert {name: job.time_min for name, job in jobs.items() if job.time_min} == {"15": 1800}
    assert jobs["15"].admin_comment == "noted by another tool"
    assert {job.qos for job in jobs.values()} == {"normal"}
    assert {job.nice for job in jobs.values()} == {0}
    ages = {name for name, job in jobs.items() if job.ages_since}
    assert ages.isdisjoint({"17", "18"}), "held, and waiting for another"
    assert jobs["16"].ages_since == jobs["16"].eligible_time


def test_the_wait_counts_from_eligible_time(recorded: Recorded) -> None:
    jobs = {job.request.job_id: job for job in SlurmCommands(recorded).queue().jobs}
    assert jobs["17"].eligible_time is None, "held from the start"
    assert jobs["18"].eligible_time is None, "waits for another"
    later = jobs["19"]
    assert later.eligible_time is not None
    assert later.eligible_time - later.request.submit_time == 3600, "--begin"
    requeued = jobs["11"]
    assert requeued.eligible_time is not None
    assert requeued.eligible_time > requeued.request.submit_time


def test_site_factors_load_and_configuration_are_read(recorded: Recorded) -> None:
    client = SlurmCommands(recorded)
    factors = client.site_factors()
    assert (factors["15"], factors["16"]) == (5, -7), "an array under its own number"
    assert factors.keys().isdisjoint({"11", "17", "18", "19"}), "those can't start yet"
    assert client.qos_priorities() == {"normal": 0, "high": 100}
    configuration = client.configuration()
    assert (configuration.priority_type, configuration.qos_weight) == (
        "priority/multifactor",
        10_000,
    )
    assert (configuration.site_factor_plugin, configuration.federation) == ("", "")
    assert configuration.version.startswith(recorded.folder.name)
    assert configuration.parameters["max_rpc_cnt"] == "150"
    load = client.load()
    assert 1 <= load.server_threads < 64
    assert 0 < load.scheduling_cycle_s < 1


def test_reservations_have_their_times_processors_and_flags(recorded: Recorded) -> None:
    course, maintenance = sorted(SlurmCommands(recorded).reservations(), key=lambda r: r.name)
    assert (course.slurm_partition, course.processors) == ("main", 4)
    assert (maintenance.slurm_partition, maintenance.processors) == (None, 16)
    assert {"MAINT", "IGNORE_JOBS"} <= maintenance.flags
    assert maintenance.end_time - maintenance.start_time == 3600


def test_other_replies_are_read_or_refused_with_what_was_expected() -> None:
    text = "Federation: fed1\nSelf:       lab:127.0.0.1:6817 ID:1 FedState:ACTIVE Features:\n"
    assert parse_federation(text) == "fed1"
    assert parse_numbers(" 7|5\n16|-7\n\n", "sacctmgr") == {"7": 5, "16": -7}
    with pytest.raises(SchedulerError, match=r"sacctmgr answered '7\|x'; expected NAME\|NUMBER"):
        parse_numbers("7|x", "sacctmgr")
    with pytest.raises(SchedulerError, match=r"expected NAME\|NUMBER"):
        parse_numbers(f"7|{'9' * 5_000}", "sacctmgr")
    for strange in ("7|5", "7|x|5|0 0", f"7|{'9' * 5_000}|1|0", "7|5|-1|0", "7|5|1|0|0"):
        with pytest.raises(SchedulerError, match=r"expected NAME\|SITE\|PRIORITY\|PARTS"):
            parse_site_factors(strange)
    with pytest.raises(SchedulerError, match="expected A/I/O/T"):
        parse_processors(f"{'9' * 5_000}/0/0/16")
    with pytest.raises(SchedulerError, match="sdiag did not tell the server thread count"):
        parse_load("sdiag: error: slurmctld is down")


@pytest.mark.parametrize(
    ("line", "factor"),
    [
        ("2|0|1|0 0 0 0 50 0 0 ", 0),  # nice takes all that it has
        ("2|0|100|0 0 0 0 -100 0 0 ", 0),
        ("2|5000|5000|0 0 0 0 0 0 0 ", 5000),
        ("2|-7|149|0 0 0 156 0 0 0 ", -7),
        ("2|0|3|0 0 0 0 0 0 0 cpu=0", 0),  # of parts that are shown as 0
        ("2|0|777|0 0 0 0 0 0 0 ", None),  # fixed, whatever its site factor
    ],
)
def test_of_a_fixed_priority_no_site_factor_is_known(line: str, factor: int | None) -> None:
    """Lines of a live 22.05 and 26.05, which print them alike."""
    assert parse_site_factors(f"{line}\n").get("2") == factor


def test_a_poll_repeats_and_loses_nothing(recorded: Recorded, now: int, tmp_path: Path) -> None:
    text = f'[table]\npath = "{tmp_path}/table"\n[scheduler]\nhistory_days = 1\n'
    settings = parse_settings(text)
    store = Store(tmp_path / "store")
    sidecar = Sidecar(settings, SlurmCommands(recorded), store)
    first = sidecar.poll(now)
    assert (first.learned, first.generation) == (store.finished_count(), 1)
    assert sidecar.poll(now + 60).learned == 0
    store.close()
    store = Store(tmp_path / "store")
    again = Sidecar(settings, SlurmCommands(recorded), store)
    result = again.poll(now + 120)
    assert (result.learned, result.generation) == (0, 2)
    assert again.progress.finished_jobs == first.learned
    store.close()


def test_the_printed_settings_are_the_defaults() -> None:
    assert parse_settings(to_toml()) == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[scheduler]\npoll_intervl_s = 3", "f:2: .*did you mean 'scheduler.poll_interval_s'"),
        ('[store]\nretention_days = "x"', "f:2: store.retention_days = 'x'"),
        ('mode = "observe"', "did you mean 'hook.mode'"),
        ("[accuracy]\nwindow_s = 9\nhalf_life_s = 99999", "f:2: .*ages by one"),
    ],
)
def test_wrong_settings_are_named(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_settings(text, "f")
