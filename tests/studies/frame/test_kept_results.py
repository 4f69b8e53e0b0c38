"""Results that are kept as they come, and not worked out again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.campaigns.store import CampaignStore
from foretime_studies.frame.kept_results import kept_results


@dataclass(frozen=True, slots=True)
class Made:
    """What is kept of a run."""

    name: str
    several: tuple[float, ...] = (0.5, 2.0)


def making(made: list[str], name: str) -> Callable[[], Made]:
    def make() -> Made:
        made.append(name)
        return Made(name)

    return make


def test_only_what_is_not_kept_is_made(tmp_path: Path) -> None:
    made: list[str] = []
    runs = {name: making(made, name) for name in "abc"}
    first = {name: runs[name] for name in "ab"}
    assert kept_results(first, Made, tmp_path, workers=2) == {"a": Made("a"), "b": Made("b")}
    told: list[int] = []
    found = kept_results(runs, Made, tmp_path, workers=1, progress=told.append)
    assert found == {name: Made(name) for name in "abc"}
    assert sorted(made) == ["a", "b", "c"]
    assert told == [2, 3]
    assert set(kept_results({}, Made, tmp_path, workers=1)) == set()


def test_what_came_before_a_failure_is_kept(tmp_path: Path) -> None:
    def fails() -> Made:
        raise ArithmeticError("no")

    made: list[str] = []
    runs = {"a": making(made, "a"), "b": fails, "c": making(made, "c")}
    with pytest.raises(ArithmeticError, match="no"):
        kept_results(runs, Made, tmp_path, workers=1)
    runs["b"] = making(made, "b")
    found = kept_results(runs, Made, tmp_path, workers=1)
    assert found["a"] == Made("a")
    assert made.count("a") == 1


def test_a_line_cut_short_is_made_again(tmp_path: Path) -> None:
    made: list[str] = []
    kept_results({"a": making(made, "a")}, Made, tmp_path, workers=1)
    path = CampaignStore(tmp_path).path
    path.write_text(path.read_text()[:-10])
    assert kept_results({"a": making(made, "a")}, Made, tmp_path, workers=1) == {"a": Made("a")}
    assert made == ["a", "a"]


def test_a_folder_is_for_one_study_at_a_time(tmp_path: Path) -> None:
    with CampaignStore(tmp_path).writing(), pytest.raises(InputError, match="running into"):
        kept_results({}, Made, tmp_path, workers=1)
