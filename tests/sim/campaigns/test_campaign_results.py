"""Tables and report: the same figures by another way, and what is said of what is missing."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from foretime_sim.campaigns.campaign import Campaign
from foretime_sim.campaigns.cells import Plan, plan
from foretime_sim.campaigns.plots import (
    matrix_axes,
    plot_gains,
    plot_load,
    plot_matrix,
    plot_tail,
    written,
)
from foretime_sim.campaigns.report import write_report
from foretime_sim.campaigns.results import (
    failures_frame,
    policy_label,
    results_frame,
    summaries,
    summary_frame,
    write_tables,
)
from foretime_sim.campaigns.runs import Record, attempt, failure
from foretime_sim.scores.metrics import METRICS
from matplotlib.figure import Figure

Make = Callable[[str], Campaign]

GRID = """
[grid]
order = ["fcfs", "sjf"]
backfill = ["none", "easy"]
estimator = ["requested", "last-two"]
guard_s = ["off", 600]
interarrival_factor = [1, 0.7]
seeds = 5
[report]
baseline = {backfill = "easy"}
"""
T_975_4 = 2.776445


@pytest.fixture
def ran(campaign_of: Make) -> tuple[Plan, dict[str, Record]]:
    planned = plan(campaign_of(GRID))
    return planned, {cell.id: attempt(cell) for cell in planned.cells}


def test_the_tables_have_a_row_for_each_cell(
    ran: tuple[Plan, dict[str, Record]], tmp_path: Path
) -> None:
    planned, records = ran
    paths = write_tables(planned, records, tmp_path)
    assert len(paths) == 6
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    frame = results_frame(planned, records)
    assert list(frame["id"]) == [cell.id for cell in planned.cells]
    assert len(frame) == 2 * (2 + 3) * 2 * 5
    assert set(METRICS) <= set(frame.columns)
    row = frame.iloc[7]
    record = records[row["id"]]
    assert row["wait_mean_s"] == record["metrics"]["wait_mean_s"]
    assert row["order"] == record["axes"]["order"]
    no_effect = frame[frame["estimator"] == "requested"]
    assert no_effect[["correction", "roles", "guard_s", "learn"]].isna().all(axis=None)
    guards = frame[frame["estimator"] == "last-two"]["guard_s"]
    assert set(guards.dropna()) == {600}
    assert guards.isna().sum() == 40
    parquet = pd.read_parquet(tmp_path / "results.parquet")
    pd.testing.assert_frame_equal(parquet, frame)
    by_csv = pd.read_csv(tmp_path / "results.csv")
    assert by_csv["wait_max_s"].tolist() == frame["wait_max_s"].tolist()
    assert parquet.dtypes["seed"] == "Int64"


def test_means_intervals_and_gains_are_those_of_the_rows(
    ran: tuple[Plan, dict[str, Record]],
) -> None:
    planned, records = ran
    frame = results_frame(planned, records)
    keys = ["order", "backfill", "estimator", "guard_s"]
    for summary in summaries(planned, records, ["wait_mean_s", "utilization_arrivals"]):
        here = frame[
            (frame["interarrival_factor"] == summary.interarrival_factor)
            & (frame["log"] == summary.log)
        ].set_index("seed")
        base = here[
            (here["order"] == "fcfs")
            & (here["backfill"] == "easy")
            & (here["estimator"] == "requested")
        ][summary.metric]
        own = here
        for key in keys:
            value = summary.policy[key]
            own = own[own[key].isna() if value in (None, "off") else own[key] == value]
        values = own[summary.metric].astype(float).tolist()
        assert summary.seeds == len(values) == 5
        assert summary.mean == pytest.approx(statistics.mean(values))
        half = T_975_4 * statistics.stdev(values) / 5**0.5
        assert summary.interval is not None
        assert summary.interval.high - summary.interval.low == pytest.approx(2 * half, rel=1e-5)
        if summary.policy == planned.baseline:
            assert summary.gain is None
            continue
        sign = 1 if summary.metric == "wait_mean_s" else -1
        gains = (sign * (base - own[summary.metric]) / base).astype(float)
        assert summary.gain == pytest.approx(gains.mean())
        assert summary.gain_interval is not None
        middle = (summary.gain_interval.low + summary.gain_interval.high) / 2
        assert middle == pytest.approx(gains.mean())


def test_the_best_is_marked_with_what_is_like_it(ran: tuple[Plan, dict[str, Record]]) -> None:
    planned, records = ran
    for metric in ("wait_mean_s", "utilization_arrivals"):
        found = [s for s in summaries(planned, records, [metric]) if s.interarrival_factor == 1]
        means = {s.label: s.mean or 0.0 for s in found}
        best = [s for s in found if s.best]
        choose = min if metric == "wait_mean_s" else max
        assert {s.mean for s in best} == {choose(means.values())}
        assert all(s.like_best for s in best)
        assert not all(s.like_best for s in found)
    table = summary_frame(planned, summaries(planned, records))
    assert len(table) == 2 * 10 * len(METRICS)
    assert not table[table["metric"] == "jobs"]["best"].any()


def test_gains_are_of_the_seeds_that_both_have(campaign_of: Make) -> None:
    planned = plan(campaign_of('[grid]\norder = ["fcfs", "sjf"]\nseeds = 4'))
    records = {cell.id: attempt(cell) for cell in planned.cells}
    for cell in planned.cells:
        if (cell.axes["order"], cell.axes["seed"]) in (("fcfs", 2), ("sjf", 3)):
            records[cell.id] = failure(cell, "boom")
    frame = results_frame(planned, records).set_index(["order", "seed"])["wait_mean_s"]
    (sjf,) = [s for s in summaries(planned, records, ["wait_mean_s"]) if s.gain is not None]
    gains = [1 - frame["sjf", seed] / frame["fcfs", seed] for seed in (1, 4)]
    assert sjf.seeds == 3
    assert sjf.gain == pytest.approx(np.mean(gains))
    assert sjf.gain_interval is None
    assert failures_frame(planned, records)["error"].tolist() == ["boom", "boom"]


def test_labels_name_what_varies(campaign_of: Make) -> None:
    def labels(text: str) -> list[str]:
        planned = plan(campaign_of(text))
        return list(dict.fromkeys(policy_label(planned, cell.policy) for cell in planned.cells))

    assert labels("") == ["fcfs / easy"]
    assert labels('[grid]\norder = ["sjf", "wfp"]') == ["sjf", "wfp"]
    assert labels(
        '[grid]\nestimator = ["requested", "last-two"]\nguard_s = ["off", 60]\nlearn=[true,false]'
    ) == [
        "requested",
        "last-two / learning / no guard",
        "last-two / learning / guard 60 s",
        "last-two / history only / no guard",
        "last-two / history only / guard 60 s",
    ]


def test_the_report_has_what_matters(ran: tuple[Plan, dict[str, Record]], tmp_path: Path) -> None:
    planned, records = ran
    path = write_report(planned, records, tmp_path)
    text = path.read_text()
    plain = re.sub(r"<[^>]+>", "", text)
    assert "100 of 100 cells done." in plain
    for heading in ("In short", "Against the load", "made", "What it cost", "What was declared"):
        assert f">{heading}</h2>" in text
    found = summaries(planned, records, ["wait_mean_s"])
    best = next(s for s in found if s.best and s.interarrival_factor == 1)
    short = text[text.index("In short") : text.index("Against the load")]
    assert f">{best.label}<" in short
    assert f"{100 * (best.gain or 0):+.1f}%" in short
    assert "fcfs / easy / requested, seed by seed" in plain
    assert "collapsed" in plain
    assert "last-two" in plain
    # Self-contained: nothing is fetched.
    assert not re.search(r'(src|href)="(?!data:)', text)
    pictures = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {"matrix-made-at-factor-1.png", "load-wait_mean_s.png"} <= pictures
    assert all((tmp_path / "plots" / name).read_bytes()[:4] == b"\x89PNG" for name in pictures)


def test_an_oracle_is_called_one(campaign_of: Make, tmp_path: Path) -> None:
    planned = plan(campaign_of('[grid]\norder = "sjf"\nestimator = ["requested", "actual"]'))
    records = {cell.id: attempt(cell) for cell in planned.cells}
    text = write_report(planned, records, tmp_path).read_text()
    short = text[text.index("In short") : text.index("What it cost")]
    requested, actual = (records[c.id]["metrics"]["wait_mean_s"] for c in planned.cells)
    assert actual < requested
    assert short.index(">actual, an oracle<") < short.index(">requested<")


def test_a_report_of_what_is_not_finished_and_of_what_failed(
    campaign_of: Make, tmp_path: Path
) -> None:
    planned = plan(campaign_of('[grid]\norder = ["fcfs", "sjf", "wfp"]\nseeds = 0'))
    first, second, _ = planned.cells
    records = {
        first.id: attempt(first),
        second.id: failure(second, "ended <badly>", trace="Traceback: here & there"),
    }
    text = write_report(planned, records, tmp_path).read_text()
    assert "1 of 3 cells done" in text
    assert "1 failed" in text
    assert "1 still to run" in text
    assert "ended &lt;badly&gt;" in text
    assert "here &amp; there" in text
    assert "there are no intervals" in text
    nothing = {second.id: records[second.id]}
    assert "0 of 3 cells done" in write_report(planned, nothing, tmp_path).read_text()


def test_too_few_things_make_no_picture(campaign_of: Make) -> None:
    planned = plan(campaign_of("[grid]\nseeds = 0"))
    found = summaries(planned, {c.id: attempt(c) for c in planned.cells})
    assert matrix_axes(planned) is None
    assert plot_matrix(planned, found, "made", 1.0) is None
    assert plot_gains(planned, found, "made", 1.0) is None
    assert plot_load(planned, found, "wait_mean_s") is None
    assert plot_tail(planned, found, "made", 1.0) is None


def test_pictures_show_the_figures(ran: tuple[Plan, dict[str, Record]]) -> None:
    planned, records = ran
    found = summaries(planned, records)

    def texts(figure: Figure | None) -> list[str]:
        assert figure is not None
        return [text.get_text() for axes in figure.axes for text in axes.texts]

    assert matrix_axes(planned) == ("order", "backfill")
    shown = texts(plot_matrix(planned, found, "made", 1.0))
    of_wait = [s for s in found if s.metric == "wait_mean_s" and s.interarrival_factor == 1]
    for summary in of_wait:
        assert any(text.startswith(written(summary.mean, "s")) for text in shown)
    figure = plot_load(planned, found, "wait_mean_s")
    assert figure is not None
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    for summary in of_wait:
        assert summary.mean in np.asarray(lines[summary.label].get_ydata()).tolist()
    left, right = axes.get_xlim()
    assert left > right


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "–"),
        (float("nan"), "s", "–"),
        (0, "s", "0.00 s"),
        (59, "s", "59.0 s"),
        (90, "s", "1.50 min"),
        (3_600, "s", "1.00 h"),
        (200_000, "s", "2.31 d"),
        (0.7213, "share", "72.1%"),
        (12_345, "jobs", "12,345"),
        (44.512, "ratio", "44.5"),
        (208_475, "ratio", "208,475"),
    ],
)
def test_values_are_written_for_people(value: float | None, unit: str, text: str) -> None:
    assert written(value, unit) == text
