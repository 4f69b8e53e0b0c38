"""``foretime study``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.logs.swf import write_swf
from foretime_sim.models import intrepid_like
from foretime_sim.workloads.job_log import log_of_workload

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "small.swf.gz"
    write_swf(log_of_workload(intrepid_like.generate(600, load=1.1)), path)
    return path


def test_a_log_is_studied(run: Run, small: Path, tmp_path: Path) -> None:
    out_dir = tmp_path / "out"
    code, out, err = run("study", "tang2010", "--log", small, "-o", out_dir, "--repeat", "1")
    assert (code, err) == (0, "")
    assert "600 of 600 jobs kept" in " ".join(out.split())
    assert "Table III" in out
    assert "…" not in out
    document = json.loads((out_dir / "results.json").read_text())
    assert document["command"] == "foretime study tang2010 --log small.swf.gz --repeat 1"
    assert (out_dir / "figure10.svg").exists()


def test_a_log_runs_on_a_blue_gene(run: Run, small: Path, tmp_path: Path) -> None:
    command = ("study", "tang2010", "--log", small, "-o", tmp_path, "--repeat", "0")
    code, out, err = run(*command, "--machine", "intrepid", "--json")
    assert (code, err) == (0, "")
    printed = json.loads(out)
    assert "simulated on intrepid" in printed["notes"][0].lower()
    assert printed == json.loads((tmp_path / "results.json").read_text())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--log", "no.swf"), "there is no such file"),
        (("--processors", "5"), "--processors is for --log"),
        (("--machine", "no.toml"), "no.toml"),
        (("--log", "SMALL", "--processors", "5", "--machine", "intrepid"), "leave it out"),
        (("--log", "SMALL", "--months", "3"), "--months 3"),
        (("--repeat", "-1"), "--repeat"),
        (("--workers", "0"), "--workers"),
        (("-o", "FILE"), "is a file"),
        (("--log", "SMALL", "--processors", "100", "--machine", "flat"), "too few"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    run: Run, small: Path, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    named = {"FILE": str(file), "SMALL": str(small)}
    given = [named.get(word, word) for word in words]
    where = () if "-o" in words else ("-o", tmp_path / "out")
    code, _, err = run("study", "tang2010", *where, *given)
    assert code == 2
    assert says in err
