"""``foretime traces``; fetching itself is tested with `workload_archive`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.logs import workload_archive

Run = Callable[..., tuple[int, str, str]]


def test_the_list_has_every_log_and_where_it_comes_from(run: Run) -> None:
    code, out, _ = run("traces", "list")
    assert code == 0
    assert "ANL-Intrepid-2009-1" in out
    assert "68,936" in out
    _, out, _ = run("traces", "list", "--json", "--archive", "http://mirror.example")
    rows = json.loads(out)
    assert rows[0]["url"].startswith("http://mirror.example/l_anl_int/")


def test_get_says_what_is_wrong(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("traces", "get", "KTH", "-o", tmp_path)
    assert code == 2
    assert "did you mean 'KTH-SP2-1996-2.1-cln'" in err
    file = tmp_path / "file"
    file.write_text("")
    code, _, err = run("traces", "get", "KTH-SP2-1996-2.1-cln", "-o", file)
    assert code == 2
    assert "is a file" in err
    monkeypatch.setattr(workload_archive, "ATTEMPTS", 1)
    nowhere = ("--archive", "http://127.0.0.1:9")
    code, _, err = run("traces", "get", "KTH-SP2-1996-2.1-cln", "-o", tmp_path / "logs", *nowhere)
    assert code == 1
    assert "Is there a network" in err
    assert list((tmp_path / "logs").glob("*")) == []


@pytest.mark.traces
def test_get_verifies_what_is_there(run: Run, trace: Callable[[str], Path], tmp_path: Path) -> None:
    real = trace("KTH-SP2-1996-2.1-cln.swf.gz")
    (tmp_path / real.name).write_bytes(real.read_bytes())
    code, out, _ = run("traces", "get", "KTH-SP2-1996-2.1-cln", "-o", tmp_path)
    assert code == 0
    assert "is there already, verified, 28,476 jobs" in out
    _, out, _ = run("traces", "get", "KTH-SP2-1996-2.1-cln", "-o", tmp_path, "--json")
    assert json.loads(out)[0]["fetched"] is False
