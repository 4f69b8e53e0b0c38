"""``foretime campaign`` as a person meets it: it runs, is killed, goes on, and says what failed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import psutil
import pytest
from distributed import LocalCluster
from foretime_sim.campaigns.cells import plan
from foretime_sim.campaigns.execution import execute, to_do
from foretime_sim.campaigns.file import read_campaign
from foretime_sim.campaigns.runs import attempt
from foretime_sim.campaigns.store import CELLS, CampaignStore

Run = Callable[..., tuple[int, str, str]]

SMALL = """
name = "Small"
[[logs]]
generate = "lublin2003"
name = "made"
jobs = 100
processors = 32
[grid]
order = ["fcfs", "sjf"]
seeds = 3
[scoring]
warm_up_s = 0
"""


@pytest.fixture
def campaign(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call ``foretime campaign`` with arguments; it says nothing meanwhile, however long."""
    monkeypatch.setattr("foretime_sidecar.cli.frame.campaign_progress._LINE_EVERY_S", 1e9)
    return lambda *arguments: run("campaign", *arguments)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_a_campaign_goes_from_check_to_report(campaign: Run, small: Path) -> None:
    folder = small.parent / "small-results"
    code, out, err = campaign("check", small)
    assert (code, err) == (0, "")
    assert "6 cells, 2 policies" in out
    assert "6 cells to run, 0 done; roughly 1 s on" in out
    assert not folder.exists()

    code, out, _ = campaign("report", small)
    assert code == 2

    code, out, err = campaign("run", small, "--workers", "1")
    assert (code, err) == (0, "")
    assert "6 of 6 cells done, 6 of them now" in out
    written = {path.name for path in folder.iterdir()}
    tables = {f"{t}.{s}" for t in ("results", "summary", "failures") for s in ("csv", "parquet")}
    assert written == {CELLS, "report.html", "plots"} | tables
    assert len(pd.read_parquet(folder / "results.parquet")) == 6

    code, out, _ = campaign("status", small, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["cells"] == told["done"] == 6
    assert (told["failed"], told["to_run"], told["failures"]) == (0, 0, [])

    (folder / "report.html").unlink()
    code, out, _ = campaign("report", small)
    assert (code, out.strip()) == (0, str(folder / "report.html"))
    assert (folder / "report.html").exists()

    code, out, _ = campaign("check", small)
    assert "all of them have been run" in out


def test_a_campaign_gives_the_same_figures_as_simulate(
    campaign: Run, run: Run, log: Path, tmp_path: Path
) -> None:
    options = ("--order", "sjf,wfp", "--backfill", "easy,planning", "--repeat", "3", "--json")
    code, out, _ = run("simulate", log, *options)
    assert code == 0
    direct = json.loads(out)["policies"]
    path = tmp_path / "both.toml"
    path.write_text(
        f'[[logs]]\npath = "{log}"\n[grid]\norder = ["sjf", "wfp"]\n'
        'backfill = ["easy", "planning"]\nseeds = 3\n'
    )
    assert campaign("run", path, "--workers", "1")[0] == 0
    results = pd.read_csv(tmp_path / "both-results" / "results.csv")
    for policy in direct:
        order, backfill = policy["name"].split()
        own = results[(results["order"] == order) & (results["backfill"] == backfill)]
        for metric, told in policy["metrics"].items():
            assert own.sort_values("seed")[metric].tolist() == told["runs"]


def test_every_key_of_the_json_is_told(campaign: Run, small: Path, repository: Path) -> None:
    page = (repository / "docs" / "campaigns.md").read_text()
    words = set(re.findall(r"`([a-z_]+)`", page))
    assert campaign("run", small, "--workers", "1")[0] == 0
    for command in ("run", "status", "report", "check"):
        code, out, _ = campaign(command, small, "--json")
        told = json.loads(out)
        assert code == 0
        assert told["cells"] == 6
        keys = {*told, *(told["logs"]["made"] if command == "check" else ())}
        assert keys <= words


def test_one_log_can_run_at_a_time(campaign: Run, small: Path) -> None:
    small.write_text(SMALL + '[[logs]]\ngenerate = "lublin2003"\nname = "other"\njobs = 100\n')
    code, out, _ = campaign("run", small, "--only", "other", "--workers", "1", "--json")
    told = json.loads(out)
    assert (code, told["cells"], told["executed"]) == (0, 6, 6)
    code, out, _ = campaign("status", small, "--json")
    assert json.loads(out)["to_run"] == 6
    code, out, _ = campaign("run", small, "--workers", "1", "--json")
    told = json.loads(out)
    assert (code, told["cells"], told["executed"]) == (0, 12, 6)
    code, _, err = campaign("run", small, "--only", "elsewhere")
    assert code == 2
    assert "no log 'elsewhere'; it has made, other" in err


def test_a_failing_cell_is_told_by_the_exit_code(
    campaign: Run, small: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.swf").write_text("; MaxProcs: 8\n1 2 3\n")
    small.write_text(SMALL + '[[logs]]\npath = "broken.swf"\n')
    code, out, err = campaign("run", small, "--workers", "1", "--json")
    told = json.loads(out)
    assert code == 1
    assert (told["done"], told["failed"]) == (6, 6)
    assert "broken.swf:2" in told["failures"][0]["error"]
    assert "6 cells failed" in err
    assert "broken.swf:2" in (tmp_path / "small-results" / "report.html").read_text()
    assert len(pd.read_csv(tmp_path / "small-results" / "failures.csv")) == 6
    code, out, _ = campaign("run", small, "--workers", "1", "--json")
    assert (code, json.loads(out)["executed"]) == (1, 0)
    # The log is mended: that makes other cells of it.
    (tmp_path / "broken.swf").write_text(
        "; MaxProcs: 8\n1 0 0 60 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1\n"
    )
    code, out, _ = campaign("run", small, "--workers", "1", "--json")
    told = json.loads(out)
    assert (code, told["executed"], told["failed"]) == (0, 6, 0)
    code, out, _ = campaign("status", small)
    assert code == 0
    assert "failed:" not in out


def test_a_campaign_runs_on_dask(campaign: Run, small: Path) -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        code, out, err = campaign("run", small, "--dask", cluster.scheduler_address, "--json")
    told = json.loads(out)
    assert (code, told["done"], told["executed"]) == (0, 6, 6)
    assert err.startswith("Dask's dashboard: ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--dask", "tcp://h:1", "--dask-jobqueue", "slurm"], "not both"),
        (["--dask", "tcp://h:1", "--workers", "2"], "Dask has its own"),
        (["--dask-jobqueue", "slurm"], "needs --workers"),
        (["--workers", "0"], "--workers = '0': give 1 or more"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    campaign: Run, small: Path, arguments: list[str], told: str
) -> None:
    code, out, err = campaign("run", small, *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("pyarrow", [], "foretime[campaign]"),
        ("distributed", ["--dask", "tcp://h:1"], "foretime[dask]"),
        ("dask_jobqueue", ["--dask-jobqueue", "pbs", "--workers", "2"], "foretime[dask]"),
    ],
)
def test_what_is_not_installed_is_said_before_anything_runs(
    campaign: Run,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    arguments: list[str],
    extra: str,
) -> None:
    from importlib.util import find_spec

    def without(name: str) -> object:
        return None if name == missing else find_spec(name)

    monkeypatch.setattr("foretime_sidecar.cli.simulation_commands.campaign.find_spec", without)
    code, _, err = campaign("run", small, *arguments)
    assert (code, err) == (1, f"foretime: this needs {missing}: pip install '{extra}'\n")
    assert not (small.parent / "small-results" / CELLS).exists()


