"""The study of forecast waits: who is asked about, what is kept, what is scored and judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.application import app
from foretime_sim.logs.swf import write_swf
from foretime_sim.models import lublin2003
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.block_sums import Figure
from foretime_sim.waits.forecaster import LEVELS, MEDIAN
from foretime_sim.waits.scores.moments import sampled_evenly
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.workload import Workload
from foretime_studies.waits import runs as waits_runs
from foretime_studies.waits.command import report
from foretime_studies.waits.runs import (
    FORWARD,
    LOGGED,
    METHODS,
    OURS,
    PLAN,
    SIMULATED,
    WaitsSettings,
    asked_about,
    kept_run,
    kept_runs,
    run_log,
)
from foretime_studies.waits.scores import ScoredRun, targets
from foretime_studies.waits.study import WaitsLog, study
from typer.testing import CliRunner

runner = CliRunner()
FEW = WaitsSettings(submissions=60, first_weeks=0, samples=8)


@pytest.fixture(scope="module")
def fortnight(kth: Workload) -> Workload:
    """Two weeks of KTH in which most jobs waited."""
    return replace(kth.take(np.arange(7_600, 8_400)), name="fortnight")


@pytest.fixture(scope="module")
def scored(fortnight: Workload) -> ScoredRun:
    return ScoredRun(run_log(fortnight, SIMULATED, FEW))


def test_jobs_are_drawn_evenly(fortnight: Workload) -> None:
    chosen = sampled_evenly(fortnight, 80, seed=3)
    assert chosen.sum() == 80
    assert set(chosen.reshape(80, 10).sum(axis=1)) == {1}  # one of each ten
    assert sampled_evenly(fortnight, 80, seed=3).tolist() == chosen.tolist()
    assert sampled_evenly(fortnight, 10_000, seed=3).all()


def test_more_jobs_of_the_first_two_weeks_are_asked_about(kth: Workload) -> None:
    workload = kth.take(np.arange(3_000))  # some five weeks
    early = workload.submit_time < workload.submit_time[0] + 14 * 86_400
    few, more = (
        asked_about(workload, replace(FEW, submissions=30, first_weeks=many)) for many in (0, 100)
    )
    assert few[0].tolist() == few[1].tolist() == more[0].tolist()
    assert more[1][more[0]].all()
    assert 100 <= more[1][early].sum() <= 100 + more[0][early].sum()
    assert more[1][~early].tolist() == more[0][~early].tolist()
    every = asked_about(workload, replace(FEW, first_weeks=10_000))[1]
    assert every[early].all()


def test_the_whole_log_is_scored_on_jobs_drawn_evenly(fortnight: Workload) -> None:
    found = ScoredRun(run_log(fortnight, SIMULATED, replace(FEW, first_weeks=90)))
    assert found.run.evenly is not None
    assert found.first_answers <= 60 < int(found.first_weeks.sum())
    assert found.run.evenly[found.after_warm_up].all()
    held = {target.name: target for target in targets(found)}["95% bound holds, first two weeks"]
    rows = found.outcomes(OURS, found.first_weeks & (found.run.records.of(OURS).starts_now < 0.5))
    assert held.value == pytest.approx(
        np.mean(rows.wait_s <= rows.forecasts.wait_s[:, LEVELS.index(0.95)])
    )
    known = found.outcomes_known(found.first_weeks)
    assert 30 < known < 150 / 2 + 1  # half of those asked about, less those that wait


def test_who_passes_a_bound_with_reason(scored: ScoredRun) -> None:
    """By hand, job by job."""
    records = scored.run.records
    bound_s = records.of(OURS).wait_s[:, LEVELS.index(0.95)]
    rows = np.flatnonzero(scored.run.submit_time >= scored.run.scored_from)
    late, jobs = [], np.unique(records.job[rows])
    for job in jobs:
        of_job = rows[records.job[rows] == job]
        if len(of_job) > 1:
            late.append(records.waited_s[of_job[0]] > bound_s[of_job[0]])
    assert scored.started_after_bound[0] == np.mean(late)
    assert scored.started_after_bound[1] == pytest.approx(0.05 * len(jobs) / len(late))


def test_every_method_is_asked_the_same(scored: ScoredRun) -> None:
    assert scored.methods == METHODS
    assert scored.later_answers > 60
    # What is calibrated is the forecast beside it.
    records = scored.run.records
    for method in (FORWARD, OURS):
        assert records.of(method).answered.all()
    plain, ours = records.of(FORWARD).wait_s, records.of(OURS).wait_s
    assert np.corrcoef(np.log(plain[:, MEDIAN] + 60), np.log(ours[:, MEDIAN] + 60))[0, 1] > 0.9
    # With perfect runtimes a plan is wrong only where later arrivals overtake.
    perfect, plan = (scored.at_submission[name]["within_10min"].value for name in ("perfect", PLAN))
    assert perfect > plan + 0.1


def test_only_what_follows_the_warm_up_is_scored(scored: ScoredRun, fortnight: Workload) -> None:
    records = scored.run.records
    first = records.after_s == 0
    warm = fortnight.submit_time[records.job] < fortnight.submit_time[80]
    assert first.sum() == 60
    assert scored.first_answers == int((first & ~warm).sum()) < 60


def test_reliability_by_hand(scored: ScoredRun) -> None:
    records = scored.run.records
    rows = (records.after_s == 0) & (scored.run.submit_time >= scored.run.scored_from)
    told = records.of(OURS)
    waiting = rows & (told.starts_now < 0.5)
    share = np.mean(records.waited_s[waiting] <= told.wait_s[waiting, MEDIAN])
    assert scored.reliability(OURS)[MEDIAN] == pytest.approx(share)


def test_targets_are_judged_as_they_read(scored: ScoredRun) -> None:
    found = {target.name: target for target in targets(scored)}
    holds = found["95% bound holds"]
    assert holds.value == scored.at_submission[OURS]["waiting_coverage_95"].value
    assert holds.met == (0.93 <= holds.value <= 0.97)
    closed = found["gap closed, within 10 min"]
    ours, plan, perfect = (
        scored.at_submission[name]["within_10min"].value for name in (OURS, PLAN, "perfect")
    )
    assert closed.value == pytest.approx((ours - plan) / (perfect - plan))
    assert found["answered"].met
    assert found["95% bound / QBETS'"].value == scored.tightness[OURS].ratio.value
    assert scored.tightness["qbets"].ratio.value == pytest.approx(1)


def test_logged_waits_are_the_logs(kth: Workload) -> None:
    log = kth.take(np.arange(7_600, 7_900))
    run = run_log(log, LOGGED, FEW)
    assert run.title.endswith(", logged")
    first = run.records.after_s == 0
    assert log.logged_wait is not None
    waits = log.logged_wait[run.records.job[first]]
    assert run.records.waited_s[first].tolist() == waits.tolist()


def test_runs_are_kept_and_taken_again(fortnight: Workload, tmp_path: Path) -> None:
    logs = [WaitsLog(fortnight, SIMULATED)]
    done: list[int] = []
    (first,) = study(logs, FEW, tmp_path, progress=done.append).runs
    assert done[-1] == len(fortnight)
    done.clear()
    (again,) = study(logs, FEW, tmp_path, progress=done.append).runs
    assert done == []
    for method in METHODS:
        one, other = (found.at_submission[method] for found in (first, again))
        for score in one:
            assert one[score].value == pytest.approx(other[score].value, nan_ok=True)
    key = FEW.key(fortnight, SIMULATED)
    assert kept_run(tmp_path, key) is not None
    for changed in (replace(FEW, samples=9), replace(FEW, policy=Policy(Order.WFP))):
        assert kept_run(tmp_path, changed.key(fortnight, SIMULATED)) is None
        assert kept_runs(tmp_path, changed) == ([], [])
    next(tmp_path.glob("*.npz")).write_bytes(b"no run")
    with pytest.raises(InputError, match="is no kept run: remove it"):
        kept_runs(tmp_path, FEW)


def test_runs_of_other_code_are_not_taken_for_new(
    fortnight: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [WaitsLog(fortnight.head(60), SIMULATED)]
    done: list[int] = []
    study(logs, FEW, tmp_path)
    monkeypatch.setattr(waits_runs, "code_digest", lambda without=None: "changed")
    found = study([], FEW, tmp_path)
    assert (found.runs, found.left_out) == ([], ["fortnight"])
    assert study(logs, FEW, tmp_path, progress=done.append).left_out == []
    assert done[-1] == 60


def test_what_is_made_of_answers_is_made_anew_of_those_kept(
    fortnight: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Number for number as if everybody had been asked again; nobody is."""
    log = WaitsLog(fortnight.head(80), SIMULATED)
    digests = {frozenset(): "other", waits_runs.MADE_OF_ANSWERS: "same"}
    monkeypatch.setattr(waits_runs, "code_digest", lambda without=frozenset(): digests[without])
    (asked,) = study([log], FEW, tmp_path).runs

    def refuse(*given: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(waits_runs, "answerers", refuse)
    digests[frozenset()] = "calibrates otherwise"
    (again,) = study([log], FEW, tmp_path).runs
    for column, first in zip(_columns(again), _columns(asked), strict=True):
        np.testing.assert_array_equal(column, first)
    digests[waits_runs.MADE_OF_ANSWERS] = "answers otherwise"
    with pytest.raises(AssertionError, match="asked again"):
        study([log], FEW, tmp_path)


def _columns(scored: ScoredRun) -> list[np.ndarray]:
    records, runtimes = scored.run.records, scored.run.runtimes
    assert runtimes is not None
    assert scored.run.evenly is not None
    waits = [records.job, records.made_at, records.waited_s, records.wait_s, records.starts_now]
    return [
        *waits,
        scored.run.evenly,
        runtimes.runtime_s,
        runtimes.limit_s,
        runtimes.calibrated_s,
        runtimes.plain_s,
    ]


def test_the_report_is_whole(scored: ScoredRun, tmp_path: Path) -> None:
    written = report([scored], FEW, ["A note."])
    written.write(tmp_path)
    text = (tmp_path / "report.md").read_text()
    for method in METHODS:
        assert method in text
    assert "A note." in text
    keys = [table.key for table in written.tables]
    assert keys[:6] == ["logs", "targets", "first_weeks", "days", "ends", "runtimes"]
    assert keys[6] == "fortnight-simulated-submission"
    assert (tmp_path / "fortnight-simulated-submission.csv").exists()
    assert set(written.figures) == {"reliability", "gaps"}
    assert (tmp_path / "reliability.svg").stat().st_size > 1_000


def test_a_gap_that_is_none_is_not_closed(fortnight: Workload, tmp_path: Path) -> None:
    """On a short log the plan on requests may score as perfect runtimes do, and ours otherwise."""
    alike = ScoredRun(run_log(fortnight.head(60), SIMULATED, FEW))
    plan, ours = alike.at_submission[PLAN], alike.at_submission[OURS]
    plan["within_10min"] = alike.at_submission["perfect"]["within_10min"]
    ours["within_10min"] = Figure(plan["within_10min"].value + 0.1, None)
    found = {target.name: target for target in targets(alike)}["gap closed, within 10 min"]
    assert np.isnan(found.value)
    assert not found.met


def test_a_log_on_which_nobody_waited_is_reported(fortnight: Workload, tmp_path: Path) -> None:
    jobs = fortnight.head(60)
    at_once = replace(jobs, logged_wait=np.ma.zeros(len(jobs), dtype=np.int64))
    report([ScoredRun(run_log(at_once, LOGGED, FEW))], FEW, []).write(tmp_path)
    tables = json.loads((tmp_path / "results.json").read_text())["tables"]
    assert tables[0]["rows"][0][5:] == [1.0, 0.0]


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(InputError, match="samples is 0"):
        WaitsSettings(samples=0)
    with pytest.raises(InputError, match="first_weeks is -1: give 0 or more"):
        WaitsSettings(first_weeks=-1)


def test_the_command(tmp_path: Path) -> None:
    """Two logs beside each other, each in a process; a log without waits can't be taken as is."""
    logs = []
    for seed in (1, 2):
        path = tmp_path / f"made{seed}.swf.gz"
        write_swf(log_of_workload(lublin2003.generate(120, seed=seed)), path)
        logs.append(str(path))
    command = ["study", "waits", *logs, "--submissions", "20", "--samples", "4"]
    command += ["-o", str(tmp_path / "out"), "--json"]
    ran = runner.invoke(app, command)
    assert ran.exit_code == 0, ran.output
    document = json.loads(ran.stdout)
    assert document == json.loads((tmp_path / "out" / "results.json").read_text())
    assert [row[0] for row in document["tables"][0]["rows"]] == ["made1", "made2"]
    assert document["command"].startswith("foretime study waits made1.swf.gz made2.swf.gz --subm")

    refused = runner.invoke(app, [*command, "--processors", "9"])
    assert "--processors is for a single log" in str(refused.exception)


def test_a_log_without_waits_can_not_be_taken_as_logged(kth: Workload) -> None:
    with pytest.raises(InputError, match="the log tells no job's wait"):
        run_log(replace(kth.head(50), logged_wait=None), LOGGED, FEW)
