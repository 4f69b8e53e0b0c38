"""``foretime replay`` and ``foretime workload`` on a PBS accounting folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.logs.pbs_accounting_writer import write_pbs_accounting
from foretime_sim.models import lublin2003
from foretime_sim.scores.metrics import METRICS

Call = Callable[..., tuple[int, str, str]]
PBS = ("--mechanism", "pbs-soft-walltime")


@pytest.fixture(scope="module")
def accounting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated workload of 300 jobs as PBS would have accounted for it."""
    folder = tmp_path_factory.mktemp("pbs") / "accounting"
    write_pbs_accounting(lublin2003.generate(300, seed=3), folder)
    return folder


def test_an_accounting_folder_replays_through_the_pbs_hook(run: Call, accounting: Path) -> None:
    code, out, err = run(
        "replay", accounting, "--processors", 256, *PBS, "--beside", "recent-maximum",
        "--warm-up", "0", "--threshold", 3,
    )  # fmt: skip
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert "accounting: 300 jobs, 256 processors" in words
    assert "Scheduled as by OpenPBS" in words
    assert "scheduler pbs, scheme combined, rule production, mechanism pbs-soft-walltime," in words
    assert "The hook saw 300 submissions" in words
    assert "Beside recent-maximum in the hook's place" in words
    assert "HOOK ERRORS" not in words
    assert "Nobody was killed before the time they asked for." in words


def test_json_has_what_ran_beside(run: Call, accounting: Path) -> None:
    code, out, _ = run(
        "replay", accounting, "--processors", 256, *PBS, "--beside", "requested", "--json",
        "--warm-up", "0",
    )  # fmt: skip
    assert code == 0
    reply = json.loads(out)
    beside = reply["beside"]["requested"]
    assert list(beside) == list(METRICS)
    assert beside["wait_mean_s"]["baseline"] == reply["metrics"]["wait_mean_s"]["baseline"]
    assert beside["wait_mean_s"]["adjusted"] == beside["wait_mean_s"]["baseline"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--beside", "recent-maximum"), "give --mechanism pbs-soft-walltime, too"),
        ((*PBS, "--beside", "recent"), "did you mean"),
        ((*PBS, "--beside", "actual"), "needs the actual runtimes"),
        (("--columns", "a=b"), "--columns is for sacct and CSV"),
        (("--format", "swf"), "is a folder; name a log file in it"),
    ],
)
def test_wrong_options_are_refused(
    run: Call, accounting: Path, options: tuple[str, ...], said: str
) -> None:
    code, out, err = run("replay", accounting, "--processors", 256, *options)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_workload_commands_take_an_accounting_folder(
    run: Call, accounting: Path, tmp_path: Path
) -> None:
    code, out, _ = run("workload", "describe", accounting, "--processors", 256, "--json")
    assert code == 0
    (accounted,) = json.loads(out)["logs"]
    assert accounted["jobs"] == 300
    swf = tmp_path / "jobs.swf.gz"
    assert run("workload", "convert", accounting, swf)[0] == 0
    one = run("workload", "describe", swf, "--processors", 256, "--json")[1]
    (converted,) = json.loads(one)["logs"]
    assert converted["offered_load"] == accounted["offered_load"]
    code, _, err = run("workload", "describe", accounting)
    assert code == 2
    assert "--processors" in err


def test_the_plot_has_a_curve_for_what_ran_beside(
    run: Call, accounting: Path, tmp_path: Path
) -> None:
    drawn = tmp_path / "waits.svg"
    code, _, err = run(
        "replay", accounting, "--processors", 256, *PBS, "--beside", "recent-maximum",
        "--warm-up", "0", "--plot", drawn,
    )  # fmt: skip
    assert (code, err) == (0, "")
    text = drawn.read_text(encoding="utf-8")
    for label in ("without Foretime", "with Foretime", "recent-maximum in its place"):
        assert f"<!-- {label} -->" in text
