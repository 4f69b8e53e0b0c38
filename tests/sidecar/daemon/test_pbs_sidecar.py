"""The sidecar on PBS: learn, publish and forecast, over commands and on the mock."""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending, JobRequest
from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.clients.pbs.commands import PbsCommands, PbsProcesses
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.queue.forecast_question import Look, NewJob
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import ReplaySchedule
from foretime_sidecar.settings.settings import AccuracySection, ForecastSettings, Settings
from foretime_sidecar.settings.settings_file import parse_settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Mechanism as TableMechanism
from foretime_sidecar.table.table import Mode, read_table
from foretime_sidecar.web.server import Daemon
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.pbs.pbs_job import PbsSetup, PbsSubmission
from foretime_sim.policies.families import Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.plans.scheduled_plan import ScheduledPlan
from tests.support.slurm.mock_site import running

NOW = 1_795_176_000  # 2026-11-20 12:00 UTC, when the replies were given
START = 1_800_000_000
FIRST_END = NOW - 43_200 - 86_400 + 10_800  # of job 1

REPLIES = {"-t": "qstat.json", "-B": "qstat-B.json", "-x": "qstat-x.json"}


def pbs_commands(folder: Path, assets: Path) -> Path:
    """Executables that answer what PBS's would."""
    folder.mkdir()
    scripts = {
        "qstat": "\n".join(
            f'test "$1" = "{option}" && cat "{assets}/{name}" && exit 0'
            for option, name in REPLIES.items()
        )
        + "\nexit 1",
        "pbsnodes": f'cat "{assets}/pbsnodes.json"',
        "pbs_rstat": f'cat "{assets}/pbs_rstat.txt"',
        "qalter": "echo changed >> $0.log",
    }
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def pbs_settings(tmp_path: Path, assets: Path, **scheduler: Any) -> Settings:
    shutil.copytree(assets / "accounting", tmp_path / "accounting")
    # Whoever reads them looks back a week from today, whatever the daemon's clock says.
    (tmp_path / "server_logs").mkdir()
    for ago, log in enumerate(sorted((assets / "server_logs").iterdir(), reverse=True)):
        day = time.strftime("%Y%m%d", time.localtime(time.time() - 86_400 * ago))
        shutil.copy(log, tmp_path / "server_logs" / day)
    values = {
        "kind": "pbs",
        "commands_dir": str(pbs_commands(tmp_path / "bin", assets)),
        "pbs_accounting_dir": str(tmp_path / "accounting"),
        "pbs_server_logs_dir": str(tmp_path / "server_logs"),
        "attempts": 1,
        **scheduler,
    }
    words = "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
    return parse_settings(
        f"""
[scheduler]
{words}
[store]
path = "{tmp_path}/store"
[table]
path = "{tmp_path}/table"
[accuracy]
threshold = 1
weigh_by_processor_time = false
imagined_job = false
[hook]
mode = "enforce"
mechanism = "pbs-soft-walltime"
leave_queues = ["debug"]
[api]
listen = "unix:{tmp_path}/s"
"""
    )


def test_the_hook_is_told_since_when_no_job_is_planned(assets: Path, tmp_path: Path) -> None:
    chosen = pbs_settings(tmp_path, assets)
    observing = chosen.model_copy(
        update={"hook": chosen.hook.model_copy(update={"mode": "observe"})}
    )
    commands = PbsCommands(PbsProcesses(str(tmp_path / "bin"), attempts=1), clock=lambda: NOW)
    store, found = Store(":memory:"), []
    for now, each in enumerate((observing, chosen, observing), NOW):
        Sidecar(each, commands, store).poll(now)
        found.append(read_table(tmp_path / "table").unplanned_since)
    assert found == [NOW, None, NOW + 1 + chosen.table.valid_for_s]
    store.close()


@pytest.fixture
def assets(repository: Path) -> Path:
    return repository / "tests/assets/pbs/openpbs"