SLOW = """
[[logs]]
generate = "lublin2003"
name = "made"
jobs = 2000
processors = 64
[grid]
estimator = ["last-two", "combined"]
seeds = 500
"""  # more than is done before it is ended, however slow the test is to do that


def started(path: Path) -> subprocess.Popen[str]:
    """Start a campaign as a process group of its own; wait until it has some cells."""
    command = [sys.executable, "-c", "from foretime_sidecar.cli import main; main()"]
    process = subprocess.Popen(
        [*command, "campaign", "run", str(path), "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What runs in the background ignores Ctrl-C, and so would its child.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    cells = path.parent / "slow-results" / CELLS
    while not (cells.exists() and cells.read_bytes().count(b"\n") >= 3):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def gone(pids: list[int]) -> bool:
    """Wait until none of some processes runs any more."""
    for _ in range(2000):
        if not any(psutil.pid_exists(pid) for pid in pids):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_loses_nothing_and_goes_on(
    tmp_path: Path, sent: signal.Signals
) -> None:
    path = tmp_path / "slow.toml"
    path.write_text(SLOW)
    process = started(path)
    workers = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    if sent is signal.SIGINT:
        os.killpg(process.pid, sent)  # as the terminal does
    else:
        process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert gone(workers)
    cells = tmp_path / "slow-results" / CELLS
    kept = [json.loads(line) for line in cells.read_text().splitlines()]
    assert 3 <= len(kept) < 1000
    assert all(record["status"] == "done" for record in kept)
    if sent is signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert f"interrupted with {len(kept)} of 1,000 cells kept" in err
        assert "Traceback" not in err
    planned = plan(read_campaign(path))
    left = to_do(planned, CampaignStore(tmp_path / "slow-results").records())
    assert {cell.id for cell in left} == {c.id for c in planned.cells} - {r["id"] for r in kept}
    # Few enough to be quick, and some of them new.
    path.write_text(SLOW.replace("seeds = 500", "seeds = [1, 2, 499, 500]"))
    planned = plan(read_campaign(path))
    store = CampaignStore(tmp_path / "slow-results")
    new = len(to_do(planned, store.records()))
    outcome = execute(planned, store, lambda cells: (attempt(cell) for cell in cells))
    assert (outcome.executed, len(outcome.records), outcome.failed) == (new, 8, [])
    assert 0 < new < 8


def test_the_example_runs(campaign: Run, tmp_path: Path, repository: Path) -> None:
    example = tmp_path / "generated.toml"
    shutil.copy(repository / "contrib" / "campaigns" / "generated.toml", example)
    code, out, err = campaign("run", example, "--workers", "1", "--json")
    told = json.loads(out)
    assert (code, err, told["failed"]) == (0, "", 0)
    assert told["cells"] == told["done"] == 2 * 3 * 3 * 8
    results = pd.read_parquet(tmp_path / "generated-results" / "results.parquet")
    assert len(results) == 144


def test_one_cause_is_told_once(campaign: Run, small: Path, tmp_path: Path) -> None:
    (tmp_path / "waits_for_two.py").write_text(
        "def order(queue, now):\n"
        "    if len(queue) > 1:\n"
        "        raise ValueError(f'{len(queue)} wait')\n"
        "    return queue.wait\n"
    )
    small.write_text(SMALL.replace('"sjf"', '"waits_for_two:order"'))
    code, out, err = campaign("run", small, "--workers", "1", "--json")
    failures = json.loads(out)["failures"]
    assert code == 1
    assert len(failures) == 3
    assert len({failure["error"] for failure in failures}) > 1
    assert err.count("failed") == 2  # once it is the policy that failed
    assert "foretime: 3 cells failed: order waits_for_two:order failed at" in err
    assert re.search(r"\(one of them is log made, order waits_for_two:order, seed \d\)\n$", err)
    assert "--retry-failed" not in err

    code, out, _ = campaign("status", small)
    assert code == 0
    assert out.count("waits_for_two.py:3") == 1
    assert "3 cells failed: " in out
    assert "--retry-failed runs them again" in out
    assert len(json.loads(campaign("status", small, "--json")[1])["failures"]) == 3

    code, _, err = campaign("run", small, "--workers", "1")
    assert code == 1
    assert "3 of these failed in an earlier run; --retry-failed runs such cells again" in err
    code, _, err = campaign("run", small, "--workers", "1", "--retry-failed")
    assert code == 1
    assert "earlier run" not in err


@pytest.mark.parametrize("command", ["run", "check", "status", "report"])
def test_a_file_where_the_results_belong_is_refused(
    campaign: Run, small: Path, command: str
) -> None:
    taken = small.parent / "empty.swf"
    taken.touch()
    code, out, err = campaign(command, small, "--output", taken)
    assert (code, out) == (2, "")
    assert err == f"foretime: --output {taken}: this is a file; name a folder\n"
    small.write_text(f'output = "empty.swf"{SMALL}')
    code, _, err = campaign(command, small)
    assert code == 2
    assert f"small.toml: output {taken}: this is a file; name a folder" in err


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("below", "says"), [("/proc/none/out", "can't be made"), ("taken/out", "taken is a file")]
)
def test_a_folder_that_can_not_be_made(
    campaign: Run, small: Path, command: str, below: str, says: str
) -> None:
    (small.parent / "taken").touch()
    code, out, err = campaign(command, small, "--output", small.parent / below)
    assert (code, out) == (2, "")
    assert "foretime: --output" in err
    assert says in err
    assert err.endswith("name another folder\n" if "made" in says else "name a folder\n")


def test_checking_leaves_no_folder(campaign: Run, small: Path) -> None:
    assert campaign("check", small, "--output", small.parent / "a" / "b")[0] == 0
    assert not (small.parent / "a").exists()
