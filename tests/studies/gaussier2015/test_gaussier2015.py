"""The study of Gaussier 2015: triples, selection, correlations, and a small run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.estimators import registry
from foretime_estimators.estimators.requested import Requested
from foretime_sim.campaigns.cells import Plan, plan
from foretime_sim.campaigns.execution import Outcome, execute
from foretime_sim.campaigns.file import parse_campaign
from foretime_sim.campaigns.runs import attempt
from foretime_sim.campaigns.store import CampaignStore
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import EstimatedSchedule
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload
from foretime_studies.gaussier2015.figures import figure_3
from foretime_studies.gaussier2015.paper import (
    PAPER_LOGS,
    PRINTED_REDUCTION,
    PRINTED_REDUCTION_TO_EASY_PLUS_PLUS,
    paper_log,
)
from foretime_studies.gaussier2015.predictions import Predicted, distribution
from foretime_studies.gaussier2015.selection import (
    Rule,
    agreements,
    leave_one_out,
    mean_reduction,
    ranks,
)
from foretime_studies.gaussier2015.study import (
    CLAIRVOYANT_SJBF,
    EASY,
    EASY_PLUS_PLUS,
    StudiedLog,
    StudySettings,
    campaign_text,
    planned,
    study,
    triple_of,
)
from foretime_studies.gaussier2015.tables import tables


def test_table_7_says_37_percent() -> None:
    """Its rows give 37.1% against EASY (the text: 28%), and 20.7% against EASY++ (11%)."""
    chosen = [log["chosen"] for log in PAPER_LOGS.values()]
    found = mean_reduction([log["easy"] for log in PAPER_LOGS.values()], chosen)
    assert found == pytest.approx(0.371, abs=0.0005)
    assert found > PRINTED_REDUCTION + 0.05
    against = mean_reduction([log["easy_plus_plus"] for log in PAPER_LOGS.values()], chosen)
    assert against == pytest.approx(0.207, abs=0.0005)
    assert against > PRINTED_REDUCTION_TO_EASY_PLUS_PLUS + 0.05


def test_each_logs_triple_is_chosen_on_the_others() -> None:
    """Three logs, three triples. The third log's values are the large ones.

    Sums of the others: for log 1 (220, 205, 300), for 2 (210, 209, 303), for 3 (30, 14, 7).
    """
    avebsld = np.array([[10.0, 9.0, 5.0], [20.0, 5.0, 2.0], [200.0, 200.0, 298.0]])
    easy = np.array([10.0, 20.0, 200.0])
    assert leave_one_out(avebsld, easy) == [1, 1, 2]
    # Each log alike: the third triple is worse by a half on log 3, and better by far on the others.
    assert leave_one_out(avebsld, easy, Rule.RATIO) == [2, 2, 2]
    # Ranks on log 3: 1.5, 1.5, 3; on log 1: 3, 2, 1; on log 2: 3, 2, 1.
    assert leave_one_out(avebsld, easy, Rule.RANK) == [1, 1, 2]


def test_ranks_share_ties() -> None:
    assert ranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist() == [2.5, 1, 2.5, 4]


def test_logs_agree_by_their_correlations() -> None:
    """Log 2 is twice log 1; log 3 falls as log 1 rises, but for one disaster in both."""
    avebsld = np.array([[1.0, 2.0, 3.0, 100.0], [2.0, 4.0, 6.0, 200.0], [3.0, 2.0, 1.0, 1_000.0]])
    found = {(pair.first, pair.second): pair for pair in agreements(avebsld)}
    assert list(found) == [(0, 1), (0, 2), (1, 2)]
    assert found[0, 1][2:] == pytest.approx((1, 1, 1))
    disaster = found[0, 2]
    assert disaster.pearson > 0.99
    # Ranks 1 2 3 4 and 3 2 1 4: 1 - 6 * (4 + 0 + 4 + 0) / (4 * 15).
    assert disaster.spearman == pytest.approx(0.2)
    assert disaster.spearman < disaster.pearson_log < disaster.pearson
    assert np.isnan(agreements(np.array([[1.0, 1.0], [1.0, 2.0]]))[0].pearson)


def test_the_papers_logs_by_their_files() -> None:
    curie = paper_log("CEA-Curie-2011-2.1-cln.swf.gz")
    assert curie is not None
    assert (curie[0], curie[1]["processors"]) == ("Curie", 80_640)
    assert paper_log("METACENTRUM-2009-2.swf.gz") is None


def test_128_triples_and_two_that_know() -> None:
    """(20 losses + last-two) x 3 corrections x 2 backfillings + 2 on requests (section 6.2)."""
    settings = StudySettings()
    listed = settings.triples
    assert len(set(listed)) == len(listed) == 130
    assert sum(triple.clairvoyant for triple in listed) == 2
    assert sum(triple.learned for triple in listed) == 120
    recent = StudySettings(options=("half-life=1000",)).paper_choice
    assert recent.prediction == "regression:squared-linear-large-area:half-life=1000"
    assert recent.title == settings.paper_choice.title
    assert {EASY, EASY_PLUS_PLUS, settings.paper_choice, CLAIRVOYANT_SJBF} <= set(listed)


LOSSLESS = StudySettings(repeats=3, losses=())
MEAN_OF_EASY_PLUS_PLUS = ("mean of the logs", "EASY++")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[StudiedLog]:
    """Two generated logs with users, as files."""
    folder = tmp_path_factory.mktemp("logs")
    made = []
    for seed, name in ((1, "KTH-SP2"), (2, "elsewhere")):
        jobs = generate(250, processors=32, seed=seed, load=0.9)
        users = Labels(np.arange(len(jobs), dtype=np.int32) // 4 % 3, ("a", "b", "c"), (1, 2, 3))
        path = folder / f"{name}.swf"
        write_swf(log_of_workload(replace(jobs, users=users)), path)
        made.append(StudiedLog(name, path, 32, len(jobs), len(jobs), 10.0, "generated"))
    return made


class Counted:
    """Runs a plan's cells here, keeps them in a folder, and counts what it had to run."""

    def __init__(self, folder: Path) -> None:
        self.store = CampaignStore(folder)
        self.executed: list[int] = []

    def __call__(self, planned: Plan) -> Outcome:
        outcome = execute(planned, self.store, lambda cells: (attempt(cell) for cell in cells))
        self.executed.append(outcome.executed)
        return outcome