def test_the_daemon_learns_publishes_and_forecasts(assets: Path, tmp_path: Path) -> None:
    daemon = Daemon(pbs_settings(tmp_path, assets), clock=lambda: NOW)
    try:
        daemon.poll_once()
        assert daemon.health.last_error == ""
        sidecar = daemon.sidecar
        assert sidecar.progress.finished_jobs == 9
        table = read_table(tmp_path / "table")
        assert table.settings.mode is Mode.ENFORCE
        assert table.settings.mechanism is TableMechanism.TIME_MIN
        assert table.left_alone == {("queue", "debug")}
        assert [(r.start_time, r.end_time) for r in table.reservations] == [
            (NOW + 86_400, NOW + 93_600)
        ]
        assert ("user", "alice") in {(row.scope, row.name) for row in table.rows}
        stored = {job.request.job_id: job for job in sidecar.store.finished_jobs()}
        assert stored["2.pbs01"].actual_runtime == 1800
        assert stored["4[0].pbs01"].request.array_id == "4[].pbs01"
        decisions = dict(sidecar.store.rows("SELECT job_id, decision FROM decisions"))
        assert "decision=readjusted" in decisions["1.pbs01"]
        assert sidecar.snapshot is not None
        assert sidecar.snapshot.correction is Correction.PBS
        daemon.forecasts.refresh()
        forecasting = sidecar.forecasting
        assert forecasting is not None
        assert forecasting.last_failure == ""
        board = forecasting.board
        assert board is not None
        new = JobRequest("new", "alice", "physics", 8, 3600, NOW)
        assert forecasting.what_if(board, NewJob(new)).waits is not None
        assert all(row.waits is not None for row in board.rows)
        assert board.moment.taken.left_out_by_reason() == {
            "suspended": 1, "held": 1, "dependent": 1, "in a reservation": 1,
        }  # fmt: skip
        # Later: nothing twice, and what ended since.
        more = (assets / "accounting/20261119").read_text().replace(";1.pbs01;", ";99.pbs01;")
        more = more.replace(f"end={FIRST_END}", f"end={NOW - 60}")
        with (tmp_path / "accounting/20261120").open("a") as file:
            file.write(more)
        daemon.poll_once()
        assert sidecar.progress.finished_jobs == 10
        assert not (tmp_path / "bin/qalter.log").exists(), "it changes no job"
    finally:
        daemon.end()
        daemon.close()


