"""The study of Tang 2010 on small workloads; its page is what its command wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.bluegene.machine_file import intrepid
from foretime_sim.models import intrepid_like
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.workloads.bgp_jobs import with_bgp_machine
from foretime_sim.workloads.workload import Workload
from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.runs import StudyCase, StudyInput, run_cases
from foretime_studies.frame.tables import StudyTable
from foretime_studies.tang2010 import study as tang2010
from foretime_studies.tang2010.claims import CLAIMS
from foretime_studies.tang2010.command import report
from foretime_studies.tang2010.tables import table_3

SMALL = intrepid_like.generate(2_500, seed=2, load=1.1)
PAGE = Path("docs") / "studies" / "tang2010.md"
RESULTS = Path("docs") / "studies" / "tang2010"


def studied(log: Workload, repeats: int = 0) -> tuple[tang2010.Tang2010, dict[str, StudyTable]]:
    found = tang2010.study(log, None, repeats=repeats, workers=1)
    return found, {table.key: table for table in report(found, "here").tables}


@pytest.fixture(scope="module")
def small() -> tuple[tang2010.Tang2010, dict[str, StudyTable]]:
    return studied(SMALL, repeats=1)


def test_every_table_and_figure_of_the_paper(
    small: tuple[tang2010.Tang2010, dict[str, StudyTable]], tmp_path: Path
) -> None:
    found, tables = small
    wanted = {"table1", "table3", *(f"figure{number}" for number in range(2, 11))}
    assert wanted <= set(tables)
    written = report(found, "a flat pool")
    assert set(written.figures) == wanted - {"table1", "table3"}
    written.write(tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"report.md", "results.json", "table3.csv", "figure6.svg", "figure6.png"} <= names
    text = (tmp_path / "out" / "report.md").read_text()
    assert "generated, not real" not in text  # it was given as a log
    for table in tables.values():
        assert table.to_markdown() in text
    again = StudyReport.from_json(json.loads((tmp_path / "out" / "results.json").read_text()))
    assert replace(again, figures=written.figures).to_markdown() == text
    before = (tmp_path / "out" / "figure6.svg").read_bytes()
    report(found, "a flat pool").write(tmp_path / "out")
    assert (tmp_path / "out" / "figure6.svg").read_bytes() == before
    with pytest.raises(InputError, match="can't be written"):
        written.write(tmp_path / "out" / "report.md")


def test_every_claim_is_judged(small: tuple[tang2010.Tang2010, dict[str, StudyTable]]) -> None:
    rows = small[1]["claims"].rows
    assert len(rows) == len(CLAIMS)
    assert {row[2] for row in rows} == {"yes", "no"}
    assert {row[3] for row in rows} == {"0 of 1", "1 of 1"}


def test_shares_of_starts_and_classes_are_whole(
    small: tuple[tang2010.Tang2010, dict[str, StudyTable]],
) -> None:
    _, tables = small
    for key in ("figure4c", "figure5c", "figure7", "figure8c"):
        for row in tables[key].rows:
            assert sum(share for share in row[1:4] if isinstance(share, float)) == pytest.approx(1)
    sizes = [row[4] for row in tables["figure2"].rows if row[0] == "size"]
    assert sum(share for share in sizes if isinstance(share, float)) == pytest.approx(1)


def test_correction_rules_differ_for_what_is_outlived_only(
    small: tuple[tang2010.Tang2010, dict[str, StudyTable]],
) -> None:
    found, tables = small
    rows = tables["corrections"].rows
    assert len(rows) == (len(found.schemes) + 1) * len(list(Correction))
    randomised = [row[2:8] for row in rows if row[0] == "randomised"]
    assert len(set(randomised)) > 1


def test_cases_are_what_the_paper_names() -> None:
    assert tang2010.estimate_of("S010") == ("actual", Roles(False, True, False))
    assert tang2010.estimate_of("selective") == ("combined", Roles(True, True, False))
    assert tang2010.estimate_of("a=0.25") == ("blend:0.25", Roles())
    assert tang2010.estimate_of("doubled") == ("doubled", Roles())
    listed = tang2010.cases(tang2010.SCHEMES, tang2010.MAIN, ())
    assert len({case.name for case in listed}) == len(listed)
    assert all(case.policy.correction is Correction.REQUESTED for case in listed if case.repeated)


def test_a_log_without_projects_or_users() -> None:
    alone = replace(SMALL, projects=None)
    found, tables = studied(alone)
    assert found.schemes == ("user",)
    assert "names no projects" in " ".join(found.notes)
    assert [row[0] for row in tables["figure8"].rows] == ["user", "user"]
    assert len(tables["claims"].rows) < len(CLAIMS)
    found, _ = studied(replace(alone, users=None))
    assert "names no users" in " ".join(found.notes)


def test_the_history_comes_first() -> None:
    given = studied(SMALL)[0].main
    assert given.history is not None
    assert given.history.submit_time[-1] < given.test.submit_time[0]
    assert len(given.history) / len(SMALL) == pytest.approx(48_056 / 58_535, abs=0.01)
    july = replace(intrepid_like.generate(60_000), name="ANL-Intrepid-2009-1")
    split = tang2010._split(july)
    assert split.test.moment(int(split.test.submit_time[0])).startswith("2009-07-01")
    assert split.test.moment(int(split.test.submit_time[-1])).startswith("2009-07-31")
    with pytest.raises(InputError, match="too few"):
        tang2010._split(SMALL.head(50))


def test_intrepid_s_log_takes_a_generated_workload_for_projects() -> None:
    machine = intrepid()
    log = with_bgp_machine(replace(SMALL, projects=None), machine)
    inputs, notes = tang2010._inputs(log, machine, 1, 0, ())
    assert set(inputs) == {tang2010.MAIN, tang2010.WITH_PROJECTS}
    assert inputs[tang2010.WITH_PROJECTS].test.projects is not None
    assert "are of a generated workload" in notes[0]


def kept(repository: Path) -> dict[str, StudyReport]:
    """Give what the commands wrote, by file."""
    found = {
        path.stem: StudyReport.from_json(json.loads(path.read_text()))
        for path in (repository / RESULTS).glob("*.json")
    }
    assert "results" in found
    return found


def test_the_page_s_baseline_comes_out_again(repository: Path) -> None:
    history, test = with_bgp_machine(intrepid_like.generate(), intrepid()).split(
        intrepid_like.SPLIT_S
    )
    given = StudyInput("main", test, history)
    cases = [
        StudyCase(
            tang2010.case_name(tang2010.MAIN, order, "requested"),
            tang2010.MAIN,
            Policy(order=order),
        )
        for order in (Order.FCFS, Order.WFP)
    ]
    inputs = {tang2010.MAIN: given}
    runs = run_cases(inputs, cases, repeats=0, seed=1, workers=2)
    found = tang2010.Tang2010(inputs, runs, (), (), 0, 1, True, ())
    stored = next(table for table in kept(repository)["results"].tables if table.key == "table3")
    for now, then in zip(table_3(found).rows, stored.rows, strict=True):
        # All but the jittered copies' mean, column 3.
        assert now[:3] == pytest.approx(then[:3])
        assert now[4:] == pytest.approx(then[4:])
