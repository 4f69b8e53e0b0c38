"""Fixtures that every test may use."""

from __future__ import annotations

import os
import sys
import unittest
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from foretime_sidecar.cli import main
from foretime_sidecar.cli.options import daemon_options
from foretime_sidecar.install import host
from foretime_sim.logs.swf import write_swf
from foretime_sim.models import lublin2003
from foretime_sim.workloads.job_log import log_of_workload
from hypothesis import settings

# Trees are grown by threads that wait for each other by spinning: beside another process on two
# processors that takes ten times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A machine shared with others must not fail a property test for being slow. CI judges a change by
# the same examples each time; everywhere else they are new at every run.
settings.register_profile("default", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--search",
        type=int,
        metavar="TIMES",
        help="run the property tests alone, TIMES as many examples of each (make search)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    times = config.getoption("--search")
    if times is None:
        return
    items[:] = [item for item in items if _is_property(item)]
    # Parametrized tests share one function, and the methods of a state machine one class.
    for holder, name in {_kept_settings(item) for item in items}:
        usual = getattr(holder, name)
        more = settings(usual, max_examples=usual.max_examples * times, print_blob=True)
        setattr(holder, name, more)


def _is_property(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and getattr(item.obj, "is_hypothesis_test", False)


def _kept_settings(item: pytest.Item) -> tuple[Any, str]:
    """Where hypothesis keeps a test's settings: of a state machine in its class."""
    assert isinstance(item, pytest.Function)
    if item.cls is not None and issubclass(item.cls, unittest.TestCase):
        return item.cls, "settings"
    return item.function, "_hypothesis_internal_use_settings"


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_this_machine() -> Iterator[None]:
    """Let no test go by what is in /etc, or in whose environment it runs."""
    with pytest.MonkeyPatch.context() as patched:
        for variable in (daemon_options.SETTINGS_VARIABLE, "COLUMNS", "LINES"):
            patched.delenv(variable, raising=False)
        patched.setattr(daemon_options, "SETTINGS_FILE", Path("/none/foretime.toml"))
        patched.setattr(host, "spawn", _refuse)
        yield


def _refuse(command: Sequence[str], *_: object) -> NoReturn:
    raise AssertionError(f"a test would have run {' '.join(command)} on this machine")


REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def trace() -> Callable[[str], Path]:
    """Path of a real log by its file name; skips the test where the logs are not."""
    folder = Path(os.environ.get("FORETIME_TRACES", REPOSITORY.parent / "shared" / "traces"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"no {name} in {folder}; set FORETIME_TRACES to the folder of real logs")
        return path

    return find


@pytest.fixture(scope="session")
def bluegene() -> Callable[[str], Path]:
    """Path of a real Blue Gene's configuration or log; skips the test where they are not."""
    traces = Path(os.environ.get("FORETIME_TRACES", REPOSITORY.parent / "shared" / "traces"))
    folder = Path(os.environ.get("FORETIME_BLUEGENE", traces.parent / "bluegene"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"no {name} in {folder}; set FORETIME_BLUEGENE to the Blue Gene data")
        return path

    return find


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Call ``foretime`` with arguments; give exit code, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["foretime", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        code = left.value.code
        return (0 if code is None else int(code)), captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated log of 300 jobs in a few days."""
    path = tmp_path_factory.mktemp("log") / "made.swf.gz"
    write_swf(log_of_workload(lublin2003.generate(300, seed=3)), path)
    return path
