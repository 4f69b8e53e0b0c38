"""The pyslurm client, on objects with the attributes of pyslurm's classes and live values.

The names are those of pyslurm 25.11.2's own source, which can only be installed beside its Slurm;
the values are what squeue printed, in the shapes that its properties give.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_sidecar.clients.client import ControllerLoad
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.pyslurm_client import PySlurm, import_pyslurm

from tests.support.client_checks import READING, Check
from tests.support.slurm.pyslurm_module import (
    PyslurmError,
    RecordedCommands,
    pyslurm_of,
    told_by_pyslurm,
)


@pytest.fixture
def folder(repository: Path) -> Path:
    return repository / "tests/assets/slurm/26.05"


@pytest.fixture
def pyslurm(folder: Path) -> SimpleNamespace:
    return pyslurm_of(json.loads((folder / "squeue.json").read_text())["jobs"])


@pytest.fixture
def client(pyslurm: SimpleNamespace, folder: Path) -> PySlurm:
    return PySlurm(pyslurm, SlurmCommands(RecordedCommands(folder), 0))


@pytest.mark.parametrize(
    "check",
    [check for check in READING if check.__name__ != "check_nothing_is_lost_between_cursors"],
    ids=lambda check: check.__name__,
)
def test_reading_passes_the_shared_checks(check: Check, client: PySlurm) -> None:
    """All but the slices of finished jobs, which are sacct's own."""
    check(client)


def test_it_reads_the_queue_that_squeue_prints(client: PySlurm, folder: Path) -> None:
    printed = SlurmCommands(RecordedCommands(folder)).queue().jobs
    expected = tuple(map(told_by_pyslurm, printed))
    assert tuple(client.queue().jobs) == expected
    # Allocated, mixed and idle nodes whole; of the draining and the lost one what jobs have.
    assert client.queue().processors == 4 + 4 + 4 + 3 + 4


def test_load_comes_from_pyslurm_and_the_rest_from_the_commands(client: PySlurm) -> None:
    assert client.load() == ControllerLoad(3, 1, 2, 1.5)
    assert client.configuration().version == "25.11.7"
    assert client.site_factors()["16"] == -7
    assert client.qos_priorities() == {"normal": 0, "high": 100}
    assert [r.name for r in client.reservations()] == ["maintenance", "course"]


def test_another_release_is_refused(pyslurm: SimpleNamespace, folder: Path) -> None:
    client = PySlurm(pyslurm, SlurmCommands(RecordedCommands(folder, "26.05.5")))
    for ask in (client.queue, client.load):
        with pytest.raises(SchedulerError, match=r"is for Slurm 25\.11, but slurmctld is 26\.05"):
            ask()


def test_errors_of_pyslurm_are_told(pyslurm: SimpleNamespace, client: PySlurm) -> None:
    def fail(**_: bool) -> None:
        raise PyslurmError("Unable to contact slurm controller")

    pyslurm.Jobs.load = pyslurm.slurmctld.diag = fail
    for ask in (client.queue, client.load):
        with pytest.raises(SchedulerError, match=r"pyslurm: Unable to contact .*check slurmctld"):
            ask()
    pyslurm.Jobs.load = lambda preload_passwd_info: {1: SimpleNamespace(state="PENDING")}
    with pytest.raises(SchedulerError, match=r"pyslurm 25\.11\.2 gave a job in an unknown shape"):
        client.queue()


def test_a_pyslurm_that_is_not_there_or_does_not_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", None)
    with pytest.raises(InputError, match=r"pyslurm is not installed: .*SLURM_INCLUDE_DIR"):
        import_pyslurm()
    monkeypatch.delitem(sys.modules, "pyslurm")
    (tmp_path / "pyslurm.py").write_text("raise ImportError('libslurm.so.44: no such file')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=r"does not load here: libslurm\.so\.44: no such file"):
        import_pyslurm()
    fatal = "python: fatal: Unable to process configuration file"
    (tmp_path / "pyslurm.py").write_text(
        f"import os, sys\nprint({fatal!r}, file=sys.stderr, flush=True)\nos._exit(1)"
    )
    with pytest.raises(InputError, match=rf"does not load: {fatal}; check slurm\.conf and .*User"):
        import_pyslurm()
    (tmp_path / "pyslurm.py").write_text("__version__ = '25.11.2'")
    assert isinstance(import_pyslurm(), ModuleType)
    monkeypatch.delitem(sys.modules, "pyslurm")
