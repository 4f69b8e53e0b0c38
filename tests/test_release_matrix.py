"""The page of tested Slurm releases says what pytest's results say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.harness.release_matrix import SUBJECTS, page_of, results_of

OLD, NEW = "2026-01-01T10:00:00", "2026-01-02T10:00:00"


def results(folder: Path, timestamp: str, *cases: str) -> Path:
    path = folder / f"{timestamp}.xml"
    path.write_text(
        f'<testsuites><testsuite timestamp="{timestamp}">{"".join(cases)}</testsuite></testsuites>'
    )
    return path


def case(module: str, name: str, inner: str = "") -> str:
    return f'<testcase classname="tests.slurm.{module}" name="{name}">{inner}</testcase>'


def test_the_newest_result_of_each_test_counts(tmp_path: Path) -> None:
    old = results(
        tmp_path,
        OLD,
        case("test_clients", "test_a[24.11-x]", "<failure/>"),
        case("test_clients", "test_b[24.11]", "<skipped/>"),
        case("ordering.test_start_now", "test_c[22.05]"),
        case("test_clients", "test_of_no_release"),
    )
    new = results(
        tmp_path,
        NEW,
        case("test_clients", "test_a[24.11-x]"),
        case("test_pyslurm", "test_d[25.11]", "<error/>"),
    )
    page = page_of([*results_of(new), *results_of(old)])
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert rows[0] == "| subject | 22.05 | 24.11 | 25.11 |"
    clients = "– | 1 passed, 1 skipped (2026-01-02) | 0 passed, 1 failed (2026-01-02)"
    assert rows[2] == f"| Clients: commands, slurmrestd, pyslurm | {clients} |"
    assert "| Start now and queue order | 1 passed (2026-01-01) | – | – |" in rows


def test_every_live_test_has_a_subject(repository: Path) -> None:
    modules = {
        path.stem.removeprefix("test_") for path in (repository / "tests/slurm").rglob("test_*.py")
    }
    assert modules == {module for modules in SUBJECTS.values() for module in modules}


def test_a_module_without_a_subject_is_told(tmp_path: Path) -> None:
    path = results(tmp_path, OLD, case("test_new", "test_a[24.11]"))
    with pytest.raises(ValueError, match=r"test_new\.py has no subject"):
        page_of(results_of(path))
