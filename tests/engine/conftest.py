"""Says which native core is tested: under `make sanitize` it must be the sanitized one."""

from __future__ import annotations

import os

import pytest
from foretime_sim import _core


def pytest_report_header() -> str:
    kind = "sanitized" if _core.sanitized else "plain"
    return f"native core: {kind}, {_core.__file__}"


def pytest_collection_finish() -> None:
    if os.environ.get("FORETIME_SANITIZED") == "1" and not _core.sanitized:
        pytest.exit(f"FORETIME_SANITIZED=1, but {_core.__file__} is not sanitized", returncode=2)
