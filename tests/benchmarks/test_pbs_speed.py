"""What reading PBS's accounting logs costs, and how the tail of one grows with what is new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.clients.pbs.logs import AccountingTail
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.pbs_accounting_writer import write_pbs_accounting
from foretime_sim.workloads.workload import Workload
from pytest_benchmark.fixture import BenchmarkFixture


@pytest.fixture(scope="module")
def kth(trace: Callable[[str], Path]) -> Workload:
    """KTH's 28,467 jobs."""
    return workload_of_log(read_log(trace("KTH-SP2-1996-2.1-cln.swf.gz")), processors=100)[0]


@pytest.fixture(scope="module")
def accounting(kth: Workload, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as PBS would have accounted for them."""
    folder = tmp_path_factory.mktemp("pbs") / "accounting"
    write_pbs_accounting(kth, folder)
    return folder


@pytest.mark.traces
def test_reading_a_folder(benchmark: BenchmarkFixture, kth: Workload, accounting: Path) -> None:
    log = benchmark(read_log, accounting)
    assert len(log) == len(kth)
    benchmark.extra_info["jobs"] = len(kth)
    size = sum(path.stat().st_size for path in accounting.iterdir())
    benchmark.extra_info["mib"] = size / 2**20


@pytest.mark.traces
def test_following_from_the_beginning(
    benchmark: BenchmarkFixture, kth: Workload, accounting: Path
) -> None:
    benchmark(lambda: AccountingTail(accounting).ended_since(1))
    benchmark.extra_info["jobs"] = len(kth)


@pytest.mark.traces
def test_following_when_nothing_is_new(benchmark: BenchmarkFixture, accounting: Path) -> None:
    tail = AccountingTail(accounting)
    last = tail.ended_since(1)[-1].end_time
    tail.ended_since(last)
    benchmark(tail.ended_since, last)


@pytest.mark.traces
def test_writing(benchmark: BenchmarkFixture, kth: Workload, tmp_path: Path) -> None:
    benchmark(write_pbs_accounting, kth, tmp_path / "accounting")
    benchmark.extra_info["jobs"] = len(kth)