def test_the_campaign_has_the_triples_and_no_more(logs: list[StudiedLog], tmp_path: Path) -> None:
    settings = StudySettings(repeats=0)
    text = campaign_text(logs, settings, [])
    cells = plan(parse_campaign(text, tmp_path / "campaign.toml")).cells
    assert len(cells) == 2 * 130
    assert {triple_of(cell.axes) for cell in cells} == set(settings.triples)
    assert {cell.axes["event_order"] for cell in cells} == {"per-event"}


def test_a_small_run_goes_on_where_it_was(logs: list[StudiedLog], tmp_path: Path) -> None:
    first = Counted(tmp_path)
    found = study(logs, tmp_path, first, LOSSLESS)
    assert len(LOSSLESS.triples) == 10
    # Four of the repeated triples are here (no losses, so not the paper's choice).
    assert first.executed[0] == 2 * (10 + 4 * 3)
    assert set(found.chosen) == {"KTH-SP2", "elsewhere"}
    # Each is chosen on the other log alone: there it is the best.
    for log, other in (("KTH-SP2", "elsewhere"), ("elsewhere", "KTH-SP2")):
        best = min(found.avebsld(other, triple) for triple in found.candidates)
        assert found.avebsld(other, found.chosen[log]) == best
        assert (log, found.chosen[log], 3) in found.runs
    again = Counted(tmp_path)
    assert study(logs, tmp_path, again, LOSSLESS) == found
    assert sum(again.executed) == 0
    # A line cut short is a run that is made again.
    kept = first.store.path.read_text()
    first.store.path.write_text(kept[:-40])
    study(logs, tmp_path, again, LOSSLESS)
    assert sum(again.executed) == 1


