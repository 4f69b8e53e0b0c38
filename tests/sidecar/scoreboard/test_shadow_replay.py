"""A log replayed on a mock Slurm: the daemon's scoreboard says what a study of the log says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.estimators.prediction_scores import SCORES
from foretime_estimators.estimators.registry import parse_estimator
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.scoreboard.estimator_board import EstimatorBoard
from foretime_sidecar.scoreboard.scoreboard import ShadowScoreboard
from foretime_sidecar.settings.estimator_settings import EstimatorsSettings
from foretime_sidecar.settings.settings import (
    SchedulerSettings,
    Settings,
    StoreSettings,
    TableSettings,
)
from foretime_sidecar.store.store import Store
from foretime_sim.engine.estimated_run import simulate_with_estimator
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy, Roles
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

from tests.support.workloads.real_logs import KTH, read_workload

LOOK_EVERY_S = 4 * 3600
DAY_S = 86_400
WEEK_S = 7 * DAY_S
# Days and weeks begin together with those of the log's own clock.
CLOCK = 1_653 * WEEK_S
SLOWLY = EstimatorsSettings(half_life_days=3650)


def settings_in(folder: Path) -> Settings:
    return Settings(
        scheduler=SchedulerSettings(history_days=1),
        store=StoreSettings(path=str(folder / "store")),
        estimators=SLOWLY,
        table=TableSettings(path=str(folder / "table"), publish_interval_s=7 * 86_400),
    )


def log_slice(path: Path, jobs: int) -> Workload:
    """Give a month of the log as Slurm would have it: limits in whole minutes, names of users."""
    log = read_workload(path).take(np.arange(2_000, 2_000 + jobs))
    requested = -(-log.requested_time // 60) * 60
    everyone = np.zeros(jobs, dtype=np.int32)
    return replace(
        log,
        job_id=np.arange(1, jobs + 1),
        requested_time=requested,
        projects=Labels(everyone, ("physics",)),
        queues=Labels(everyone, ("batch",)),
        executables=None,
        endings=None,
        submit_time=log.submit_time - log.submit_time[0],
    )


class Site:
    """A mock Slurm, and the sidecar that looks at it; begun anew after each restart."""

    def __init__(self, folder: Path, workload: Workload) -> None:
        self.workload = workload
        self.settings = settings_in(folder)
        self.mock = MockSlurm(SlurmSetup(workload.machine_processors), Policy(), None, CLOCK)
        self.submitted = 0
        self.start()

    def start(self) -> None:
        """Start the sidecar."""
        client = SlurmCommands(self.mock.run, overlap_s=0)
        store = Store(self.settings.store.path)
        self.sidecar = Sidecar(self.settings, client, store, shadow=True)

    @property
    def scoreboard(self) -> ShadowScoreboard:
        assert self.sidecar.scoreboard is not None
        return self.sidecar.scoreboard

    def run(self, until: int) -> EstimatorBoard:
        """Submit what comes, and look now and then; give the scoreboard at the end."""
        log, users = self.workload, self.workload.users
        assert users is not None
        names = users.by_job()
        while self.mock.now < until:
            now = self.mock.now + LOOK_EVERY_S
            while self.submitted < len(log):
                job = self.submitted
                at = CLOCK + int(log.submit_time[job])
                if at >= now:
                    break
                if at > self.mock.now:
                    self.mock.advance(at)
                self.mock.submit(
                    Submission(
                        names[job],
                        "physics",
                        "batch",
                        int(log.processors[job]),
                        int(log.requested_time[job]),
                        int(log.actual_runtime[job]),
                    )
                )
                self.submitted += 1
            self.mock.advance(now)
            self.sidecar.see(now)
            self.sidecar.poll(now)
            while self.scoreboard.refresh():
                pass
        return self.scoreboard.board_as_of(until)


def offline(workload: Workload, name: str) -> tuple[float, float]:
    """Accuracy and share under-predicted of a study of the log."""
    nothing_planned = replace(Policy(), roles=Roles.parse("000"))
    run = simulate_with_estimator(workload, nothing_planned, parse_estimator(name))
    ran = np.minimum(run.end_time - run.start_time, workload.requested_time)
    told = run.scheduled_time
    ratio = np.minimum(told, ran) / np.maximum(told, ran)
    return float(ratio.mean()), float((told < ran).mean())


@pytest.mark.traces
def test_the_scores_and_their_order_are_those_of_a_study_of_the_log(
    tmp_path: Path, trace: Callable[[str], Path]
) -> None:
    workload = log_slice(trace(f"{KTH}.swf.gz"), 500)
    site = Site(tmp_path, workload)
    site.run(CLOCK + 6 * DAY_S)
    # A restart changes nothing.
    assert site.submitted not in (0, len(workload))
    site.scoreboard.save()
    site.sidecar.store.close()
    site.start()
    board = site.run(CLOCK + int(workload.submit_time[-1]) + 4 * DAY_S)
    # All jobs alike, as a study counts them.
    plain = site.scoreboard.course.scores.sums(site.mock.now).plain[0]
    site.sidecar.store.close()
    names = [estimator.name for estimator in site.scoreboard.course.estimators]
    expected = {name: offline(workload, name) for name in names}
    for place, name in enumerate(names):
        accuracy = SCORES["accuracy"](plain)[place]
        under = SCORES["under_predicted"](plain)[place]
        assert (accuracy, under) == pytest.approx(expected[name]), name
    assert {row.jobs for row in board.rows} == {len(workload)}
    eligible = {row.name for row in board.rows if row.eligible}
    found = [row.name for row in board.rows if row.name in eligible]
    assert found == sorted(found, key=lambda name: -expected[name][0])
    assert board.best == found[0]
    # A place at the top is worth something: the requested times predict worse.
    assert expected[found[0]][0] > expected["requested"][0] + 0.1
    assert board.complete
    assert (board.late, board.too_many, board.followed) == (0, 0, 0)
