"""The study of Talby & Feitelson 1999 on small logs: its cases, runs, tables and claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.models.lublin2003 import generate
from foretime_sim.policies.families import Slack
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slack import SlackJobs, SlackSettings
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.job_log import log_of_workload
from foretime_studies.frame.tables import StudyTable
from foretime_studies.talby1999 import cases as named
from foretime_studies.talby1999 import paper
from foretime_studies.talby1999.cases import CONSERVATIVE, EASY, SLACK, AverageWait
from foretime_studies.talby1999.claims import CLAIMS
from foretime_studies.talby1999.command import report
from foretime_studies.talby1999.figures import figures
from foretime_studies.talby1999.months import MonthlyLog, by_months, read_months
from foretime_studies.talby1999.runs import Talby1999, cases_of, fifths, run_cases, study, tasks_of

KTH_BEGAN = 843_480_031
"""The 23rd of September 1996."""


def made(name: str, processors: int, widest: int, jobs: int = 150) -> MonthlyLog:
    """Give a log of some weeks, in which some jobs outlive their requests."""
    drawn = generate(jobs, processors=widest, load=0.9, seed=3)
    runtime = np.where(np.arange(jobs) % 9 == 0, drawn.requested_time + 500, drawn.actual_runtime)
    # Spread over at least two months: the second half comes later.
    submit = drawn.submit_time + 20 * 86_400 * (np.arange(jobs) >= jobs // 2)
    workload = replace(
        drawn,
        name=name,
        machine_processors=processors,
        unix_start_time=KTH_BEGAN,
        submit_time=submit,
        actual_runtime=runtime.astype(np.int64),
    )
    report = workload_of_log(log_of_workload(workload), filters=Filters(overruns="keep"))[1]
    return by_months(workload, "Europe/Stockholm", report)


@pytest.fixture(scope="module")
def papers() -> MonthlyLog:
    log = made("KTH-SP2-1996-small", paper.PROCESSORS, paper.REAL_PROCESSORS)
    assert log.papers
    assert len(log.months) == 2
    return log


@pytest.fixture(scope="module")
def found(papers: MonthlyLog, tmp_path_factory: pytest.TempPathFactory) -> Talby1999:
    folder = tmp_path_factory.mktemp("runs")
    return study([papers, made("other", 64, 64)], folder, repeats=3, seed=1, workers=2)


@pytest.fixture(scope="module")
def tables(found: Talby1999) -> dict[str, StudyTable]:
    return {table.key: table for table in report(found).tables}


def test_the_main_case_is_the_papers() -> None:
    settings = SlackSettings(slack_factor=3.0, average_wait_s=2_401.0)
    assert SLACK.policy.backfill == Slack(settings)
    names = [case.name for case in named.paper_cases()]
    assert len(set(names)) == len(names)
    different = {repr(replace(case, name="", repeated=True)) for case in named.paper_cases()}
    assert len(different) == len(names)


def test_a_run_is_what_the_engine_does(papers: MonthlyLog, found: Talby1999) -> None:
    waits, raised = [], []
    for month in papers.months:
        jobs = month.jobs
        jobs = replace(jobs, actual_runtime=np.minimum(jobs.actual_runtime, jobs.requested_time))
        fifth = np.arange(len(jobs)) % 5 == 4
        told = SlackJobs(fifth.astype(np.float64), fifth.astype(np.float64))
        policy = Policy(backfill=Slack(SlackSettings(average_wait_s=2_401.0)))
        schedule = simulate(jobs, policy, slack_jobs=told, check=True)
        waits.append(schedule.start_time - jobs.submit_time)
        raised.append(fifth)
    run = found.runs[papers.name][named.with_gap(SLACK, 2.0).name, 0]
    wait, fifth = np.concatenate(waits), np.concatenate(raised)
    assert run.mean_wait_s == pytest.approx(wait.mean())
    assert run.fifth_mean_wait_s == pytest.approx(wait[fifth].mean())
    assert run.others_mean_wait_s == pytest.approx(wait[~fifth].mean())
    assert run.wait_s == pytest.approx([part.mean() for part in waits])
    assert run.longest_wait_s == wait.max()
    assert run.killed == 0


def test_a_copy_keeps_who_is_raised(papers: MonthlyLog) -> None:
    jobs = papers.months[0].jobs
    copy = Repeats(2, seed=1).varied(jobs, 0)
    assert copy.job_id.tolist() != jobs.job_id.tolist()
    assert sorted(copy.job_id[fifths(copy)]) == list(range(4, len(jobs), 5))


def test_promises_are_kept_unless_jobs_outlive_their_requests(
    papers: MonthlyLog, found: Talby1999
) -> None:
    runs = found.runs[papers.name]
    for (case, _), run in runs.items():
        if "killed" in case or "extend" in case or "kill-blocking" in case:
            continue
        assert run.killed == 0
        if case.startswith("priority") or case == CONSERVATIVE.name:
            assert run.broken == 0, case
            assert run.promised_wait_s is not None
            assert run.planned_wait_s is not None
            assert run.promised_wait_s >= run.planned_wait_s
    assert runs[EASY.name, 0].promised_wait_s is None


def test_without_slack_it_is_as_good_as_conservative_promises(
    papers: MonthlyLog, found: Talby1999
) -> None:
    run = found.runs[papers.name][named.with_slack_factor(0.0).name, 0]
    assert run.later_share == 0
    assert run.promised_wait_s == pytest.approx(run.planned_wait_s)


def test_average_waits_come_from_a_conservative_run(papers: MonthlyLog, tmp_path: Path) -> None:
    given = SlackSettings(
        average_wait_s=run_cases(papers, [CONSERVATIVE], tmp_path, repeats=0, seed=1, workers=1)[
            CONSERVATIVE.name, 0
        ].mean_wait_s
    )
    told = replace(SLACK, name="told", policy=named.slack(given))
    own = named.with_average_wait(AverageWait.LOG)
    both = run_cases(papers, [told, own], tmp_path, repeats=1, seed=1, workers=1)
    assert both["told", 0] == both[own.name, 0]
    assert both["told", 1] == both[own.name, 1]


def test_runs_are_kept_and_known_by_what_they_do(papers: MonthlyLog, tmp_path: Path) -> None:
    cases = [EASY, SLACK]
    first = run_cases(papers, cases, tmp_path, repeats=1, seed=1, workers=1)
    kept = (tmp_path / "cells.jsonl").read_text()
    assert kept.count("\n") == len(tasks_of(cases, 1)) == 4
    done: list[int] = []
    again = run_cases(papers, cases, tmp_path, repeats=1, seed=1, workers=1, progress=done.append)
    assert {key: repr(run) for key, run in again.items()} == {
        key: repr(run) for key, run in first.items()
    }
    assert done == [4]
    assert (tmp_path / "cells.jsonl").read_text() == kept
    run_cases(papers, cases, tmp_path, repeats=1, seed=2, workers=1)
    assert (tmp_path / "cells.jsonl").read_text().count("\n") == 8


def test_every_table_has_ours_beside_the_papers(
    tables: dict[str, StudyTable], found: Talby1999
) -> None:
    rows = tables["months"].rows
    assert [row[0] for row in rows] == ["1996-09", "1996-10", "all"]
    assert rows[0][2] == 440.6
    assert rows[-1][2] == paper.YEAR["conservative"]
    assert rows[-1][6] == pytest.approx(0.165, abs=1e-3)
    assert [row[0] for row in tables["orders"].rows] == ["AST", "AAT", "DC", "DU", "DP"]
    assert [row[1] for row in tables["orders"].rows] == [0.165, 0.13, 0.092, 0.081, 0.117]
    assert len(tables["gap"].rows) == len(named.GAPS)
    for key in ("slack-factor", "awt", "weights", "everyone", "overruns", "trace", "baselines"):
        assert len(tables[key].rows) > 2, key
    assert [row[0] for row in tables["logs"].rows] == [log.name for log in found.logs]
    assert found.papers is not None
    whole = found.papers.whole
    killed = {row[0]: row[-1] for row in tables["overruns"].rows}
    over = int(np.sum(whole.actual_runtime > whole.requested_time))
    assert over > 0
    assert killed[SLACK.name] == killed[CONSERVATIVE.name] == over
    assert killed["conservative, not killed"] == 0
    assert isinstance(killed["priority, kill-blocking"], int)
    assert 0 <= killed["priority, kill-blocking"] <= over
    jobs = sum(row[1] for row in rows[:-1] if isinstance(row[1], int))
    assert jobs == rows[-1][1] == 150


def test_every_claim_is_judged(tables: dict[str, StudyTable]) -> None:
    rows = tables["claims"].rows
    assert len(rows) == len(CLAIMS)
    assert {row[3] for row in rows} <= {"yes", "**no**"}
    assert all(str(row[4]).endswith(" of 3") for row in rows)


def test_figures(found: Talby1999, tables: dict[str, StudyTable]) -> None:
    drawn = figures(found)
    assert set(drawn) <= set(tables)
    assert {"months", "orders", "gap", "logs"} <= set(drawn)


def test_another_log_alone(tmp_path: Path) -> None:
    log = made("other", 64, 64, jobs=80)
    assert {case.name for case in cases_of(log)} >= {EASY.name, CONSERVATIVE.name, SLACK.name}
    written = report(study([log], tmp_path, repeats=0, seed=1, workers=1))
    assert [table.key for table in written.tables] == ["logs", "log1"]
    assert "not here" in written.notes[-1]
    with pytest.raises(InputError, match="two logs have this name"):
        study([log, log], tmp_path, repeats=0, seed=1, workers=1)


PAGE = Path("docs") / "studies" / "talby1999.md"


def test_the_page_s_main_table_comes_out_again(
    repository: Path, trace: Callable[[str], Path]
) -> None:
    """Conservative and priority scheduler on the paper's log, month by month."""
    log = read_months(trace("KTH-SP2-1996-2.1-cln.swf.gz"))
    document = json.loads((repository / PAGE.with_suffix("") / "results.json").read_text())
    kept = {table["key"]: table["rows"] for table in document["tables"]}["months"]
    for place, month in enumerate(log.months):
        jobs = month.jobs
        jobs = replace(jobs, actual_runtime=np.minimum(jobs.actual_runtime, jobs.requested_time))
        for column, policy in ((3, CONSERVATIVE.policy), (5, SLACK.policy)):
            wait = simulate(jobs, policy).start_time - jobs.submit_time
            assert wait.mean() == pytest.approx(kept[place][column]), (month.name, column)
