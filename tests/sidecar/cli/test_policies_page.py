"""docs/policies.md: its files run as they stand there, and it has all that a policy sees."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from foretime_sidecar.cli import main
from foretime_sim.logs.swf import write_swf
from foretime_sim.models import lublin2003
from foretime_sim.policies import policy_views
from foretime_sim.workloads.job_log import log_of_workload

PAGE = Path(__file__).resolve().parents[3] / "docs" / "policies.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The page's files beside a log of a busy machine."""
    folder = tmp_path_factory.mktemp("policies")
    files = re.findall(r"```python\n(# (\w+\.py)\n.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert [name for _, name in files] == ["my_orders.py", "my_backfilling.py"]
    for text, name in files:
        (folder / name).write_text(text)
    (folder / "site.toml").write_text('order = "sjf"\n')
    jobs = lublin2003.generate(400, processors=64, seed=7, load=1.1)
    write_swf(log_of_workload(jobs), folder / "log.swf")
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def foretime(folder: Path, command: str, *options: str) -> tuple[int, str, str]:
    """Call a sub-command with the log in the folder; give exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    words = ["foretime", command, "log.swf", "--warm-up", "0", *options]
    with (
        chdir(folder),
        patch.object(sys, "argv", words),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as left,
    ):
        main()
    return int(left.value.code or 0), out.getvalue(), err.getvalue()


def report(folder: Path, *options: str) -> dict[str, Any]:
    code, out, err = foretime(folder, "replay", "--threshold", "3", *options, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    for measured_by_the_clock in ("wall_clock_s", "jobs_per_s", "peak_memory_bytes"):
        del found[measured_by_the_clock]
    return found


@pytest.fixture(scope="module")
def built_in(folder: Path) -> dict[str, Any]:
    return report(folder, "--order", "wfp")


def test_some_examples_equal_a_built_in(folder: Path, built_in: dict[str, Any]) -> None:
    own = ("my_orders:wfp", "my_backfilling:easy")
    options = ("--order", own[0], "--backfill", own[1])
    found = report(folder, *options)
    shown = found.pop("options"), built_in["options"]
    assert (shown[0]["order"], shown[0]["backfill"]) == own
    assert (shown[1]["order"], shown[1]["backfill"]) == ("wfp", "easy")
    assert found == {key: value for key, value in built_in.items() if key != "options"}


@pytest.mark.parametrize(
    "options",
    [
        ("--order", "my_orders:smallest_area_first"),
        ("--order", "my_orders:FairShare", "--backfill", "easy-sjbf"),
        ("--order", "wfp", "--backfill", "my_backfilling:easy_largest_area"),
    ],
    ids=" ".join,
)
def test_other_examples_do_something_else(
    folder: Path, built_in: dict[str, Any], options: tuple[str, ...]
) -> None:
    found = report(folder, *options)
    assert found["metrics"]["jobs"]["baseline"] == 400
    assert found["metrics"] != built_in["metrics"]


def test_repeats_in_other_processes_are_the_same(folder: Path) -> None:
    options = ("--order", "my_orders:FairShare", "--scheme", "actual", "--repeat", "2", "--workers")
    assert report(folder, *options, "2") == report(folder, *options, "1")


def test_a_failing_policy_is_one_line(folder: Path) -> None:
    (folder / "failing.py").write_text("def mine(queue, now):\n    return 1 // 0\n")
    code, out, err = foretime(folder, "replay", "--order", "failing:mine")
    assert (code, out) == (2, "")
    assert err.startswith("foretime: order failing:mine failed at ")
    assert f"{folder}/failing.py:2: return 1 // 0: ZeroDivisionError" in err
    assert err.count("\n") == 1


def test_the_examples_simulate_as_the_built_in_ones(folder: Path) -> None:
    """Whole runs, and step by step with an estimator that learns."""
    orders = ("wfp", "my_orders:wfp")
    backfills = ("easy", "my_backfilling:easy")
    estimators = ("requested", "last-two")
    code, out, err = foretime(
        folder,
        "simulate",
        *("--order", ",".join(orders), "--backfill", ",".join(backfills)),
        *("--estimator", ",".join(estimators), "--json"),
    )
    assert (code, err) == (0, "")
    found = {
        (case["order"], case["backfill"], case["estimator"]): {
            key: metric["value"] for key, metric in case["metrics"].items()
        }
        for case in json.loads(out)["policies"]
    }
    assert set(found) == set(product(orders, backfills, estimators))
    for (_, _, estimator), metrics in found.items():
        assert metrics == found["wfp", "easy", estimator]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("--order w", ["wfp"]),
        ("--order my_", ["my_backfilling:", "my_orders:"]),
        ("--order pri", []),  # a log has no priorities
        ("--backfill con", ["conservative"]),
        ("--policy s", ["site.toml"]),
        ("--policy pl", ["planning"]),
    ],
)
def test_the_shell_completes_names_and_modules(
    folder: Path, words: str, completed: list[str]
) -> None:
    line = f"foretime replay {words}"
    asking = {"_FORETIME_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-c", "from foretime_sidecar.cli import main; main()"],
        cwd=folder,
        env=os.environ | asking,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == completed


def test_the_page_has_all_that_a_policy_sees() -> None:
    rows = re.findall(r"^\| (`.*?`) \| ([a-z, ]+) \| .* \|$", PAGE.read_text(), flags=re.MULTILINE)
    documented = {
        (name, view)
        for names, views in rows
        for name in re.findall(r"`(\w+)`", names)
        for view in (["all"] if views == "all" else views.split(", "))
    }
    views = {
        "all": policy_views.JobsView,
        "queue": policy_views.QueueView,
        "running": policy_views.RunningView,
        "started": policy_views.StartedView,
        "finished": policy_views.FinishedView,
    }
    common = attributes(views["all"])
    seen = {("job", "all"), *((name, "all") for name in common)}
    for name, view in views.items():
        seen |= {(attribute, name) for attribute in attributes(view) - common}
    assert documented == seen


def attributes(view: type) -> set[str]:
    return {
        name
        for name, value in inspect.getmembers(view)
        if isinstance(value, property | cached_property) and not name.startswith("_")
    }
