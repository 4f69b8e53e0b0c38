"""The study of Streit 2002 on small sets: what is run, kept, summed up and claimed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.models.lublin2003 import generate
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import Decider, Quality
from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.targets import Spread
from foretime_studies.streit2002.claims import CLAIMS, Claim, claims_table
from foretime_studies.streit2002.command import report
from foretime_studies.streit2002.curves import best_single, curve_tables, shares_up_to
from foretime_studies.streit2002.measures import Measures
from foretime_studies.streit2002.one_list import one_list_tables
from foretime_studies.streit2002.paper import TABLE_6_ROWS
from foretime_studies.streit2002.sets import (
    CTC,
    KTH,
    PC2,
    JobSet,
    JobSource,
    LogSource,
    Pc2Source,
    with_exact_requests,
)
from foretime_studies.streit2002.study import (
    ADVANCED,
    BASIC,
    BESIDE,
    FCFS,
    FIVE,
    KEPT,
    LIST_ADVANCED,
    LIST_SIMPLE,
    LJF,
    ONE_LIST,
    SCHEDULERS,
    SIMPLE,
    SINGLES,
    SJF,
    Case,
    CaseResult,
    Streit2002,
    StudySettings,
    cases,
    self_tuning,
    study,
)
from foretime_studies.streit2002.tables import cases_of, share_of_cases, tables

JOBS = 120
SETTINGS = StudySettings(seeds=3, further_seeds=1, jobs=JOBS)


@pytest.fixture(scope="module")
def sources() -> dict[str, JobSource]:
    """A log of KTH's size, made; and PC2."""
    log = generate(3 * JOBS, processors=100, load=0.9)
    return {"KTH": LogSource.of(KTH, log), "PC2": Pc2Source()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streit2002")


@pytest.fixture(scope="module")
def found(sources: dict[str, JobSource], folder: Path) -> Streit2002:
    return study(sources, folder, SETTINGS, notes=["made"])


def test_what_is_run(found: Streit2002, sources: dict[str, JobSource]) -> None:
    """PC2 has no log: 10 factors with table 4's, 6 schedulers on three draws; ..."""
    of_pc2 = [case for case in found.results if case.job_set == "PC2"]
    at_1, curves, exact, rest = 3 * len(SCHEDULERS), 9 * 3 * 6, 10 * 1 * 4, 9 * (11 - 6)
    loaded, one_list = 3 * (5 + len(ONE_LIST)), 9 * 3 * 2
    assert len(of_pc2) == at_1 + curves + exact + rest + loaded + one_list
    of_kth = [case for case in found.results if case.job_set == "KTH"]
    assert {case.kind for case in of_kth} == {"independent", "loaded", "modulated", "log"}
    assert {case.width for case in of_kth} == {"printed"}, "KTH's log has the printed machine"
    # Three factors (the table's is the first), four schedulers, once each.
    assert sum(case.kind == "log" for case in of_kth) == 3 * len(BESIDE)
    assert cases(sources, SETTINGS) == sorted(found.results, key=lambda case: case.draw)


def test_runs_are_what_the_engine_does(found: Streit2002, sources: dict[str, JobSource]) -> None:
    """One run of each kind, made again without the study."""
    jobs = sources["KTH"].jobs("independent", 2, JOBS, 0.7)
    assert jobs.machine_processors == 100
    planned = Policy(order=Order.SJF, backfill=Backfill.PLANNING)
    expected = Measures.of(jobs, simulate(jobs, planned))
    case = Case("KTH", SJF, 0.7, draw=2)
    assert found.results[case].measures == expected
    exact = with_exact_requests(sources["KTH"].jobs("independent", 1, JOBS, 0.7))
    expected = Measures.of(exact, simulate(exact, planned))
    assert found.results[replace(case, draw=1, requests="exact")].measures == expected
    modulated = sources["KTH"].jobs("modulated", 1, JOBS, 0.6)
    schedule = simulate(modulated, SCHEDULERS[ADVANCED])
    result = found.results[Case("KTH", ADVANCED, 0.6, kind="modulated")]
    assert result == CaseResult.of(modulated, SCHEDULERS[ADVANCED])
    assert schedule.switching is not None
    assert result.switched is not None
    assert list(result.switched.started.values()) == schedule.switching.jobs_started.tolist()


def test_the_schedulers_are_the_papers() -> None:
    assert set(SINGLES) | {BASIC, SIMPLE, ADVANCED, KEPT} < set(SCHEDULERS)
    assert len(SCHEDULERS) == 3 + 1 + 6 + 1
    basic = SCHEDULERS[BASIC].switching
    assert basic is not None
    assert (basic.decider, basic.lower_bound_s, basic.upper_bound_s) == (
        Decider.BASIC,
        7_200,
        9_000,
    )
    art = SCHEDULERS[self_tuning(Decider.SIMPLE, Quality.ART)].switching
    assert art is not None
    assert (art.decider, art.quality) == (Decider.SIMPLE, Quality.ART)
    planned = [policy for name, policy in SCHEDULERS.items() if name != KEPT]
    assert {str(policy.backfill) for policy in planned} == {"planning"}


def test_one_list_is_every_self_tuning_scheduler_with_it() -> None:
    assert len(ONE_LIST) == 6
    for name, policy in ONE_LIST.items():
        assert policy.switching is not None
        anew = SCHEDULERS[name.removeprefix("one list, ")].switching
        assert anew is not None
        assert policy.switching == replace(anew, one_list=True)


@pytest.mark.parametrize(("job_set", "printed"), [(KTH, 0.6564), (PC2, 0.4249)])
def test_loaded_sets_have_the_papers_load(
    sources: dict[str, JobSource], job_set: JobSet, printed: float
) -> None:
    source = sources[job_set.name]
    jobs, drawn = (source.jobs(kind, 2, JOBS, 1.0) for kind in ("loaded", "independent"))
    work = int(jobs.processors @ jobs.actual_runtime)
    span = int(jobs.submit_time[-1] - jobs.submit_time[0])
    assert work / (job_set.printed_processors * span) == pytest.approx(printed, rel=1e-4)
    np.testing.assert_array_equal(jobs.requested_time, drawn.requested_time)
    shrunk = source.jobs("loaded", 2, JOBS, 0.5)
    assert shrunk.submit_time[-1] - shrunk.submit_time[0] == pytest.approx(span / 2, abs=1)


def test_tables_of_one_list(found: Streit2002) -> None:
    by_key = {table.key: table for table in one_list_tables(found)}
    simple, advanced = (
        [run.measures.artww_s for run in found.runs("KTH", key, kind="loaded")]
        for key in (LIST_SIMPLE, LIST_ADVANCED)
    )
    assert len(advanced) == SETTINGS.seeds
    gains = {row[:2]: row[2:] for row in by_key["one-list-gains"].rows}
    mean = np.mean([1 - one / other for one, other in zip(advanced, simple, strict=True)])
    assert gains["table 4, ARTwW", "KTH"][0] == pytest.approx(1 - 33_299 / 48_077)
    assert gains["table 4, ARTwW", "KTH"][3] == f"{mean:.1%}"
    assert gains["figure 2, over factors", "PC2"][0] == 0.3
    table_4 = {row[:3]: row[3:] for row in by_key["one-list-4"].rows}
    assert table_4["KTH", "ARTwW", "simple"][:2] == ("48,077", f"{np.mean(simple):,.0f}")
    both = {row[0]: row[1:] for row in by_key["one-list-5-6"].rows}
    tries = [
        run.switched.tries
        for run in found.runs("KTH", LIST_ADVANCED, kind="loaded")
        if run.switched is not None
    ]
    assert both["total tries of switches"][2] == f"{np.mean(tries):,.0f}"
    assert both["case 6b"][0] == "72.43%"
    singles = {row[0]: row[1:] for row in by_key["one-list-artww"].rows}
    assert singles["KTH"][-2:] == ("48,077", "33,299")
    assert singles["KTH"][6] == f"{np.mean(advanced):,.0f}"
    curve = {row[:2]: row[2:] for row in by_key["one-list-curves"].rows}
    runs = found.runs("PC2", LIST_ADVANCED, 0.4)
    assert curve["PC2", 0.4][4] == pytest.approx(np.mean([run.measures.artww_s for run in runs]))


def test_a_log_has_parts_and_pc2_has_no_week(sources: dict[str, JobSource]) -> None:
    kth, pc2 = sources["KTH"], sources["PC2"]
    assert (kth.draws("log", JOBS), pc2.draws("log", JOBS), pc2.draws("modulated", JOBS)) == (
        3,
        0,
        0,
    )
    assert isinstance(kth, LogSource)
    second = kth.jobs("log", 2, JOBS, 1.0)
    assert second.job_id.tolist() == kth.log.job_id[JOBS : 2 * JOBS].tolist()
    assert kth.draws("log", 10 * JOBS) == 1
    assert len(kth.jobs("log", 1, 10 * JOBS, 1.0)) == 3 * JOBS


def test_what_is_kept_is_not_run_again(
    sources: dict[str, JobSource], folder: Path, found: Streit2002
) -> None:
    kept = (folder / "cells.jsonl").read_text()
    told: list[int] = []

    def begin(runs: int) -> object:
        told.append(runs)
        return told.append

    again = study(sources, folder, SETTINGS, notes=["made"], begin=begin)  # type: ignore[arg-type]
    assert (folder / "cells.jsonl").read_text() == kept
    assert again.results == found.results
    assert told == [len(found.results), len({*kept.splitlines()})]


def test_the_report_is_whole_and_json(found: Streit2002) -> None:
    written = report(found)
    document = json.loads(json.dumps(written.to_json(), allow_nan=False))
    assert StudyReport.from_json(document).to_json() == document
    keys = [table.key for table in written.tables]
    first = ["table2", "table3", "table4", "table4-started", "table5", "table6", "draws"]
    assert keys[:7] == first
    assert set(written.figures) == {f"figure{number}" for number in range(1, 9)} <= set(keys)
    assert any("for want of their logs: CTC, SDSC" in note for note in written.notes)
    for table in written.tables:
        assert table.rows, table.key


def test_tables_have_the_runs_numbers(found: Streit2002) -> None:
    by_key = {table.key: table for table in (*tables(found), *curve_tables(found))}
    artww = [result.measures.artww_s for result in found.runs("KTH", ADVANCED)]
    row = by_key["table4"].rows[1]
    assert row[:4] == ("KTH", "ARTwW", "advanced", "33,299")
    assert row[4:6] == (f"{artww[0]:,.0f}", f"{np.mean(artww):,.0f}")
    assert row[6] is not None
    assert by_key["table4-started"].rows[1][:4] == ("KTH", "ARTwW", "advanced", "7,885")
    curve = {row[:2]: row[2:] for row in by_key["figure4"].rows}
    fcfs = [result.measures.artww_s for result in found.runs("PC2", FCFS, 0.4)]
    assert curve["PC2", 0.4][FIVE.index(FCFS)] == pytest.approx(np.mean(fcfs))
    best = {row[:2]: row[2:] for row in by_key["best"].rows}
    name = best_single(found, "KTH", 0.6, "artww_s")
    assert best["KTH", 0.6][0] == name
    assert best["KTH", 0.6][1 + SINGLES.index(name)] == 1
    drawn = {row[:2]: row[2:] for row in by_key["draws"].rows}
    jobs = found.jobs(KTH, 2)
    work = int(jobs.processors @ jobs.actual_runtime)
    span = int(jobs.submit_time[-1] - jobs.submit_time[0])
    assert drawn["KTH", 2][0] == pytest.approx(work / (100 * span))
    assert drawn["KTH", 2][-1] == artww[1]
    assert drawn["KTH", "paper"][-2:] == (48_077, 33_299)
    table6 = {row[0]: row for row in by_key["table6"].rows}
    assert table6["total as printed"][1:4] == ("18,840", None, None)
    assert table6["total added up"][1] == "18,866"
    counted = [sum(cases_of(result).values()) for result in found.runs("KTH", ADVANCED)]
    assert table6["total added up"][2] == f"{counted[0]:,}"


def test_cases_are_counted_as_table_6_counts_them(found: Streit2002) -> None:
    result = found.runs("KTH", ADVANCED)[0]
    assert result.switched is not None
    assert result.switched.cases is not None
    assert tuple(cases_of(result)) == TABLE_6_ROWS
    assert sum(cases_of(result).values()) == sum(result.switched.cases.values())
    assert sum(cases_of(result).values()) == result.switched.tries
    counted = dict.fromkeys(result.switched.cases, 0) | {"2": 1, "7": 2, "4b": 4, "6b": 13}
    told = replace(result, switched=replace(result.switched, cases=counted))
    assert cases_of(told)["2 & 7"] == 3
    assert cases_of(told)["4b & 5"] == 4
    assert share_of_cases(told, ["6b"]) == 13 / 20
    with pytest.raises(ValueError, match="tunes itself"):
        cases_of(found.runs("KTH", BASIC)[0])


def test_spreads() -> None:
    several = Spread.of([3.0, 1.0, 2.0])
    assert (several.first, several.mean) == (3, 2)
    assert several.interval is not None
    # 2 -+ t(0.975, 2) / sqrt(3), the deviation being 1.
    assert several.interval.high == pytest.approx(2 + 4.30265 / math.sqrt(3), rel=1e-4)
    assert Spread.of([3.0, 1.0]).interval is None


def test_figure_1_counts_up_to_a_bound() -> None:
    assert shares_up_to(np.array([60, 60, 61, 600]), [59, 60, 600]) == [0, 0.5, 1]


def test_claims_are_of_the_sets_that_there_are(found: Streit2002) -> None:
    table = claims_table(found)
    expected = [claim for claim in CLAIMS if set(claim.sets) <= {KTH, PC2}]
    assert 10 < len(expected) < len(CLAIMS)
    assert [row[1] for row in table.rows] == [claim.says for claim in expected]
    gains = []
    for number in range(3):
        simple, advanced = (
            found.runs("KTH", name)[number].measures.artww_s for name in (SIMPLE, ADVANCED)
        )
        gains.append(1 - advanced / simple)
    row = next(row for row in table.rows if str(row[1]).startswith("KTH: ARTwW of the advanced"))
    assert row[2:6] == ("30.7%", "≥ 15.4%", f"{gains[0]:.1%}", f"{np.mean(gains):.1%}")
    assert row[7] == f"{sum(gain >= 0.1537 for gain in gains)} of 3"
    assert row[8] == ("yes" if np.mean(gains) >= 0.1537 else "no")


def test_every_claim_can_be_worked_out_and_can_fail(
    sources: dict[str, JobSource], tmp_path: Path
) -> None:
    """On all four sets, CTC and SDSC made like the others."""
    wide = generate(JOBS, processors=128, load=0.9)
    whole = sources | {name: LogSource.of(KTH, wide) for name in ("CTC", "SDSC")}
    settings = StudySettings(seeds=1, further_seeds=1, jobs=60)
    found = study(whole, tmp_path, settings)
    rows = claims_table(found).rows
    assert len(rows) == len(CLAIMS)
    assert {row[8] for row in rows} == {"yes", "no"}


@pytest.mark.parametrize(
    ("low", "high", "bound", "held"),
    [
        (1.0, math.inf, "≥ 1.0", [False, True, True]),
        (-math.inf, 1.0, "≤ 1.0", [True, True, False]),
        (1.0, 2.0, "1.0 to 2.0", [False, True, True]),
    ],
)
def test_bounds_of_claims(low: float, high: float, bound: str, held: list[bool]) -> None:
    claim = Claim("here", "so", None, ".1f", lambda draw: 0.0, low, high, (CTC, PC2))
    assert claim.bound == bound
    assert [claim.holds(value) for value in (0.5, 1.0, 2.0)] == held


def test_ljf_is_not_sjf(found: Streit2002) -> None:
    """Orders are told apart by what they do to a busy set."""
    figures_of = {
        name: found.runs("KTH", name, 0.6)[0].measures.artww_s for name in (FCFS, SJF, LJF)
    }
    assert len(set(figures_of.values())) == 3
