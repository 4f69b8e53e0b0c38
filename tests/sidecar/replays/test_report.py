"""The report reads well, lines up, and says the bad news loudly; JSON and CSV say the same."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.arrays import BoolArray, Int8Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.replays.replay_export import (
    CLASS_CSV_COLUMNS,
    CSV_COLUMNS,
    class_rows,
    metric_rows,
    to_json,
)
from foretime_sidecar.replays.report import SECTIONS, WIDTH, render
from foretime_sim.scores.comparison import PAIRED_METRICS, PairedRun, compare
from foretime_sim.scores.job_classes import CLASS_METRICS
from foretime_sim.scores.metrics import METRICS
from foretime_sim.scores.plots import plot_waits, save
from foretime_sim.scores.replay_result import HookStatistics, ReplayResult
from foretime_sim.workloads.workload import Workload
from rich.console import Console

DAY_S = 86_400


@dataclass(frozen=True)
class Judged:
    start_time: Int64Array
    end_time: Int64Array
    started_by: Int8Array
    outlived: BoolArray
    scheduled_time: Int64Array
    used_up: BoolArray | None = None


def a_thousand_jobs() -> Workload:
    """One job every 100 minutes for ten weeks, of all sizes and lengths."""
    number = np.arange(1000, dtype=np.int64)
    return Workload(
        name="cluster-2026",
        machine_processors=4096,
        unix_start_time=None,
        job_id=number + 1,
        submit_time=number * 6000,
        processors=1 + number % 17,
        actual_runtime=300 + 60 * (number % 90),
        requested_time=3600 * (2 + number % 8),
    )


def run(workload: Workload, repeat: int) -> PairedRun:
    """Waits of up to 18 hours become a quarter shorter, but for every hundredth job's."""
    number = workload.job_id
    wait = 700 * (number % 96)
    shorter = np.where(number % 100 == 0, wait + 5000, wait * 3 // 4)
    planned = np.where(number % 3 == 0, workload.requested_time, workload.requested_time // 2)

    def judged(wait: Int64Array, planned: Int64Array) -> Judged:
        start = workload.submit_time + wait
        return Judged(
            start_time=start,
            end_time=start + workload.actual_runtime,
            started_by=(1 + number % 3).astype(np.int8),
            outlived=workload.actual_runtime > planned,
            scheduled_time=planned,
        )

    return PairedRun(judged(wait, workload.requested_time), judged(shorter, planned))


def replayed(repeats: int = 3) -> ReplayResult:
    return ReplayResult(
        workload_name="cluster-2026",
        machine_processors=4096,
        simulated_jobs=1000,
        workload_notes=("12 jobs dropped: no runtime", "3 jobs cut to their requested time"),
        options={"order": "fcfs", "backfill": "easy", "guard": "06:00:00", "repeat": str(repeats)},
        comparison=compare(a_thousand_jobs(), run, repeats=repeats),
        hook=HookStatistics(
            submissions=1000,
            adjusted=666,
            table_generations=70,
        ),
        guard_activations=7,
        wall_clock_s=1.25,
        peak_memory_bytes=200 * 2**20,
    )


def printed(result: ReplayResult, classes_of: str | None = None) -> str:
    console = Console(width=WIDTH, file=io.StringIO(), color_system=None)
    with console.capture() as captured:
        console.print(render(result, classes_of=classes_of))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def test_it_reads_as_it_did(repository: Path) -> None:
    expected = (repository / "tests" / "golden" / "replay_report.txt").read_text()
    assert printed(replayed(), "wait_mean_s") == expected


@pytest.mark.parametrize("repeats", [1, 3])
def test_it_fits_and_nothing_is_cut(repeats: int) -> None:
    text = printed(replayed(repeats), "turnaround_time_mean_s")
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    assert "…" not in text
    for keys in SECTIONS.values():
        for key in keys:
            assert METRICS[key].title in text


def test_a_narrow_terminal_gets_fewer_columns_and_no_cut_ones() -> None:
    page = io.StringIO()
    Console(width=80, file=page).print(render(replayed(3), width=80))
    text = page.getvalue()
    assert "…" not in text
    assert "ratio" not in text
    assert "need 100 columns" in text


def with_scores(result: ReplayResult, **figures: int) -> ReplayResult:
    """The same result with other figures in the adjusted run."""
    comparison = result.comparison
    metrics = dict(comparison.metrics)
    for key, figure in figures.items():
        metrics[key] = replace(metrics[key], adjusted=float(figure))
    return replace(result, comparison=replace(comparison, metrics=metrics))


def test_a_job_killed_early_is_told_loudly() -> None:
    result = replayed()
    assert "Nobody was killed before the time they asked for." in printed(result)
    text = printed(with_scores(result, killed_early_jobs=3))
    assert "KILLED EARLY: 3 jobs were ended before the time they asked for (0 without" in text


def test_starved_jobs_are_told() -> None:
    result = replayed()
    assert "No job starved (waited over 7-00:00:00 and over 10 times" in printed(result)
    text = printed(with_scores(result, starved_jobs=2))
    assert "Starved: 2 jobs waited over 7-00:00:00" in text


def test_hook_errors_are_told() -> None:
    result = replayed()
    assert result.hook is not None
    text = printed(replace(result, hook=replace(result.hook, errors=7)))
    assert "HOOK ERRORS: 7 calls failed." in text
    assert "The hook" not in printed(replace(result, hook=None))


def test_how_sure_it_is_told() -> None:
    assert "Means and intervals of 3 runs" in printed(replayed(3))
    assert "intervals by resampling its weeks" in printed(replayed(1))
    assert "2 runs with submissions moved by up to 60 s; intervals by" in printed(replayed(2))


def test_json_has_every_figure_and_no_nan() -> None:
    result = replayed()
    told = json.loads(json.dumps(to_json(result), allow_nan=False))
    assert list(told["metrics"]) == list(METRICS)
    assert list(told["paired"]) == list(PAIRED_METRICS)
    wait = told["metrics"]["wait_mean_s"]
    assert wait["gain"] == result.comparison["wait_mean_s"].gain
    assert len(wait["baseline_runs"]) == len(wait["adjusted_runs"]) == 3
    assert told["shortening"]["shortened_jobs"] == 667
    assert told["shortening"]["median_adjustment"] == 0.5
    assert told["jobs_per_s"] == 2 * 3 * 1000 / 1.25
    assert told["guard_activations"] == 7


def test_csv_rows_have_their_columns() -> None:
    result = replayed()
    rows = metric_rows(result)
    assert [row["metric"] for row in rows] == list(METRICS)
    assert all(tuple(row) == CSV_COLUMNS for row in rows)
    classes = class_rows(result)
    assert all(tuple(row) == CLASS_CSV_COLUMNS for row in classes)
    assert len(classes) == 25 * (len(CLASS_METRICS) - 1)


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_plots_are_drawn(tmp_path: Path, ending: str) -> None:
    path = (tmp_path / "waits").with_suffix(ending)
    save(plot_waits(replayed().comparison, "cluster-2026"), path)
    assert path.stat().st_size > 5000


def test_other_pictures_are_refused(tmp_path: Path) -> None:
    figure = plot_waits(replayed().comparison)
    with pytest.raises(InputError, match=r"end it in \.png or \.svg"):
        save(figure, tmp_path / "waits.bmp")
    with pytest.raises(InputError, match="can't write"):
        save(figure, tmp_path / "missing" / "waits.png")


def keys_of(value: object) -> set[str]:
    """Names of all fields in a JSON value, but for what sites and logs name themselves."""
    found: set[str] = set()
    if isinstance(value, dict):
        for key, inner in value.items():
            found.add(key)
            if key not in ("options",):
                found |= keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            found |= keys_of(inner)
    return found


def test_every_key_and_column_is_documented(repository: Path) -> None:
    documented = (repository / "docs" / "outputs.md").read_text()
    keys = keys_of(to_json(replayed())) | set(CSV_COLUMNS) | set(CLASS_CSV_COLUMNS)
    missing = sorted(key for key in keys if f"`{key}`" not in documented)
    assert not missing
