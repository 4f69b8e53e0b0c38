"""The daemon's store as a log, and the site's weeks planned by each estimator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.registry import ESTIMATORS
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.cli.site_commands import estimators as command
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.replays.estimator_replay import replay_estimators, replay_policy
from foretime_sidecar.replays.stored_workload import stored_workload
from foretime_sidecar.settings.settings import (
    AccuracySection,
    HookSettings,
    Settings,
    StoreSettings,
)
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sidecar.store.store import Store
from foretime_sim.engine.engine import simulate
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, Roles
from foretime_sim.policies.site_machine import on_machine_of
from foretime_sim.policies.slurm import Slurm
from foretime_sim.workloads.workload import ENDINGS
from typer.testing import CliRunner

from tests.support.replay_runs import made_workload

DAY_S = 86_400
NOW = 20_000 * DAY_S
app = typer.Typer()
app.command("estimators")(command.estimators)


def ended(
    number: int,
    submitted: int,
    began: int | None,
    ran: int,
    *,
    eligible: int | None = None,
    ending: Ending = Ending.COMPLETED,
    **changes: Any,
) -> FinishedRecord:
    request = replace(JobRequest(str(number), "alice", "physics", 4, 3600, submitted), **changes)
    end = submitted + 1 if began is None else began + ran
    return FinishedRecord(FinishedJob(request, began, end, ran, ending), eligible, ending.name)


def stored(path: Path, records: list[FinishedRecord]) -> Path:
    store = Store(path)
    store.add_finished(records, Cursor(0))
    store.close()
    return path


def test_a_store_is_a_log(tmp_path: Path) -> None:
    records = [
        ended(1, NOW, NOW + 100, 1000),
        # Held until it could start; one that never ran; one of no time.
        ended(2, NOW + 5, NOW + 300, 500, eligible=NOW + 50, ending=Ending.FAILED, processors=8),
        ended(3, NOW + 7, None, 0, ending=Ending.CANCELLED),
        ended(4, NOW + 8, NOW + 400, 0),
        ended(5, NOW + 10, NOW + 800, 60, user=None, queue="main"),
    ]
    found = stored_workload(stored(tmp_path / "store", records), days=7)
    workload = found.workload
    assert found.history is None
    assert workload.unix_start_time == NOW
    assert workload.submit_time.tolist() == [0, 10, 50]
    assert workload.actual_runtime.tolist() == [1000, 60, 500]
    assert workload.processors.tolist() == [4, 4, 8]
    # The first two overlap, and the last begins as the second ends.
    assert workload.machine_processors == 12
    assert workload.users is not None
    assert workload.users.by_job() == ["alice", None, "alice"]
    assert [ENDINGS[code].value for code in workload.endings.tolist()] == [  # type: ignore[union-attr]
        "completed",
        "completed",
        "failed",
    ]


def test_what_had_ended_before_is_the_history(tmp_path: Path) -> None:
    records = [
        ended(1, NOW, NOW + 100, 1000),
        # Runs into the weeks that are simulated: not known when they begin.
        ended(2, NOW + 2 * DAY_S, NOW + 2 * DAY_S, 3 * DAY_S, requested_time=3 * DAY_S),
        ended(3, NOW + 4 * DAY_S, NOW + 4 * DAY_S + 60, 1000),
        ended(4, NOW + 10 * DAY_S, NOW + 10 * DAY_S, 1000),
    ]
    found = stored_workload(stored(tmp_path / "store", records), days=7, processors=64)
    assert found.history is not None
    assert found.history.job_id.tolist() == [1]
    assert found.history.logged_wait is not None
    assert found.history.logged_wait.tolist() == [100]
    assert found.workload.job_id.tolist() == [3, 4]
    assert found.workload.machine_processors == 64


def test_what_can_not_be_replayed_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't read the daemon's store"):
        stored_workload(tmp_path / "absent", 7)
    assert not (tmp_path / "absent").exists()
    with pytest.raises(InputError, match="no finished jobs yet"):
        stored_workload(stored(tmp_path / "empty", []), 7)
    one = stored(tmp_path / "one", [ended(1, NOW, NOW, 60)])
    with pytest.raises(InputError, match="--processors 3: a job of the store had 4"):
        stored_workload(one, 7, processors=3)
    long = ended(1, NOW, NOW, 9 * DAY_S, requested_time=9 * DAY_S)
    with pytest.raises(InputError, match="no job was submitted in its last 7 days"):
        stored_workload(stored(tmp_path / "long", [long]), 7)


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        ("slurm-soft-limit", (Slurm, "111", Correction.SLURM)),
        ("rewrite-limit", (Slurm, "110", Correction.REQUESTED)),
        ("pbs-soft-walltime", (Pbs, "111", Correction.PBS)),
    ],
)
def test_the_scheduler_is_the_one_of_the_settings(
    mechanism: Any, expected: tuple[type, str, Correction]
) -> None:
    settings = Settings(hook=HookSettings(mechanism=mechanism))
    policy = replay_policy(settings, made_workload(50))
    scheduler, roles, correction = expected
    assert isinstance(policy.backfill, scheduler)
    assert (policy.roles, policy.correction) == (Roles.parse(roles), correction)
    if isinstance(policy.backfill, Slurm):
        soft = policy.backfill.site.parameters.time_min_as_soft_limit
        assert soft == (mechanism == "slurm-soft-limit")


@pytest.fixture
def site(tmp_path: Path) -> Settings:
    """A store of seventy days of jobs, at the times of a plain EASY."""
    workload = made_workload(900, days=70)
    clock = workload.epoch_of_zero
    settings = Settings(store=StoreSettings(path=str(tmp_path / "store")))
    policy = replay_policy(settings, workload)
    started = simulate(on_machine_of(policy, workload), policy).start_time
    users = workload.users
    assert users is not None
    records = [
        ended(
            job,
            clock + int(workload.submit_time[job]),
            clock + int(started[job]),
            int(workload.actual_runtime[job]),
            user=name,
            processors=int(workload.processors[job]),
            requested_time=int(workload.requested_time[job]),
        )
        for job, name in enumerate(users.by_job())
    ]
    stored(tmp_path / "store", sorted(records, key=lambda record: record.job.end_time))
    (tmp_path / "toml").write_text(to_toml(settings))
    return settings


def test_requested_times_are_replayed_as_they_ran(site: Settings) -> None:
    found = stored_workload(Path(site.store.path), 500, processors=32)
    (requested,) = replay_estimators(found, [], site)
    workload = found.workload
    assert workload.logged_wait is not None
    scored = workload.submit_time >= 7 * DAY_S
    waited = workload.logged_wait.data[scored]
    assert requested.figures["wait_mean_s"] == pytest.approx(waited.mean())
    assert requested.figures["wait_max_s"] == waited.max()
    assert set(requested.gains.values()) == {0.0}
    assert requested.outlived == 0


def test_estimators_are_compared_on_the_same_jobs(site: Settings) -> None:
    found = stored_workload(Path(site.store.path), 56, processors=32)
    done: list[int] = []
    replayed = replay_estimators(found, ["last-two", "combined", "last-two"], site, done.append)
    assert sorted(one.name for one in replayed) == ["combined", "last-two", "requested"]
    slowdowns = [one.figures["bounded_slowdown_mean"] for one in replayed]
    assert slowdowns == sorted(slowdowns)
    by_name = {one.name: one for one in replayed}
    best, requested = by_name["last-two"], by_name["requested"]
    for key, gain in best.gains.items():
        assert gain == pytest.approx(1 - best.figures[key] / requested.figures[key])
    interval = best.intervals["wait_mean_s"]
    assert interval is not None
    assert interval.low <= best.gains["wait_mean_s"] <= interval.high
    assert 0 < best.outlived < 1
    assert max(done) <= 3 * len(found.workload)


def test_predictions_are_rounded_and_bounded_as_in_the_hook(site: Settings) -> None:
    from foretime_sidecar.replays.estimator_replay import _in_the_hook

    class Says(LastTwo):
        def predict_one(self, job: JobRequest, now: int) -> int:
            return 601

    settings = AccuracySection(minimum_scheduled_time_s=300, minimum_adjustment=0.25)
    job = JobRequest("1", "alice", None, 1, 2400, 0)
    hooked = _in_the_hook(Says(), settings)
    assert hooked.predict_one(job, 0) == 660
    assert hooked.predict_one(replace(job, requested_time=630), 0) == 630
    assert hooked.predict_one(replace(job, requested_time=4800), 0) == 1200


def test_one_that_fails_is_shown_and_the_others_compared(
    site: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(LastTwo):
        def learn_one(self, job: FinishedJob) -> None:
            raise ZeroDivisionError("broken")

    entries = tuple(
        replace(entry, build=lambda _: Broken()) if entry.name == "last-two" else entry
        for entry in ESTIMATORS
    )
    monkeypatch.setattr("foretime_estimators.estimators.registry.ESTIMATORS", entries)
    found = stored_workload(Path(site.store.path), 21, processors=32)
    replayed = replay_estimators(found, ["last-two", "user"], site)
    assert replayed[-1].name == "last-two"
    assert replayed[-1].failure == "ZeroDivisionError: broken"
    assert {one.name for one in replayed[:-1]} == {"requested", "user"}


def test_the_command_compares_estimators_and_leaves_the_store_as_it_is(
    site: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    nice: list[int] = []
    monkeypatch.setattr("os.nice", nice.append)
    path = Path(site.store.path)
    before = path.read_bytes()
    options = ["--replay", "--settings", str(path.parent / "toml"), "--processors", "32"]
    result = CliRunner().invoke(app, [*options, "--only", "combined, last-two"])
    assert result.exception is None
    lines = result.output.splitlines()
    assert "of 8 weeks on 32 processors, under Slurm's defaults" in lines[0]
    rows = [line.split() for line in lines[2:]]
    assert ["*", "combined"] in [row[:2] for row in rows]
    assert {row[0] for row in rows} == {"*", "last-two", "requested"}
    assert nice == [10]
    shown = CliRunner().invoke(app, [*options, "--only", "user", "--json", "--weeks", "3"])
    answer = json.loads(shown.output)
    assert {one["name"] for one in answer["estimators"]} == {"requested", "user"}
    assert (answer["machine_processors"], answer["in_use"]) == (32, "combined")
    assert answer["history_jobs"] > 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "options", [("--replay", "--classes"), ("--only", "user"), ("--processors", "7")]
)
def test_options_that_do_not_go_together_are_refused(options: tuple[str, ...]) -> None:
    assert isinstance(CliRunner().invoke(app, list(options)).exception, InputError)


def test_the_busiest_moment_is_when_most_ran(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    records = [
        ended(number, NOW, NOW + int(begin), int(ran), processors=int(size))
        for number, (begin, ran, size) in enumerate(
            zip(
                rng.integers(0, 500, 60),
                rng.integers(1, 100, 60),
                rng.integers(1, 9, 60),
                strict=True,
            )
        )
    ]
    busiest = max(
        sum(
            one.job.request.processors
            for one in records
            if one.job.start_time is not None and one.job.start_time <= NOW + at < one.job.end_time
        )
        for at in range(700)
    )
    found = stored_workload(stored(tmp_path / "store", records), 7)
    assert found.workload.machine_processors == busiest
