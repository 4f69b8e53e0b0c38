"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# A machine shared with others must not fail a property test for being slow. CI judges a change by
# the same examples each time; everywhere else they are new at every run.
settings.register_profile("default", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("default")

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
