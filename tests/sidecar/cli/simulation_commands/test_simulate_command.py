"""``foretime simulate``: its tables and files, and one clear line for wrong input."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from foretime_sidecar.replays.simulate_export import CSV_COLUMNS, JSON_FORMAT
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import (
    EstimatedSchedule,
    estimator_of,
    simulate_with_estimator,
)
from foretime_sim.engine.schedule import ScheduleError
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.swf import read_swf
from foretime_sim.policies.families import Backfill, Planning, with_settings
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.policies.policy_switching import PolicySwitching
from foretime_sim.scores.metrics import METRICS, score
from foretime_sim.scores.start_promises import PROMISE_METRICS

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def found(run: Run, log: Path) -> Callable[..., dict[str, Any]]:
    """Simulate the log with options; give what JSON says."""

    def call(*options: object) -> dict[str, Any]:
        code, out, err = run("simulate", log, "--json", *options)
        assert (code, err) == (0, "")
        document: dict[str, Any] = json.loads(out)
        return document

    return call


def test_switched_orders_are_simulated_where_they_can_be(
    run: Run, log: Path, found: Callable[..., dict[str, Any]]
) -> None:
    orders = ("--order", "sjf,dynp,dynp-basic", "--backfill", "easy,planning")
    policies = {policy["name"]: policy for policy in found(*orders)["policies"]}
    assert list(policies) == [
        *("sjf easy", "sjf planning", "dynp-advanced-artww planning", "dynp-basic planning")
    ]
    assert policies["sjf planning"]["switching"] is None
    workload, _ = workload_of_log(read_log(log))
    expected = simulate(workload, Policy(backfill=Planning(PolicySwitching())))
    counted = expected.switching
    assert counted is not None
    told = policies["dynp-advanced-artww planning"]["switching"]
    assert told["tries"] == counted.tries > 10
    assert told["mean_backlog"] == pytest.approx(counted.mean_backlog)
    assert told["same_policy"] == counted.same_policy
    assert told["cases"] == counted.cases
    assert [order["order"] for order in told["orders"]] == ["fcfs", "sjf", "ljf"]
    assert [order["jobs_started"] for order in told["orders"]] == counted.jobs_started.tolist()
    assert policies["dynp-basic planning"]["switching"]["cases"] is None
    code, out, _ = run("simulate", log, *orders)
    assert code == 0
    assert "Switching between queue orders" in out
    code, _, err = run("simulate", log, "--order", "dynp", "--backfill", "easy,planning")
    assert (code, err.count("\n")) == (2, 1)
    assert "--backfill easy: nothing would run so" in err
    code, _, err = run("simulate", log, "--order", "dynp")
    assert (code, err.count("\n")) == (2, 1)
    assert "only under the backfilling planning, not easy" in err
    code, _, err = run("simulate", log, "--order", "dynp/orders=fcfs+priority")
    assert (code, err.count("\n")) == (2, 1)
    assert "a log has no priorities" in err


def test_all_policies_stand_in_one_table(run: Run, log: Path) -> None:
    code, out, err = run("simulate", log, "--order", "fcfs,sjf", "--backfill", "easy,none")
    assert (code, err) == (0, "")
    for words in (
        "300 jobs, 256 processors",
        "estimator requested",
        "AVEbsld",
        "Gains over fcfs easy",
        "no intervals",
    ):
        assert words in out
    rows = [line for line in out.splitlines() if line.startswith(("fcfs", "sjf"))]
    assert [row.split("  ")[0] for row in rows] == [
        *("fcfs easy", "fcfs none", "sjf easy", "sjf none"),
        *("fcfs none", "sjf easy", "sjf none"),
    ]
    assert "…" not in out


def test_the_figures_are_the_engines(found: Callable[..., dict[str, Any]], log: Path) -> None:
    """Every order with every backfilling and estimator, as calls of the library find them."""
    document = found(
        *("--order", "fcfs", "--order", "wfp", "--backfill", "easy,easy-sjbf"),
        *("--estimator", "requested,last-two", "--correction", "incremental", "--guard", "10"),
    )
    jobs = workload_of_log(read_log(log))[0]
    policies = iter(document["policies"])
    for order in (Order.FCFS, Order.WFP):
        for backfill in (Backfill.EASY, Backfill.EASY_SJBF):
            policy = Policy(
                order, with_settings(backfill, guard=Guard(600)), Correction.INCREMENTAL
            )
            for name in ("requested", "last-two"):
                listed = next(policies)
                assert listed["name"] == f"{order} {backfill} {name}"
                estimator = estimator_of(name, jobs)
                expected = score(jobs, simulate_with_estimator(jobs, policy, estimator)).to_dict()
                values = {key: metric["value"] for key, metric in listed["metrics"].items()}
                assert values == expected
    assert next(policies, None) is None


def test_depths_and_compressions_are_crossed_where_they_mean_something(
    found: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    claims = tmp_path / "claims.csv"
    claims.write_text("start,duration,processors\n0,86400,200\n")
    options = ("--backfill", "none,easy,conservative", "--depth", "1,3", "--guard", "60")
    document = found(
        *options, "--compression", "reservation-order,one-by-one", "--check",
        "--reservations", claims,
    )  # fmt: skip
    told = [(p["name"], p["depth"], p["compression"]) for p in document["policies"]]
    assert told == [
        ("none", 1, "reservation-order"),
        ("easy depth 1", 1, "reservation-order"),
        ("easy depth 3", 3, "reservation-order"),
        ("conservative reservation-order", 1, "reservation-order"),
        ("conservative one-by-one", 1, "one-by-one"),
    ]
    assert document["options"]["reservations"] == str(claims)
    free = found(*options)
    for with_claims, without in zip(document["policies"][:3], free["policies"][:3], strict=True):
        key = "wait_mean_s"
        assert with_claims["metrics"][key]["value"] > without["metrics"][key]["value"]


def test_slack_settings_are_crossed_for_slack_alone(found: Callable[..., dict[str, Any]]) -> None:
    backfills = ("--backfill", "conservative,slack", "--average-wait", "1:00:00")
    axes = ("--slack-factor", "0,3", "--insertion-order", "ast,dc", "--slack-weights", "1,.5,1,0")
    policies = found(*backfills, *axes)["policies"]
    assert [policy["name"] for policy in policies] == [
        "conservative",
        *(f"slack SF {factor} {order}" for factor in (0, 3) for order in ("ast", "dc")),
    ]
    assert policies[0]["slack"] is None
    assert policies[4]["slack"] == (
        "factor 3, average wait 3600 s, insertion order dc, weights 1,0.5,1,0, overruns kill"
    )
    waits = [policy["metrics"]["wait_mean_s"]["value"] for policy in policies]
    assert len(set(waits)) > 2


def test_jobs_that_overrun_are_killed_or_extended(run: Run, tmp_path: Path) -> None:
    """Of 90 s asked for 100 are needed: killed, or two extensions of 9 s each."""
    log = tmp_path / "log.swf"
    jobs = ["1 0 0 100 4 -1 -1 4 90", "2 5 0 10 4 -1 -1 4 10"]
    text = "".join(f"{job} -1 1 1 1 1 1 -1 -1 -1\n" for job in jobs)
    log.write_text(f"; MaxProcs: 4\n{text}")
    for overruns, wait_s in (("kill", 85), ("extend", 95)):
        chosen = ("--backfill", "slack", "--average-wait", "100", "--overruns", overruns)
        code, out, _ = run("simulate", log, *chosen, "--keep-overruns", "--json")
        assert code == 0
        waits = json.loads(out)["policies"][0]["metrics"]["wait_mean_s"]["value"]
        assert waits == wait_s / 2


def test_overruns_that_are_cut_are_refused(run: Run, log: Path) -> None:
    code, out, err = run("simulate", log, "--backfill", "slack", "--overruns", "extend")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "give --keep-overruns, too" in err


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_switching_is_shown_whole(
    run: Run, log: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    orders = "dynp,dynp-simple/slackness=0.05/orders=fcfs+sjf+ljf+wfp"
    code, out, _ = run("simulate", log, "--backfill", "planning", "--order", orders)
    assert code == 0
    assert "\u2026" not in out
    shown = out[out.index("Switching between queue orders") :]
    assert max(len(line) for line in shown.splitlines()) <= width
    assert len(re.findall(r"\bwfp +\d", shown)) == (2 if width == 200 else 1)


@pytest.mark.parametrize("width", [60, 90, 132])
def test_no_figure_is_cut_in_a_narrow_terminal(
    run: Run, log: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = run("simulate", log, "--backfill", "easy,conservative", "--repeat", "3")
    assert code == 0
    assert "…" not in out
    assert ("Left out for want of columns" in out) == (width < 132)


def test_json_and_csv_say_the_same(
    run: Run, found: Callable[..., dict[str, Any]], log: Path, tmp_path: Path
) -> None:
    options = ("--backfill", "easy,none", "--repeat", "3", "--classes", "wait_mean_s")
    document = found(*options, "--csv", tmp_path / "out.csv")
    assert document["format"] == JSON_FORMAT
    assert (document["repeats"], document["interval_method"]) == (3, "t")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert len(rows) == 2 * len(METRICS)
    by_name = {policy["name"]: policy for policy in document["policies"]}
    for row in rows:
        told = by_name[row["policy"]]["metrics"][row["metric"]]
        for column in ("value", "value_low", "value_high", "gain", "gain_low", "gain_high"):
            assert row[column] == ("" if told[column] is None else str(told[column]))
        assert len(told["runs"]) == 3
        if told["value_low"] is not None:
            assert told["value_low"] <= told["value"] <= told["value_high"]
    easy, none = document["policies"]
    assert easy["metrics"]["wait_mean_s"]["gain"] is None
    pairs = zip(
        easy["metrics"]["wait_mean_s"]["runs"], none["metrics"]["wait_mean_s"]["runs"], strict=True
    )
    gain = sum((before - after) / before for before, after in pairs) / 3
    assert none["metrics"]["wait_mean_s"]["gain"] == pytest.approx(gain)
    whole = next(c for c in easy["classes"] if c["size_class"] == c["length_class"] == "all")
    assert whole["value"] == pytest.approx(easy["metrics"]["wait_mean_s"]["value"])
    code, out, _ = run("simulate", log, *options)
    assert code == 0
    assert "very large" in out
    assert "±" in out


def test_workers_find_the_same(found: Callable[..., dict[str, Any]]) -> None:
    options = ("--estimator", "requested,last-two", "--repeat", "3")
    assert [
        [metric["runs"] for metric in policy["metrics"].values()]
        for policy in found(*options)["policies"]
    ] == [
        [metric["runs"] for metric in policy["metrics"].values()]
        for policy in found(*options, "--workers", "2")["policies"]
    ]


def test_the_schedule_is_written_as_swf(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.swf.gz"
    assert run("simulate", log, "--order", "sjf", "--swf-out", out)[0] == 0
    jobs = workload_of_log(read_log(log))[0]
    schedule = simulate(jobs, Policy(order=Order.SJF))
    written = read_swf(out)
    np.testing.assert_array_equal(written.wait.filled(-1), schedule.start_time - jobs.submit_time)
    assert "order sjf" in written.comments[0]


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_the_plot_is_drawn(run: Run, log: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"waits{ending}"
    assert run("simulate", log, "--backfill", "easy,none", "--plot", path)[0] == 0
    assert path.stat().st_size > 1_000


def test_options_reach_the_run(found: Callable[..., dict[str, Any]]) -> None:
    document = found("--head", "100", "--warm-up", "60", "--tau", "60", "--roles", "110")
    assert document["workload"]["simulated_jobs"] == 100
    assert document["workload"]["scored_jobs"] < 100
    assert document["settings"]["tau_s"] == 60
    assert document["options"]["roles"] == "110"
    paper = found("--estimator", "combined", "--rule", "tang2010")
    assert paper["options"]["rule"] == "tang2010"


def test_generate_needs_no_log(run: Run) -> None:
    code, out, _ = run("simulate", "--generate", "lublin2003", "--jobs", "50", "--load", "0.5")
    assert code == 0
    assert "generated, not real" in out


@pytest.mark.parametrize("command", ["simulate", "replay"])
def test_estimates_are_drawn_in_a_log_without_requests(
    run: Run, tmp_path: Path, command: str
) -> None:
    log = tmp_path / "none.swf"
    rows = (f"{n} {60 * n} -1 {20 * n} 1 -1 -1 1 -1 1 1 1 -1 -1 -1 -1 -1 -1" for n in range(1, 41))
    log.write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    code, _, err = run(command, log)
    assert code == 2
    assert "none of the 40 jobs has a requested time" in err
    drawn = ("--warm-up", "0", "--estimates", "tsafrir", "--longest-estimate", "6:00:00")
    code, out, err = run(command, log, *drawn)
    assert (code, err) == (0, "")
    assert "40 of 40 jobs kept" in out
    assert "Tsafrir" in " ".join(out.split())
    code, _, err = run(command, log, "--longest-estimate", "6:00:00")
    assert (code, "--longest-estimate is for --estimates" in err) == (2, True)


def test_check_tells_a_broken_law(run: Run, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run("simulate", log, "--check", "--estimator", "requested,last-two")
    assert code == 0
    assert "Conservation laws checked" in out

    def broken(*_: object) -> None:
        raise ScheduleError("made: job 1 started before its submission")

    monkeypatch.setattr("foretime_sim.engine.estimated_run.check_schedule", broken)
    assert run("simulate", log, "--estimator", "last-two")[0] == 0
    code, _, err = run("simulate", log, "--estimator", "last-two", "--check")
    assert (code, err) == (1, "foretime: made: job 1 started before its submission\n")


def test_replay_checks_too(run: Run, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    monkeypatch.setattr(
        "foretime_sidecar.replays.replay.check_schedule", lambda *of: checked.append(len(of[0]))
    )
    options = ("replay", log, "--head", "40", "--warm-up", "0")
    assert run(*options)[0] == 0
    assert checked == []
    assert run(*options, "--check")[0] == 0
    assert checked == [40]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--slack-factor", "3"), ": --slack-factor is 3.0: only slack backfilling has a slack"),
        (("--slack-weights", "1,1,1,0"), ": --slack-weights is 1,1,1,0: only slack backfilling"),
        (("--average-wait", "1:00"), ": --average-wait is 60: only slack backfilling has a slack"),
        (("--backfill", "slack", "--slack-factor", "much"), "--slack-factor much: give a number"),
        (("--backfill", "slack", "--slack-factor", "-1"), ": --slack-factor is -1.0: give 0"),
        (("--backfill", "slack", "--insertion-order", "asc"), "did you mean 'ast'?"),
        (("--backfill", "slack", "--slack-weights", "1,1"), "--slack-weights 1,1: give four"),
        (("--backfill", "slack", "--average-wait", "long"), "--average-wait: 'long'"),
        (("--order", "fifo"), "unknown queue order 'fifo'; did you mean 'fcfs'?"),
        (("--order", "fcfs,priority"), "a log has no priorities"),
        (("--order", "fcfs,,sjf"), "--order fcfs,,sjf: there is an empty name"),
        (("--order", ""), "an empty word after --order"),
        (("--order", "fcfs", "--order", "sjf,fcfs"), "fcfs,sjf,fcfs: fcfs is given twice"),
        (("--depth", "1,1"), "--depth 1,1: 1 is given twice"),
        (
            ("--depth", "2", "--backfill", "first-fit"),
            "the kinds of easy have a depth, not first-fit",
        ),
        (
            ("--depth", "1,2", "--backfill", "none,planning"),
            "the kinds of easy have a depth, not none",
        ),
        (("--compression", "one-by-one"), "only conservative backfilling compresses, not easy"),
        (("--backfill", "easyy"), "unknown backfill"),
        (("--estimator", "last-tow"), "did you mean 'last-two'"),
        (("--estimator", "blend"), "blend needs a number"),
        (("--roles", "12"), "unknown roles"),
        (("--depth", "many"), "--depth many: give a whole number"),
        (("--depth", "0"), ": --depth is 0: give 1 or more"),
        (("--compression", "zip"), "unknown compression 'zip'"),
        (("--backfill", "planning", "--guard", "60"), "the starvation guard is for"),
        (("--reservations", "/no/such.csv"), "/no/such.csv: there is no such file"),
        (("--guard", "soon"), "--guard: 'soon' is not a duration"),
        (("--warm-up", "999-0"), "none of 300 jobs is left to score"),
        (("--repeat", "0"), "0 repeats: give at least 1"),
        (("--workers", "0"), "0 workers: give at least 1"),
        (("--head", "0"), "--head 0"),
        (("--classes", "mood"), "--classes mood: take one of"),
        (("--swf-out", "x.swf", "--repeat", "2"), "writes one schedule, not 2"),
        (("--swf-out", "x.swf", "--order", "fcfs,sjf"), "writes one schedule, not 2"),
        (("--csv", "no/such/folder/x.csv"), "can't be written; there is no such folder"),
        (("--csv", "/"), "is a folder"),
        (("--csv=",), "an empty word after --csv; write a value"),
        (("--unknown-users", "refuse"), "--unknown-users refuse: no site here names users"),
        (("--plot", "waits.gif"), "end it in .png or .svg"),
        (("--jobs", "5"), "--jobs is for --generate"),
        (("--generate", "lublin2003"), "both given: leave one out"),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    run: Run, log: Path, options: tuple[str, ...], says: str
) -> None:
    code, out, err = run("simulate", log, *options)
    assert (code, out) == (2, "")
    assert err.startswith("foretime: ")
    assert err.count("\n") == 1
    assert says in err


def test_the_log_is_not_written_over(run: Run, log: Path) -> None:
    code, _, err = run("simulate", log, "--swf-out", log)
    assert code == 2
    assert "this is the log" in err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ("; MaxProcs: 8\n", "the log has no jobs"),
        ("1 0 0 10 4 -1 -1 4 -1 -1 1 1 1 -1 -1 -1 -1 -1\n", "--missing-request"),
        ("1 0 0 10 4 -1 -1 4 x -1 1 1 1 -1 -1 -1 -1 -1\n", "bad.swf:1: field 9 (requested time)"),
    ],
)
def test_wrong_logs_are_refused(run: Run, tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "bad.swf"
    path.write_text(content)
    code, _, err = run("simulate", path, "--processors", "8")
    assert code == 2
    assert says in err


def test_a_log_of_one_job_is_simulated(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "one.swf"
    path.write_text("1 5 0 10 4 -1 -1 4 20 -1 1 1 1 -1 -1 -1 -1 -1\n")
    options = ("--processors", "8", "--backfill", "easy,none", "--check")
    code, out, _ = run("simulate", path, *options)
    assert code == 0
    assert "1 job, 8 processors" in out
    code, out, _ = run("simulate", path, *options, "--json")
    metrics = json.loads(out)["policies"][1]["metrics"]
    assert metrics["wait_mean_s"]["value"] == 0
    assert metrics["wait_mean_s"]["gain"] is None
    assert metrics["makespan_s"]["value"] == 10
    assert math.isclose(metrics["utilization_makespan"]["value"], 0.5)


def test_a_full_disk_is_one_line(run: Run, log: Path) -> None:
    code, _, err = run("simulate", log, "--csv", "/dev/full")
    assert code == 2
    assert "can't write it" in err


def test_estimated_schedules_are_scored_like_any(log: Path) -> None:
    """t_sched of a second: nearly every job outlives it, and is counted."""
    jobs = workload_of_log(read_log(log))[0]
    schedule = simulate(jobs, Policy(), np.ones(len(jobs), dtype=np.int64))
    scores = score(jobs, EstimatedSchedule(schedule, np.ones(len(jobs), dtype=np.int64)))
    assert scores.outlived_jobs == int((jobs.actual_runtime > 1).sum())


def test_promised_starts_are_told_of_policies_that_promise(
    run: Run, log: Path, tmp_path: Path
) -> None:
    path = tmp_path / "figures.csv"
    options = ("--backfill", "easy,conservative,slack", "--average-wait", "01:00:00")
    code, out, err = run("simulate", log, *options, "--csv", path)
    assert (code, err) == (0, "")
    table = out[out.index("Start no later than") :].splitlines()
    rows = [line.split() for line in table if line.startswith(("easy", "conservative", "slack"))]
    assert [row[0] for row in rows] == ["conservative", "slack"], "EASY promises nothing"
    assert all(row[1] == row[3] == "300" for row in rows), "all promised, all kept"
    with path.open(newline="") as file:
        lines = [row for row in csv.DictReader(file) if row["metric"] in PROMISE_METRICS]
    assert {row["policy"] for row in lines} == {"conservative", "slack"}
    policies = json.loads(run("simulate", log, *options, "--json")[1])["policies"]
    assert policies[0]["promises"] is None
    for policy in policies[1:]:
        values = {row["metric"]: row["value"] for row in lines if row["policy"] == policy["name"]}
        assert {key: float(value) for key, value in values.items()} == policy["promises"]
    early = [policy["promises"]["promise_margin_p50_s"] for policy in policies[1:]]
    assert early[0] < early[1], "of the slack some is left"


def test_a_broken_promise_is_explained(run: Run, log: Path) -> None:
    options = ("--backfill", "conservative", "--estimator", "last-two", "--repeat", 2)
    code, out, _ = run("simulate", log, *options)
    assert code == 0
    assert re.search(r"[0-9.]+ of 300 promised jobs started late, because [0-9.]+ ran longer", out)


def test_every_key_and_column_is_documented(
    found: Callable[..., dict[str, Any]], repository: Path
) -> None:
    page = (repository / "docs" / "outputs.md").read_text()
    document = found("--classes", "wait_mean_s", "--backfill", "conservative")
    policy = document["policies"][0]
    keys = {*document, *policy, *policy["metrics"]["wait_mean_s"], *policy["classes"][0]}
    keys |= {*document["workload"], *document["settings"], *CSV_COLUMNS, *policy["promises"]}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def test_ctrl_c_while_workers_begin_is_no_traceback() -> None:
    command = "simulate --generate lublin2003 -n 2000 --repeat 2000 --workers 2"
    process = subprocess.Popen(
        [Path(sys.executable).parent / "foretime", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    began = psutil.Process(process.pid)
    while not any("spawn_main" in " ".join(child.cmdline()) for child in began.children()):
        assert process.poll() is None
        time.sleep(0.002)
    time.sleep(0.1)  # it is in its imports
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (130, "")
