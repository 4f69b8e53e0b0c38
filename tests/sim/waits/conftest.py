"""Logs and policies for the tests of waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_sim.workloads.workload import Workload

from tests.sim.engine.conftest import any_policy
from tests.support.workloads.real_logs import KTH, read_workload

__all__ = ["any_policy"]


@pytest.fixture(scope="session")
def kth(trace: Callable[[str], Path]) -> Workload:
    """The log of KTH's SP2."""
    return read_workload(trace(f"{KTH}.swf.gz"))


@pytest.fixture(scope="session")
def busy(kth: Workload) -> Workload:
    """Three days of it in which most jobs waited."""
    return kth.take(np.arange(8_000, 8_250))
