"""Options that are refused in a line, before anything is read or run."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


def test_a_port_in_use_is_refused_before_the_log_is_read(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, out, err = run("demo", "/none/log.swf", "--port", port)
    assert (code, out) == (2, "")
    assert err.startswith(f"foretime: --port {port}: can't be listened on: Address already in use")
    assert err.endswith("; give another --port\n")


def test_a_socket_in_use_is_refused_before_the_log_is_read(run: Run, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(str(tmp_path / "s"))
        taken.listen()
        code, out, err = run("demo", "/none/log.swf", "--socket", tmp_path / "s")
    assert (code, out) == (2, "")
    assert err == (
        f"foretime: --socket {tmp_path}/s: another process listens there; give another --socket\n"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "give a log, or --generate MODEL\n"),
        (("LOG", "--generate", "lublin2003"), "both given: leave one out\n"),
        (("LOG", "--estimator", "scaled:1e400"), "must be a finite number above 0"),
    ],
)
def test_it_is_said_what_to_give(run: Run, log: Path, options: tuple[str, ...], says: str) -> None:
    code, out, err = run("simulate", *(log if word == "LOG" else word for word in options))
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("replay LOG --tau -1", "--tau = '-1': give 1 or more"),
        ("replay LOG --tau x", "--tau = 'x': give a whole number"),
        ("decisions --limit 0", "--limit = '0': give 1 or more"),
        ("decisions --limit 100001", "--limit = '100001': give at most 100,000"),
        ("demo --port 65536", "--port = '65536': give at most 65,535"),
        ("demo --port 8642.5", "--port = '8642.5': give a whole number"),
        ("replay -n x", "--jobs = 'x': give a whole number"),
        ("simulate LOG --guard-share x", "--guard-share = 'x': give a number"),
    ],
)
def test_a_wrong_value_is_said_with_its_option_and_what_to_give(
    run: Run, command: str, says: str
) -> None:
    assert run(*command.split()) == (2, "", f"foretime: {says}\n")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("replay LOG --policy easy --policy planning", "--policy is given 2 times"),
        ("simulate LOG --guard 1:00 --guard=2:00", "--guard is given 2 times"),
        ("replay -n 4 --jobs 5 -n 6", "--jobs is given 3 times"),
    ],
)
def test_an_option_of_one_value_is_refused_twice(run: Run, command: str, says: str) -> None:
    expected = f"foretime: {says} and takes one value; give one\n"
    assert run(*command.split()) == (2, "", expected)


def test_a_simulation_runs_every_policy_that_is_named(run: Run, log: Path) -> None:
    named = ("--policy", "easy", "--policy", "planning", "--order", "fcfs")
    code, out, _ = run("simulate", log, *named, "--json", "--json")
    assert code == 0
    assert [case["name"] for case in json.loads(out)["policies"]] == ["easy", "planning"]


def test_a_file_is_not_called_as_the_standard_output(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for option in ("--csv", "--swf-out", "--plot"):
        code, out, err = run("simulate", log, option, "-")
        assert (code, out) == (2, "")
        assert err == f"foretime: {option} -: is no file's name; name a file\n"
    assert not list(tmp_path.iterdir())