def test_a_slow_pbs_server_is_asked_less_and_the_log_says_why(
    assets: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """PBS tells no load, which is no reason."""
    daemon = Daemon(pbs_settings(tmp_path, assets, poll_interval_s=1), clock=lambda: NOW)
    pbsnodes = tmp_path / "bin/pbsnodes"
    pbsnodes.write_text(pbsnodes.read_text().replace("cat", "sleep 0.3; cat"))
    try:
        daemon._set_pause()
        daemon.poll_once()
        daemon._set_pause()
        assert daemon.sidecar.pause.seconds > 1
    finally:
        daemon.close()
    (told,) = (one.getMessage() for one in caplog.records if "apart" in one.getMessage())
    assert re.fullmatch(
        r"looks at the scheduler are \d+ s apart now, not 1: the scheduler took \d\.\d s to answer "
        r"the last requests, which may take 5% of its time",
        told,
    )


def test_without_accounting_the_servers_history_is_asked(assets: Path, tmp_path: Path) -> None:
    options = pbs_settings(tmp_path, assets, pbs_accounting_dir="", pbs_server_logs_dir="")
    daemon = Daemon(options, clock=lambda: NOW)
    try:
        daemon.poll_once()
        assert daemon.health.last_error == ""
        stored = {job.request.job_id for job in daemon.sidecar.store.finished_jobs()}
        assert stored == {"90.pbs01", "91.pbs01", "92.pbs01", "107[99].pbs01"}
    finally:
        daemon.end()
        daemon.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[scheduler]\nkind = "pbs"',
            "hook.mechanism is left out, which is 'slurm-soft-limit': with .* it must be",
        ),
        (
            '[hook]\nmechanism = "pbs-soft-walltime"',
            'settings:2: hook.mechanism = .*set scheduler.kind = "pbs"',
        ),
        ('[scheduler]\nkind = "lsf"', "scheduler.kind = 'lsf'"),
    ],
)
def test_settings_that_do_not_go_together(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_settings(text)


def test_a_job_past_its_soft_walltime_is_forecast_as_pbs_plans_it(tmp_path: Path) -> None:
    pbs = MockPbs(PbsSetup(8, {}, tmp_path), Policy(correction=Correction.PBS), None, START)
    name = pbs.submit(PbsSubmission("ann", None, None, 8, 3600, 3500))
    pbs.advance(START + 1)
    pbs.alter(name, {"soft_walltime": 600})
    pbs.advance(START + 1300)
    client = PbsCommands(pbs.run, tmp_path)
    new = JobRequest("new", "bob", None, 8, 60, START + 1300)
    look = Look(START + 1300, client.queue(), True, Correction.PBS)
    # PBS: to the third multiple of 600; Slurm: half of what is left to the limit.
    for correction, left_s in ((Correction.PBS, 500), (Correction.SLURM, (3600 - 1300) // 2)):
        forecasting = WaitForecasting(ForecastSettings(), ScheduledPlan(lambda _: 600))
        forecasting.looked(replace(look, correction=correction))
        forecasting.refresh()
        assert forecasting.board is not None
        waits = forecasting.what_if(forecasting.board, NewJob(new)).waits
        assert waits is not None
        assert waits.at(0.5) == left_s


@pytest.mark.parametrize(("order", "first"), [("priority", 1), ("sjf", 2)])
def test_a_users_jobs_are_forecast_over_http(order: str, first: int, tmp_path: Path) -> None:
    """As PBS's default has it, jobs stand as they were submitted; or as the settings say."""
    pbs = MockPbs(PbsSetup(8, {}, tmp_path / "accounting"), Policy(Order(order)), None, START)
    names = []
    for walltime in (3600, 3600, 600):
        names.append(pbs.submit(PbsSubmission("ann", None, None, 8, walltime, walltime)))
        pbs.advance(pbs.now + 30)
    options = Settings.model_validate(
        {
            "scheduler": {"kind": "pbs", "history_days": 1, "poll_interval_s": 3600},
            "hook": {"mechanism": "pbs-soft-walltime"},
            "forecast": {"order": order},
            "store": {"path": str(tmp_path / "store")},
            "table": {"path": str(tmp_path / "table")},
            "api": {"listen": f"unix:{tmp_path}/s"},
        }
    )
    client = PbsCommands(pbs.run, tmp_path / "accounting")
    daemon = Daemon(options, client, clock=lambda: pbs.now)
    daemon.poll_once()
    daemon.forecasts.refresh()
    with running(daemon):
        asked = SiteDaemon(daemon.address)
        long, short = (asked.ask(f"/v1/jobs/{name}/forecast") for name in names[1:])
        by_number = asked.ask(f"/v1/jobs/{names[1].split('.')[0]}/forecast")
        started = asked.ask(f"/v1/jobs/{names[0]}/forecast")
    assert by_number == long
    assert (started["state"], started["started_at"]) == ("running", START)
    both = [long, short]
    assert both[first - 1]["likely_wait_s"] < both[2 - first]["likely_wait_s"]
    assert [each["reason"]["text"] for each in (both[first - 1], both[2 - first])] == [
        "waits for 8 processors; no job ahead in the queue",
        "waits for 8 processors; 1 job ahead in the queue",
    ]
    assert (
        "which nodes a job may have, reservations and limits are not taken into account"
        in (long["assumptions"])
    )
    # And so it comes.
    pbs.finish()
    assert pbs.schedule().start_time.argsort().tolist() == [0, first, 3 - first]


_SUBMISSIONS = st.lists(
    st.tuples(
        st.integers(0, 40_000),  # pause before it
        st.integers(1, 16),
        st.integers(1, 1200),  # actual runtime
        st.sampled_from([60, 300, 600, 3600]),
        st.sampled_from([e for e in Ending if e is not Ending.NEVER_STARTED]),
        st.sampled_from([None, 1, 2]),  # array
    ),
    max_size=20,
)


@settings(max_examples=40)
@given(submissions=_SUBMISSIONS, poll_every=st.integers(1000, 50_000))
def test_polls_of_the_mock_lose_nothing(
    submissions: list[tuple[int, int, int, int, Ending, int | None]],
    poll_every: int,
    tmp_path_factory: Any,
) -> None:
    folder = tmp_path_factory.mktemp("mock")
    pbs = MockPbs(PbsSetup(16, {}, folder / "accounting"), Policy(), None, START)
    options = Settings.model_validate(
        {
            "scheduler": {"kind": "pbs", "overlap_s": 0},
            "hook": {"mechanism": "pbs-soft-walltime"},
            "table": {"path": str(folder / "table")},
        }
    )
    store = Store(":memory:")
    client = PbsCommands(pbs.run, folder / "accounting", overlap_s=0)
    sidecar = Sidecar(options, client, store)
    sidecar.poll(START)
    next_poll = START + poll_every
    names = []
    for pause, processors, runtime, requested, ending, array in submissions:
        at = pbs.now + pause
        while next_poll <= at:
            pbs.advance(next_poll)
            sidecar.poll(next_poll)
            next_poll += poll_every
        pbs.advance(at)
        names.append(
            pbs.submit(
                PbsSubmission("ann", None, None, processors, requested, runtime, ending, array)
            )
        )
    pbs.finish()
    sidecar.poll(pbs.now)
    stored = {job.request.job_id: job for job in store.finished_jobs()}
    assert store.finished_count() == len(submissions)
    store.close()
    assert sorted(stored) == sorted(names)
    if submissions:
        schedule = pbs.schedule()
        assert [stored[name].start_time for name in names] == schedule.start_time.tolist()
        assert [stored[name].end_time for name in names] == schedule.end_time.tolist()


# Replays -----------------------------------------------------------------------------------------


def made_workload(jobs: int = 300) -> Workload:
    rng = np.random.default_rng(5)
    requested = rng.choice([7200, 40_000], size=jobs)
    return Workload(
        name="made",
        machine_processors=16,
        unix_start_time=START,
        job_id=np.arange(1, jobs + 1),
        submit_time=np.sort(rng.integers(0, 6 * 86_400, size=jobs)),
        processors=rng.choice([1, 4, 16], size=jobs, p=[0.4, 0.4, 0.2]),
        actual_runtime=np.maximum((requested * rng.uniform(0.05, 0.4, size=jobs)), 1).astype(int),
        requested_time=requested.astype(np.int64),
        users=Labels(rng.integers(0, 4, size=jobs).astype(np.int32), ("a", "b", "c", "größe x")),
    )


def pbs_replay(**more: Any) -> Replay:
    mechanism = Mechanism.PBS_SOFT_WALLTIME
    policy = mechanism_policy(mechanism, Policy(backfill=Easy(guard=Guard(6 * 3600))))
    accuracy = AccuracySection(threshold=5)
    return Replay(policy=policy, mechanism=mechanism, accuracy=accuracy, **more)


def adjusted_by(replay: Replay, workload: Workload) -> ReplaySchedule:
    """Give the adjusted schedule, in which nobody is killed early."""
    adjusted = replay(workload, 0).adjusted
    assert isinstance(adjusted, ReplaySchedule)
    assert not adjusted.killed.any()
    return adjusted


def test_a_replay_keeps_the_hooks_decisions(tmp_path: Path) -> None:
    adjusted_by(pbs_replay(state_dir=tmp_path), made_workload())
    store = Store(tmp_path / "repeat-0" / "foretime.sqlite")
    rows = store.rows("SELECT job_id, decision FROM decisions")
    assert store.finished_count() == 300
    store.close()
    assert len(rows) == 300
    assert all(f"job={job_id} " in decision for job_id, decision in rows)
    assert {word for _, decision in rows for word in decision.split() if "decision=" in word} >= {
        "decision=left",
        "decision=planned",
    }


def test_a_hook_that_may_judge_anew_changes_what_jobs_run_with() -> None:
    workload = made_workload()
    never = adjusted_by(pbs_replay(readjust_after_s=10**9), workload)
    always = adjusted_by(pbs_replay(readjust_after_s=60), workload)
    assert (never.scheduled_time < workload.requested_time).any()
    assert (never.start_time != always.start_time).any()


def test_an_estimator_can_take_the_hooks_place() -> None:
    workload = made_workload()
    plain = pbs_replay(estimator="requested")(workload, 0)
    np.testing.assert_array_equal(plain.adjusted.start_time, plain.baseline.start_time)
    rival = pbs_replay(estimator="recent-maximum")
    shortened = adjusted_by(rival, workload).scheduled_time < workload.requested_time
    assert shortened.mean() > 0.5
    untaught = adjusted_by(replace(rival, learn=False), workload)
    np.testing.assert_array_equal(untaught.scheduled_time, workload.requested_time)
    past, rest = workload.split(2 * 86_400)
    taught = adjusted_by(replace(rival, learn=False, history=past), rest)
    assert (taught.scheduled_time < rest.requested_time).mean() > 0.5
    with pytest.raises(InputError, match="needs the actual runtimes"):
        pbs_replay(estimator="actual")(workload, 0)
    with pytest.raises(InputError, match="mechanism must be pbs-soft-walltime"):
        replace(pbs_replay(estimator="last-two"), mechanism=Mechanism.SLURM_SOFT_LIMIT)(workload, 0)


def test_reservations_of_the_mock_reach_the_table_and_no_job_enters_one(tmp_path: Path) -> None:
    workload = made_workload()
    begin = int(workload.submit_time[0])
    claims = tuple(AdvanceReservation(begin + day * 86_400, 20_000, 16) for day in (1, 3, 5))
    replay = pbs_replay(reservations=claims, check=True, state_dir=tmp_path)
    adjusted = adjusted_by(replay, workload)
    for claim in claims:
        inside = (adjusted.start_time < claim.end) & (adjusted.start_time >= claim.start)
        assert not inside.any()
    table = read_table(tmp_path / "repeat-0" / "foretime.table")
    assert table.rows, "it learned all the same"
    adjusted_by(pbs_replay(reservations=claims, check=True, estimator="last-two"), workload)
    pbs = MockPbs(PbsSetup(16, reservations=(AdvanceReservation(START, 60, 4),)), Policy())
    (seen,) = PbsCommands(pbs.run).reservations()
    assert (seen.start_time, seen.end_time, seen.processors) == (START, START + 60, 4)
