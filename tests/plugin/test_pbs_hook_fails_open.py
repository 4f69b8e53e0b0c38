"""The PBS hook lets every request through, whatever goes wrong; its Python is the server's."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from foretime_sim.mocks.pbs.hook import PbsHook, PbsReply
from foretime_sim.mocks.plugin_files import plugin_file

from tests.support.hooks.hooked_pbs import NOW, SOFT, Scheduler, words

# Fail-open


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        '{"tables": "x"}',
        '{"table": null}',
        '{"table": 5}',
        '{"table": ""}',
        '{"deadline_s": "1"}',
        '{"deadline_s": true}',
        '{"readjust_after_s": -1}',
        '{"disable_file": 5}',
        "[" * 100_000,
    ],
)
def test_a_configuration_that_cannot_be_read(scheduler: Scheduler, text: str) -> None:
    scheduler.config.write_text(text)
    reply = scheduler.queue()
    assert (reply.accepted, reply.changes) == (True, {})
    assert reply.log


def test_without_configuration_the_defaults_count(tmp_path: Path) -> None:
    """pbs.hook_config_filename may be None."""
    reply = PbsHook().queuejob({"Resource_List": {"walltime": 36_000}}, "alice", NOW)
    assert reply.accepted
    assert "/var/lib/foretime/table/foretime.table" in reply.log[0].text


def test_the_shipped_configuration_says_the_defaults() -> None:
    tree = ast.parse(plugin_file("pbs/foretime_hook.py").read_text())
    (defaults,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DEFAULTS"
    )
    values = eval(ast.unparse(defaults), {"__builtins__": {}})
    shipped = json.loads(plugin_file("pbs/foretime_hook.CF").read_text())
    assert shipped == values


def test_the_deadline_is_far_below_the_alarm_at_which_the_server_rejects() -> None:
    lines = plugin_file("pbs/foretime_hook.HK").read_text().split()
    registration = dict(line.split("=") for line in lines)
    shipped = json.loads(plugin_file("pbs/foretime_hook.CF").read_text())
    assert shipped["deadline_s"] * 5 <= int(registration["alarm"])
    assert registration["event"] == "queuejob,modifyjob,runjob"
    assert int(registration["order"]) > 1  # the default: after the site's own hooks


def test_the_deadline_ends_a_slow_run(scheduler: Scheduler) -> None:
    scheduler.configure(deadline_s=0)
    reply = scheduler.queue()
    assert (reply.accepted, reply.changes) == (True, {})
    assert words(reply)["reason"] == "too-slow"
    lowered = scheduler.modify({"Resource_List": {"walltime": 60}})
    assert lowered.changes == {SOFT: 60}


EVENTS: dict[str, Callable[[Scheduler], PbsReply]] = {
    "queuejob": lambda scheduler: scheduler.queue(Account_Name="phys"),
    "moved": lambda scheduler: scheduler.queue("root", **{**scheduler.planned(60), "hop_count": 1}),
    "lowered": lambda scheduler: scheduler.modify({"Resource_List": {"walltime": 60}}),
    "opted out": lambda scheduler: scheduler.modify({"Variable_List": {"FORETIME": "off"}}),
    "runjob": lambda scheduler: scheduler.run(**scheduler.planned(60)),
}


def lines_run(
    work: Callable[[], PbsReply], stop_at: int | None, error: BaseException | None
) -> Iterator[int]:
    """Run with an error raised at a line of the hook file; give the lines that were reached."""
    reached: dict[int, None] = {}
    judging = False  # until then the server has only loaded the file

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal judging
        code = frame.f_code
        if not code.co_filename.endswith("foretime_hook.py"):
            return None
        if code.co_name == "main":
            judging = True
        elif event == "line" and judging:
            reached[frame.f_lineno] = None
            if frame.f_lineno == stop_at and error is not None:
                raise error
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        reply = work()
    finally:
        sys.settrace(previous)
    assert reply.accepted, (stop_at, reply.message)
    yield from reached


@pytest.mark.parametrize("name", EVENTS)
def test_an_error_or_alarm_at_any_line_leaves_the_job_accepted(
    scheduler: Scheduler, name: str
) -> None:
    """An exception or an alarm (KeyboardInterrupt) rejects the request if it gets out."""
    whole = EVENTS[name](scheduler)
    harmless = {(), tuple(whole.changes.items()), ((SOFT, 36_000),)}
    found: list[PbsReply] = []

    def work() -> PbsReply:
        found.append(EVENTS[name](scheduler))
        return found[-1]

    lines = list(lines_run(work, None, None))
    assert len(lines) > 20
    for at, line in enumerate(lines):
        error = KeyboardInterrupt() if at % 2 else RuntimeError("a fault")
        list(lines_run(work, line, error))
        assert tuple(found[-1].changes.items()) in harmless, line


def test_nothing_but_accept_is_ever_called() -> None:
    tree = ast.parse(plugin_file("pbs/foretime_hook.py").read_text())
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "accept" in names
    assert not names & {
        "reject",
        "rerun",
        "delete",
        "exit",
        "_exit",
        "abort",
        "scheduler_restart_cycle",
    }
    calls = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"exit", "quit", "open", "print", "exec", "eval", "input"}


# The Python of the server


def test_the_file_is_python_3_6_and_light() -> None:
    source = plugin_file("pbs/foretime_hook.py").read_text()
    tree = ast.parse(source, feature_version=(3, 6))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert not any(isinstance(node, ast.ImportFrom | ast.JoinedStr) for node in ast.walk(tree))
    assert imported == {"json", "os", "stat", "time", "pbs"}
    # What it takes from the standard library; all of it is in Python 3.6.
    used = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in imported - {"pbs"}
    }
    assert used <= {
        "json.loads",
        "os.O_CLOEXEC",
        "os.O_NOCTTY",
        "os.O_NONBLOCK",
        "os.O_RDONLY",
        "os.close",
        "os.fstat",
        "os.lstat",
        "os.open",
        "os.path",
        "os.pread",
        "os.stat",
        "stat.S_ISREG",
        "time.mktime",
        "time.monotonic",
        "time.time",
    }
    newer = {"removeprefix", "removesuffix", "isascii", "bit_count", "batched", "time_ns"}
    assert not newer & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_the_readme_names_a_test_for_each_trap(repository: Path) -> None:
    text = (repository / "plugin" / "README.md").read_text()
    table = text.split("| trap | test |\n|---|---|\n")[1].split("\n\n")[0]
    named = re.findall(r"`([a-z_/]+\.py)::(test_\w+)`", table)
    assert len(named) >= len(table.splitlines()) > 10
    for path, test in named:
        assert f"\ndef {test}(" in (repository / "tests" / path).read_text(), (path, test)


def test_nothing_is_kept_between_two_runs(scheduler: Scheduler) -> None:
    """The server starts its interpreter anew after some hundred hooks."""
    again = PbsHook(config=scheduler.config)
    first = [scheduler.queue().changes for _ in range(3)]
    assert (
        first == [again.queuejob({"Resource_List": {"walltime": 36_000}}, "alice", NOW).changes] * 3
    )
    scheduler.table.unlink()
    assert scheduler.queue().changes == {}


def test_it_needs_no_path_but_itself(scheduler: Scheduler, tmp_path: Path) -> None:
    copy = tmp_path / "imported.PY"
    copy.write_bytes(plugin_file("pbs/foretime_hook.py").read_bytes())
    hook = PbsHook(copy, config=scheduler.config)
    assert hook.queuejob({"Resource_List": {"walltime": 36_000}}, "alice", NOW).changes


@pytest.mark.parametrize("module", ["json", "os", "stat", "time"])
def test_where_python_is_not_whole_every_request_goes_through(
    module: str, scheduler: Scheduler, tmp_path: Path
) -> None:
    shipped = plugin_file("pbs/foretime_hook.py").read_text()
    torn = tmp_path / "torn.py"
    torn.write_text(shipped.replace(f"    import {module}\n", "    import not_there\n", 1))
    assert torn.read_text() != shipped
    reply = PbsHook(torn, config=scheduler.config).queuejob({"Resource_List": {}}, "alice", NOW)
    assert (reply.accepted, reply.changes) == (True, {})
