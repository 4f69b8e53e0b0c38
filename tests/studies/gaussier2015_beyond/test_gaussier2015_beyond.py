"""The study beyond Gaussier 2015: targets, choice on other logs, and its runs on a small log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foretime_sim.campaigns.cells import Cell, Plan, plan
from foretime_sim.campaigns.execution import Outcome, execute
from foretime_sim.campaigns.file import parse_campaign
from foretime_sim.campaigns.runs import REPEATS_SEED, attempt, policy_of
from foretime_sim.campaigns.store import CampaignStore
from foretime_sim.engine.engine import simulate
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.swf import read_swf, write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.policies.families import Backfill, Candidates, Easy
from foretime_sim.policies.guard import Guard, GuardBy
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.job_log import log_of_workload
from foretime_studies.gaussier2015.study import StudiedLog
from foretime_studies.gaussier2015_beyond import study as beyond
from foretime_studies.gaussier2015_beyond.cases import (
    BESIDE,
    BOOSTED,
    CASES,
    CLAIRVOYANT,
    EASY,
    Case,
    Kind,
)
from foretime_studies.gaussier2015_beyond.command import report
from foretime_studies.gaussier2015_beyond.study import Beyond, Rule
from foretime_studies.gaussier2015_beyond.tables import tables

CHEAP = tuple(case for case in CASES if "regression" not in str(case.axes) and not case.copies)
NAMES = ("one", "two", "three")


def log_named(name: str, path: Path = Path("x")) -> StudiedLog:
    return StudiedLog(name, path, 32, 100, 100, 1.0, f"{name}: 100 jobs")


def run_with(slowdown: float, wait: float, tail: float) -> dict[str, float]:
    """Metrics of a run whose tails are all so many seconds."""
    keys = ("wait_p99_s", "wait_p99_9_s", "wait_max_s")
    return {"bounded_slowdown_mean": slowdown, "wait_mean_s": wait, **dict.fromkeys(keys, tail)}


@pytest.fixture
def by_hand() -> Beyond:
    """Three logs with EASY at 100 and the clairvoyant at 20, and three practical cases.

    `bold` closes 95% and lets waits grow by half, `mild` 85% within all bounds but on the third
    log, where its longest waits grow by 10%, `shy` 50% within all bounds.
    """
    bold, mild, shy = (Case(name, Kind.PRACTICAL, {}) for name in ("bold", "mild", "shy"))
    runs: dict[tuple[str, str], list[dict[str, float]]] = {}
    for name in NAMES:
        runs[name, EASY.name] = [run_with(100, 1000, 10_000)] * 3
        runs[name, CLAIRVOYANT.name] = [run_with(20, 600, 9_000)] * 3
        runs[name, "bold"] = [run_with(value, 500, 15_000) for value in (23, 24, 25)]
        grown = 11_000 if name == "three" else 10_000
        runs[name, "mild"] = [run_with(32, 700, grown)] * 3
        runs[name, "shy"] = [run_with(60, 800, 10_000)] * 3
    cases = (EASY, CLAIRVOYANT, bold, mild, shy)
    return Beyond(tuple(map(log_named, NAMES)), cases, runs)


def test_the_bounds_are_the_issues() -> None:
    bounds = [(target.least, target.most, target.least_mean) for target in beyond.TARGETS]
    assert bounds == [
        (0.80, None, 0.90),
        (None, None, 0.50),
        (None, 1.0, None),
        (None, 1.05, None),
        (None, 1.05, None),
        (None, 1.2, None),
    ]
    assert beyond.GAP.met(0.8)
    assert not beyond.GAP.met(0.79)
    assert beyond.P99.met(1.05)
    assert not beyond.P99.met(1.06)
    assert not beyond.GAP.met(float("nan"))


def test_a_measure_is_the_share_of_the_gap_and_its_interval(by_hand: Beyond) -> None:
    bold = by_hand.cases[2]
    found = by_hand.measured("one", bold, beyond.GAP)
    # (100 - 24) / 80; the three differ by 1 / 80, Student's t for 2 degrees of freedom is 4.303.
    assert found.mean == pytest.approx(0.95)
    assert found.interval is not None
    assert found.interval.high - found.mean == pytest.approx(4.3027 / 80 / 3**0.5, rel=1e-4)
    assert found.give_or_take() == "0.95 ± 0.03"
    assert by_hand.measured("one", bold, beyond.BELOW).mean == pytest.approx(0.76)
    assert by_hand.measured("one", bold, beyond.P99).mean == pytest.approx(1.5)


def test_each_log_is_chosen_for_on_the_others(by_hand: Beyond) -> None:
    by_gap = by_hand.choices(Rule.GAP)
    assert {name: case.name for name, case in by_gap.items()} == dict.fromkeys(NAMES, "bold")
    by_waits = by_hand.choices(Rule.WAITS)
    # `mild` is within bounds on the others only for the log on which it is not.
    assert {name: case.name for name, case in by_waits.items()} == {
        "one": "shy",
        "two": "shy",
        "three": "mild",
    }
    # `bold` misses waits by 0.4, `shy` a gap of 0.8 by as much, `mild` a mean of 0.9 by 0.06.
    by_all = by_hand.choices(Rule.ALL)
    assert {name: case.name for name, case in by_all.items()} == dict.fromkeys(NAMES, "mild")


def test_what_is_missed_by_hand() -> None:
    values = np.array([[0.4, 1.0], [0.8, 0.7]])
    # 0.4 is half of 0.8; the means, 0.6 and 0.85, are 1/3 and 1/18 below 0.9, on each of two logs.
    assert beyond.missed(beyond.GAP, values).tolist() == pytest.approx(
        [1 / 2 + 2 / 3, 1 / 8 + 1 / 9]
    )
    assert beyond.missed(beyond.P99, values + 0.05).tolist() == pytest.approx([0, 0])
    assert beyond.missed(beyond.P99, values * 2.1).tolist() == pytest.approx([0.6, 1 + 0.4])


def test_where_none_keeps_the_bounds_the_least_excess_is_taken(by_hand: Beyond) -> None:
    runs = {key: list(found) for key, found in by_hand.runs.items() if key[1] != "shy"}
    two = Beyond(by_hand.logs, by_hand.cases[:4], runs)
    assert {case.name for case in two.choices(Rule.WAITS).values()} == {"mild"}


def test_targets_say_what_was_missed_and_where(by_hand: Beyond) -> None:
    by_key = {table.key: table for table in tables(by_hand)}
    gap, below, mean_wait, p99, p99_9, longest = by_key["targets-gap"].rows
    assert gap[2:5] == ("0.95 ± 0.03",) * 3
    assert list(gap[5:]) == [pytest.approx(0.95), "yes"]
    assert list(below[-2:]) == [pytest.approx(0.76), "yes"]
    assert mean_wait[-1] == "yes"
    assert p99[2:5] == ("**1.50 ± 0.00**",) * 3
    assert list(p99[5:]) == [pytest.approx(1.5), "**no**"]
    assert (p99_9[-1], longest[-1]) == ("**no**", "**no**")
    waits = by_key["targets-waits"].rows
    assert waits[0][2:5] == ("**0.50 ± 0.00**", "**0.50 ± 0.00**", "0.85 ± 0.00")
    assert list(waits[0][5:]) == [pytest.approx(1.85 / 3), "**no**"]
    assert [row[-1] for row in waits[2:]] == ["yes", "**no**", "**no**", "yes"]
    assert waits[3][4] == "**1.10 ± 0.00**"


def test_every_case_is_a_policy_of_its_own(small: Path) -> None:
    text = beyond.campaign_text([log_named("made", small)], 2, CASES)
    cells = plan(parse_campaign(text, Path("campaign.toml"))).cells
    copies = {case.name: min(2, case.copies or 2) for case in CASES}
    assert len(cells) == sum(copies.values())
    assert all(case in CASES for case in BESIDE.values())
    found: dict[str, list[Cell]] = {case.name: [] for case in CASES}
    for cell in cells:
        hits = [case.name for case in CASES if beyond._runs_in(case, cell.axes)]
        assert len(hits) == 1, cell.axes
        found[hits[0]].append(cell)
    assert {name: len(cells) for name, cells in found.items()} == copies
    guarded = policy_of(found["expected, WSPT, ageing 10 h, guard by EASY 48 h - 50%"][0])
    assert guarded == Policy(
        backfill=Easy(
            Candidates.WSPT, guard=Guard(2 * 86_400, GuardBy.PLAIN_EASY, 0.5), ageing_s=36_000
        )
    )
    stepped = policy_of(found["E-loss, SJBF, corrected: doublings, 2 at most"][0])
    assert stepped == Policy(
        backfill=Backfill.EASY_SJBF, correction=Correction.DOUBLING, correction_steps=2
    )


def test_what_costs_much_runs_on_fewer_copies_and_is_not_chosen(
    by_hand: Beyond, small: Path
) -> None:
    text = beyond.campaign_text([log_named("made", small)], 3, (*CASES[:3], BOOSTED))
    cells = plan(parse_campaign(text, Path("campaign.toml"))).cells
    boosted = [cell.axes["seed"] for cell in cells if cell.axes["estimator"] == "boosted"]
    assert (len(cells), boosted) == (3 * 3 + 1, [1])
    best = Case("best", Kind.PREDICTOR, {}, copies=1)
    runs = {**by_hand.runs, **{(name, "best"): [run_with(20, 1, 1)] for name in NAMES}}
    found = Beyond(by_hand.logs, (*by_hand.cases, best), runs)
    assert found.values("one", best, beyond.GAP) == [1.0]
    assert {case.name for case in found.choices(Rule.GAP).values()} == {"bold"}
    table = next(table for table in tables(found) if table.key == "predictors")
    assert [row[0] for row in table.rows] == ["best"]
    assert table.note.endswith("best: 1 of the copies.")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "small.swf.gz"
    write_swf(log_of_workload(generate(150, processors=32, load=0.95)), path)
    return path


def test_a_small_log_whole(small: Path, tmp_path: Path) -> None:
    store = CampaignStore(tmp_path)

    def run(asked: Plan) -> Outcome:
        return execute(asked, store, lambda cells: (attempt(cell) for cell in cells))

    log = log_named("small", small)
    found = beyond.study([log], tmp_path, run, repeats=3, cases=CHEAP)
    assert found.repeats == 3
    workload = Repeats(2, REPEATS_SEED).varied(
        workload_of_log(read_swf(small), processors=32)[0], 0
    )
    assert found.choices(Rule.GAP) == {}
    best = simulate(workload, Policy(backfill=Backfill.EASY_SJBF), workload.actual_runtime)
    wait = (best.start_time - workload.submit_time).mean()
    got = found.runs["small", CLAIRVOYANT.name]
    assert len(got) == 3
    assert got[0]["wait_mean_s"] == pytest.approx(wait)
    written = report(found)
    assert [table.key for table in written.tables] == [
        "logs",
        "ablation",
        "predictors",
        "corrections",
        "oracles",
        "orders",
        "log1",
    ]
    assert np.allclose(found.matrix([EASY, CLAIRVOYANT], beyond.GAP), [[0, 1]])
    written.write(tmp_path / "out")
    assert (tmp_path / "out" / "ablation.svg").exists()
    again = beyond.study([log], tmp_path, run, repeats=3, cases=CHEAP)
    assert again == found