def test_a_cell_is_known_by_what_its_estimator_does(
    logs: list[StudiedLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other code under the same version and name is run again, and only what it changes."""
    before = planned(logs[:1], tmp_path, LOSSLESS, [])
    monkeypatch.setattr(registry, "LastTwo", Requested)
    after = planned(logs[:1], tmp_path, LOSSLESS, [])
    changed = {
        triple_of(one.axes).prediction
        for one, other in zip(before.cells, after.cells, strict=True)
        if one.id != other.id
    }
    assert changed == {"last-two"}


def test_tables_and_figures_of_a_small_run(logs: list[StudiedLog], tmp_path: Path) -> None:
    found = study(logs, tmp_path, Counted(tmp_path), LOSSLESS)
    by_key = {table.key: table for table in tables(found)}
    assert {"table1", "table4", "table6", "table7", "selection", "jittered"} <= set(by_key)
    assert {"correlations", "extremes", "effects", "triples"} <= set(by_key)
    assert by_key["table1"].rows[0][:3] == ("KTH-SP2", found.avebsld("KTH-SP2", EASY), 92.6)
    assert by_key["table1"].rows[1][2] is None
    assert len(by_key["triples"].rows) == 10
    assert len(figure_3(found).axes) == 1
    row = next(row for row in by_key["selection"].rows if row[0] == "paper's table 7, its six logs")
    assert row[1] == pytest.approx(0.371, abs=0.0005)
    plus = [row for row in by_key["jittered"].rows if row[1] == EASY_PLUS_PLUS.title]
    together = next(row for row in by_key["jittered"].rows if row[:2] == MEAN_OF_EASY_PLUS_PLUS)
    reduced = [float(str(row[8])) for row in plus]
    assert together[8] == pytest.approx(sum(reduced) / 2)
    values = [found.avebsld("KTH-SP2", EASY_PLUS_PLUS, seed) for seed in (1, 2, 3)]
    assert plus[0][3:6] == pytest.approx((min(values), max(values), np.mean(values)))
    extreme = next(row for row in by_key["extremes"].rows if row[1] == "EASY")
    largest = found.runs["KTH-SP2", EASY, 0]["bounded_slowdown_max"]
    together_of_all = 250 * found.avebsld("KTH-SP2", EASY)
    # 0.1% of 250 jobs is one: the largest.
    assert extreme[3] == pytest.approx(largest / together_of_all)
    assert extreme[4] == pytest.approx((together_of_all - largest) / 249)


def test_predictions_are_measured_by_hand() -> None:
    """Two jobs on 10 processors that run 100 s and 1,000 s, predicted 200 s and 400 s."""
    column = np.array([10, 10])
    jobs = Workload(
        "made", 10, None, column, column, column, np.array([100, 1_000]), np.array([500, 5_000])
    )
    predicted = np.array([200, 400])
    schedule = EstimatedSchedule(simulate(jobs, Policy(), predicted), predicted)
    found = Predicted.of("made", "p", schedule, jobs)
    assert (found.mae_s, found.under) == (350, 0.5)
    # The second starts when the first has ended.
    assert found.avebsld == pytest.approx((1 + 1_100 / 1_000) / 2)
    assert found.ratio == pytest.approx((0.5 + 0.4) / 2)
    # Base 10: log(10 * 100) = 3 times 100^2, and log(10 * 1000) = 4 times 600.
    assert found.mean_e_loss == pytest.approx((3 * 100**2 + 4 * 600) / 2)
    assert distribution(np.array([1, 2, 2, 5]), np.array([0, 1, 2, 9])).tolist() == [
        0,
        0.25,
        0.75,
        1,
    ]
