"""The parsers and one poll, on replies recorded from a live Slurm 22.05.8 with slurmdbd."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from foretime_estimators.errors import InputError
from foretime_estimators.jobs import Ending
from foretime_sidecar.clients.client import QueueState
from foretime_sidecar.clients.slurm_commands import SlurmCommands
from foretime_sidecar.clients.slurm_json import parse_finished
from foretime_sidecar.settings import Settings, parse_settings, to_toml
from foretime_sidecar.sidecar import Sidecar
from foretime_sidecar.store import Store

NOW = 1795210300


class Recorded:
    def __init__(self, repository: Path) -> None:
        self.folder = repository / "tests/assets/slurm/22.05"

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        name = argv[0] if argv[0] != "scontrol" else f"scontrol-{argv[2]}"
        if "--json" in argv:
            return json.loads((self.folder / f"{name}.json").read_text())
        return (self.folder / f"{name}.txt").read_text()


def test_endings_and_runtimes(repository: Path) -> None:
    records = parse_finished(Recorded(repository)(["sacct", "--json"]))
    by_id = {(r.job.request.job_id, r.state): r.job for r in records}
    timed_out = by_id["4", "TIMEOUT"]
    assert (timed_out.ending, timed_out.request.requested_time) == (Ending.TIMED_OUT, 60)
    assert by_id["17", "CANCELLED"].ending is Ending.NEVER_STARTED
    assert by_id["18", "REQUEUED"].ending is Ending.REQUEUED
    assert by_id["18", "COMPLETED"].actual_runtime == 60
    assert by_id["20", "NODE_FAIL"].ending is Ending.NODE_FAILED
    suspended = by_id["36_2", "CANCELLED"]
    assert (suspended.actual_runtime, suspended.request.array_id) == (8, "36")
    assert not any(r.job.request.job_id == "22" for r in records), "no limit, no accuracy"


@pytest.mark.parametrize("field", ["user", "account"])
def test_a_job_with_a_name_that_is_no_text_is_dropped(
    field: str, repository: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorded = Recorded(repository)
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
        learned = Sidecar(settings, SlurmCommands(run), store).poll(NOW).learned
    store.close()
    assert [r for r in good if r.job.request.job_id != bad] == records
    assert learned == len(records)
    assert f"{len(good) - len(records)} finished jobs dropped" in caplog.text
    assert f"job {bad}" in caplog.text


def test_queue(repository: Path) -> None:
    queue = SlurmCommands(Recorded(repository)).queue()
    jobs = {job.request.job_id: job for job in queue.jobs}
    assert queue.processors == 16
    assert jobs["38"].tasks == 12
    assert jobs["15"].held
    assert jobs["44"].dependent
    assert jobs["42"].deadline
    assert jobs["40"].heterogeneous
    assert jobs["36_2"].state is QueueState.SUSPENDED
    assert jobs["37"].time_min == 12 * 3600


def test_a_poll_repeats_and_loses_nothing(repository: Path, tmp_path: Path) -> None:
    text = f'[table]\npath = "{tmp_path}/table"\n[scheduler]\nhistory_days = 1\n'
    settings = parse_settings(text)
    store = Store(tmp_path / "store")
    sidecar = Sidecar(settings, SlurmCommands(Recorded(repository)), store)
    first = sidecar.poll(NOW)
    assert (first.learned, first.generation) == (store.finished_count(), 1)
    assert sidecar.poll(NOW + 60).learned == 0
    store.close()
    store = Store(tmp_path / "store")
    again = Sidecar(settings, SlurmCommands(Recorded(repository)), store)
    result = again.poll(NOW + 120)
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
