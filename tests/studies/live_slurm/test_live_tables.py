"""Runs as files, the tables that come of them, and the goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_studies.frame.tables import StudyTable
from foretime_studies.live_slurm.arms import ARMS
from foretime_studies.live_slurm.runs import Circumstances, LiveRun, RunName, kept_runs
from foretime_studies.live_slurm.tables import by_arm, tables

HOW = Circumstances("26.05.5", 0.5, 1, 3.2, raised=7, missed=1)


def run_of(arm: str, number: int, wait: int, workload: str = "heavy-1") -> LiveRun:
    submit = np.arange(4) * 10
    start = submit + wait
    return LiveRun(RunName(workload, "26.05", arm, number), submit, start, start + 100, HOW)


def tables_of(
    waits: Mapping[str, Sequence[int]],
    foretold: Sequence[float] = (),
    workload: str = "heavy-1",
) -> dict[str, StudyTable]:
    runs = [
        run_of(arm, number, wait, workload)
        for arm, each in waits.items()
        for number, wait in enumerate(each, 1)
    ]
    known = {(workload, "26.05", arm): foretold for arm in waits}
    return {table.key: table for table in tables(by_arm(runs, known))}


def met(table: StudyTable, goal: str, arm: str = "start") -> list[str]:
    names = [column.title for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.written]
    return [row["met"] for row in rows if row["goal"] == goal and row["arm"] == ARMS[arm].about]


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = run_of("start-one", 2, 50)
    written.write(written.name.path(tmp_path))

    (read,) = kept_runs(tmp_path)

    assert read.name == written.name
    assert read.circumstances == HOW
    assert read.wait.tolist() == [50] * 4
    assert read.slowdown.tolist() == [1.5] * 4
    assert read.end_s.tolist() == written.end_s.tolist()


@pytest.mark.parametrize("text", ["", "submit_s\n1\n", "# {}\nsubmit_s,start_s,end_s\n", "# 1\n"])
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, text: str) -> None:
    path = RunName("heavy-1", "26.05", "plain", 1).path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)

    with pytest.raises(InputError, match=r"plain-1\.csv: is not a run of live-slurm"):
        kept_runs(tmp_path)


def test_a_file_of_another_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "heavy-1" / "26.05" / "best-1.csv"
    path.parent.mkdir(parents=True)
    path.write_text("")

    with pytest.raises(InputError, match="is not the file of a run"):
        kept_runs(tmp_path)


def test_waits_stand_beside_both_plain_arms() -> None:
    table = tables_of({"plain": [100, 140], "plain-one": [100], "start": [60]}, [63.0])["waits"]
    names = [column.title for column in table.columns]
    start = dict(zip(names, table.written[2], strict=True))

    assert start["mean wait, s"] == "60"
    assert (start["beside plain"], start["beside one reservation"]) == ("-50%", "-40%")
    assert (start["foretold, s"], start["off by"]) == ("63", "+5%")
    assert dict(zip(names, table.written[0], strict=True))["mean wait, s"] == "120 (100 to 140)"


@pytest.mark.parametrize(
    ("start", "plain_met", "one_met"),
    [(75, "yes", "yes"), (76, "**no**", "yes"), (91, "**no**", "**no**")],
)
def test_a_heavy_workload_has_both_gains_as_goals(start: int, plain_met: str, one_met: str) -> None:
    goals = tables_of({"plain": [100], "plain-one": [100], "start": [start]})["goals"]

    assert met(goals, "mean wait beside plain") == [plain_met]
    assert met(goals, "mean wait beside one reservation") == [one_met]


@pytest.mark.parametrize(("start", "is_met"), [(105, "yes"), (110, "yes"), (111, "**no**")])
def test_a_light_workload_may_be_as_much_worse_as_plain_runs_differ(
    start: int, is_met: str
) -> None:
    waits = {"plain": [90, 110], "plain-one": [100], "start": [start]}

    goals = tables_of(waits, workload="light")["goals"]

    assert met(goals, "mean wait beside plain") == [is_met]


@pytest.mark.parametrize(
    ("foretold", "is_met"),
    [
        ([104.0], "yes"),
        ([96.0], "yes"),
        ([106.0], "**no**"),
        ([80.0, 128.0], "yes"),
        ([94.0], "**no**"),
    ],
)
def test_an_arm_is_foretold_within_five_percent(foretold: list[float], is_met: str) -> None:
    goals = tables_of({"start": [100]}, foretold)["goals"]

    assert met(goals, "foretold") == [is_met]


def test_an_arm_is_foretold_within_the_range_of_its_runs() -> None:
    assert met(tables_of({"start": [80, 120, 100]}, [119.0])["goals"], "foretold") == ["yes"]
    assert met(tables_of({"start": [80, 120, 100]}, [121.0])["goals"], "foretold") == ["**no**"]
