"""PBS accounting logs as job logs: assets by hand, faults, and the way there and back."""

from __future__ import annotations

import gzip
import lzma
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending
from foretime_sim.engine.engine import simulate
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import format_of, read_log
from foretime_sim.logs.pbs_accounting_writer import write_pbs_accounting
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.job_log import JobLog
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import ENDINGS, Workload
from hypothesis import given, settings
from hypothesis import strategies as st

MIDNIGHT = 1_795_132_800  # 2026-11-20 00:00 UTC


@pytest.fixture
def assets(repository: Path) -> Path:
    return repository / "tests/assets/pbs"


def endings(log: JobLog) -> list[Ending]:
    return [ENDINGS[code] for code in log.endings.tolist()]


def test_a_log_of_openpbs_is_read_as_by_hand(assets: Path) -> None:
    log = read_log(assets / "openpbs/accounting")
    assert log.job_id.tolist() == [1, 2, 3, 4, 4, 5, 8, 9, 10]
    assert endings(log) == [
        Ending.COMPLETED, Ending.COMPLETED, Ending.CANCELLED, Ending.COMPLETED, Ending.COMPLETED,
        Ending.COMPLETED, Ending.TIMED_OUT, Ending.COMPLETED, Ending.OUT_OF_MEMORY,
    ]  # fmt: skip
    zero = log.unix_start_time
    assert zero is not None
    # The first was eligible half an hour before its start, by the server's own account.
    assert zero == MIDNIGHT - 86_400 + 7200 - 1800
    submitted = [zero - MIDNIGHT + time for time in log.submit_time.tolist()]
    # The second waited from the end of its first run, before midnight.
    assert submitted == [-81_000, -4200, 200, 400, 400, 1100, 3000, 3000, 9500]
    assert log.wait.tolist() == [1800, 4300, 100, 100, 101, 900, 100, 100, 100]
    # The eighth was suspended for 3,500 of its 5,900 s.
    assert log.runtime.tolist() == [3600, 1800, 598, 300, 300, 600, 3605, 2400, 100]
    assert log.requested_time.tolist()[:3] == [7200, 3600, 3600]
    assert log.requested_processors.tolist() == [8, 4, 1, 1, 1, 8, 16, 2, 2]
    assert log.users is not None
    assert [log.users.get(job) for job in range(3)] == ["alice", "bob", "carol"]
    assert log.projects is not None
    assert [log.projects.get(job) for job in range(4)] == [
        "physics", "chem", 'odd "words" account', None,
    ]  # fmt: skip
    assert log.queues is not None
    assert log.queues.get(5) == "R12"
    assert log.array_ids is not None
    assert [log.array_ids.get(job) for job in range(2, 6)] == [None, "4[].pbs01", "4[].pbs01", None]
    assert log.notes == (
        "1 job had not ended when the log was written",
        "2 jobs counted as submitted on becoming eligible",
    )


def test_a_log_of_torque_is_read_as_by_hand(assets: Path) -> None:
    log = read_log(assets / "torque/20140826")
    assert log.job_id.tolist() == [11923, 11925, 11924]
    assert log.requested_processors.tolist() == [12, 8, 1]
    assert log.requested_time.tolist() == [3600, 86_400, 1000]
    assert endings(log) == [Ending.COMPLETED, Ending.CANCELLED, Ending.TIMED_OUT]
    assert log.array_ids is not None
    assert log.array_ids.get(1) == "11925[].napali"
    # Held for ten minutes: it is eligible from then on.
    assert log.submit_time.tolist() == [0, 200, 700]
    assert log.wait.tolist() == [6, 1800, 100]


@pytest.mark.parametrize("kind", ["plain", "gz", "xz"])
def test_files_and_folders_are_read_in_every_form(kind: str, assets: Path, tmp_path: Path) -> None:
    folder = tmp_path / "accounting"
    shutil.copytree(assets / "openpbs/accounting", folder)
    for path in list(folder.iterdir()) if kind != "plain" else []:
        pack = gzip.compress if kind == "gz" else lzma.compress
        (folder / f"{path.name}.{kind}").write_bytes(pack(path.read_bytes()))
        path.unlink()
    (folder / "README").write_text("not a day")
    (folder / "20261121").touch()
    assert read_log(folder).job_id.tolist() == [1, 2, 3, 4, 4, 5, 8, 9, 10]
    one = next(path for path in folder.iterdir() if path.name.startswith("20261119"))
    assert read_log(one).job_id.tolist() == [1]
    assert format_of((assets / "openpbs/accounting/20261119").read_text()) == "pbs"


def test_faults_are_named(assets: Path, tmp_path: Path) -> None:
    folder = tmp_path / "accounting"
    folder.mkdir()
    with pytest.raises(InputError, match="a folder without PBS accounting files"):
        read_log(folder)
    good = (assets / "openpbs/accounting/20261119").read_text()
    day = folder / "20261119"
    day.write_text(good.replace("Resource_List.walltime=02:00:00", "Resource_List.walltime=2h"))
    with pytest.raises(InputError, match=r"20261119:\d+: Resource_List.walltime='2h'.*--lenient"):
        read_log(folder)
    with pytest.raises(InputError, match="no job ended"):
        read_log(folder, lenient=True)
    day.write_text("no record\n" + good)
    with pytest.raises(InputError, match=r"20261119:1: 1 parts where a record has 4"):
        read_log(folder, format="pbs")
    assert "1 malformed line left out (20261119:1" in " ".join(read_log(folder, lenient=True).notes)
    day.write_text(good + good.splitlines()[3][:90])
    assert "the last line of 20261119 is cut off and left out" in read_log(folder).notes
    (folder / "20261119.gz").touch()
    with pytest.raises(InputError, match=r"20261119 and 20261119\.gz are the same day"):
        read_log(folder)
    with pytest.raises(InputError, match="--columns is for sacct and CSV"):
        read_log(day, columns="xdmod")
    (folder / "20261119.gz").unlink()
    day.write_text("")
    with pytest.raises(InputError, match="all accounting files in this folder are empty"):
        read_log(folder)


# There and back ----------------------------------------------------------------------------------


def same_jobs(one: Workload, other: Workload, *, same_arrays: bool = True) -> None:
    assert one.unix_start_time is not None
    assert other.unix_start_time is not None
    np.testing.assert_array_equal(
        one.submit_time + one.unix_start_time, other.submit_time + other.unix_start_time
    )
    for column in ("processors", "actual_runtime", "requested_time"):
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column))
    for column in ("users", "projects", "queues", "executables"):
        names = [
            None if labels is None else [labels.get(job) for job in range(len(one))]
            for labels in (getattr(one, column), getattr(other, column))
        ]
        nothing = [None] * len(one)
        assert (names[0] or nothing) == (names[1] or nothing), column
    if same_arrays:
        for job in range(len(one)):
            for before in range(job):
                assert _together(one, job, before) == _together(other, job, before)


def _together(workload: Workload, job: int, before: int) -> bool:
    arrays = workload.array_ids
    return (
        arrays is not None and arrays.get(job) is not None and arrays.get(job) == arrays.get(before)
    )


_NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters='"'), min_size=1
) | st.just("name with blanks")


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    jobs = draw(st.integers(1, 12))

    def column(values: st.SearchStrategy[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array(draw(st.lists(values, min_size=jobs, max_size=jobs)), dtype=np.int64)

    def labels(names: st.SearchStrategy[str]) -> Labels:
        known = draw(st.lists(names, min_size=3, max_size=3, unique=True))
        return Labels(column(st.integers(-1, 2)).astype(np.int32), tuple(known))

    requested = column(st.integers(1, 200_000))
    codes = column(st.integers(0, len(ENDINGS) - 1)).astype(np.int8)
    return Workload(
        name="drawn",
        machine_processors=64,
        unix_start_time=draw(st.integers(1_000_000_000, 2_000_000_000)),
        job_id=np.arange(1, jobs + 1) * draw(st.sampled_from([1, 7])),
        submit_time=np.sort(column(st.integers(0, 300_000))),
        processors=column(st.integers(1, 64)),
        actual_runtime=np.minimum(column(st.integers(1, 200_000)), requested),
        requested_time=requested,
        logged_wait=np.ma.MaskedArray(column(st.integers(0, 100_000))),
        endings=np.ma.MaskedArray(codes, mask=column(st.integers(0, 1)).astype(bool)),
        users=labels(_NAMES),
        projects=labels(_NAMES.filter(lambda name: name != "_pbs_project_default")),
        queues=labels(_NAMES),
        executables=labels(_NAMES),
        array_ids=labels(st.integers(0, 50).map(str)),
    )


@settings(max_examples=60)
@given(workload=workloads(), time_zone=st.sampled_from([None, "Europe/Prague", "Asia/Kolkata"]))
def test_what_is_written_is_read(
    workload: Workload, time_zone: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("pbs") / "accounting"
    write_pbs_accounting(workload, folder, time_zone=time_zone)
    log = read_log(folder, time_zone=time_zone)
    assert log.notes == ()
    back, _ = workload_of_log(log, processors=64)
    same_jobs(workload, back)
    assert back.logged_wait is not None
    assert workload.logged_wait is not None
    assert back.logged_wait.tolist() == workload.logged_wait.tolist()
    for job in range(len(workload)):
        ending = workload.ending(job) or Ending.COMPLETED
        cut = workload.actual_runtime[job] >= workload.requested_time[job]
        if ending is Ending.NEVER_STARTED:
            ending = Ending.CANCELLED  # it did run
        if cut and ending in (Ending.FAILED, Ending.CANCELLED):
            ending = Ending.TIMED_OUT
        assert back.ending(job) is ending


def test_names_that_pbs_can_not_have_are_refused(tmp_path: Path) -> None:
    one = np.ones(1, dtype=np.int64)
    users = Labels(np.zeros(1, dtype=np.int32), ('a"b',))
    workload = Workload("made", 4, None, one, one, one, one, one, users=users)
    with pytest.raises(InputError, match="""user 'a"b' can't stand"""):
        write_pbs_accounting(workload, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="can't be made"):
        write_pbs_accounting(replace(workload, users=None), tmp_path / "file")


@pytest.mark.traces
def test_a_real_log_by_way_of_pbs_gives_the_same_schedule(
    trace: Callable[[str], Path], tmp_path: Path
) -> None:
    log = read_log(trace("KTH-SP2-1996-2.1-cln.swf.gz"))
    swf, _ = workload_of_log(log, processors=100)
    write_pbs_accounting(swf, tmp_path / "accounting")
    pbs, _ = workload_of_log(read_log(tmp_path / "accounting"), processors=100)
    same_jobs(swf, pbs, same_arrays=False)
    one, other = simulate(swf, Policy()), simulate(pbs, Policy())
    assert swf.unix_start_time is not None
    assert pbs.unix_start_time is not None
    np.testing.assert_array_equal(
        one.start_time + swf.unix_start_time, other.start_time + pbs.unix_start_time
    )
