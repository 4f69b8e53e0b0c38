"""Graham's noon polls: what is read of them, and that nothing of the future is."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_studies.graham2021.columns import (
    ACCOUNT,
    FUTURE,
    KNOWN,
    NOT_USED,
    POLL,
    PUBLISHED_FUTURE,
    SLURM_PARTITION,
    SUBMIT,
    TRES,
    WAIT,
)
from foretime_studies.graham2021.polls import NoonPolls, read_noon_polls

from tests.support.workloads.graham_archives import COLUMNS, made_polls, write_archive

ARCHIVE = "DRAC-Graham-2021-noon-pending.csv.tar.xz"


def test_a_poll_is_read_as_it_stands(tmp_path: Path) -> None:
    rows = made_polls(days=1, jobs=2)[0]
    rows[0] |= {SUBMIT: "2021-05-01 11:59:00", WAIT: 90, "norm_use_poll": "inf", "req_cpus": 12}
    rows[1] |= {"level_fs_poll": "", TRES: "billing=1,cpu=1,node=1"}
    polls = read_noon_polls(write_archive(tmp_path / "polls.tar.xz", [rows]))
    assert (polls.poll_time - polls.submit_time)[0] == 60
    assert polls.wait_s[0] == 90
    assert polls.infinite.tolist() == [True, True]
    known = dict(zip((*KNOWN, "gpus", "nodes"), polls.known.T.tolist(), strict=True))
    assert known["req_cpus"][0] == 12
    assert known["gpus"] == [2, 0]
    assert known["nodes"] == [3, 1]
    assert known["level_fs_poll"][1] == 0
    assert np.isfinite(polls.known).all()


def test_what_is_known_of_waits_ends_at_the_moment(tmp_path: Path) -> None:
    rows = made_polls(days=2, jobs=2)
    rows[0][0][WAIT], rows[0][1][WAIT] = 3_600, 3_601
    polls = read_noon_polls(write_archive(tmp_path / "polls.tar.xz", rows))
    known, waited_s, started = polls.known_outcomes(int(polls.polls[0]) + 3_600)
    assert known.tolist() == [0, 1]
    assert waited_s.tolist() == [3_600, 3_600]
    assert started.tolist() == [True, False]
    # Of the poll itself nothing is known yet.
    assert len(polls.known_outcomes(int(polls.polls[0]))[0]) == 0


def test_columns_of_the_future_change_nothing(tmp_path: Path) -> None:
    """Shuffled among the jobs or taken away, columns of the future leave what is read as it was."""
    rows = made_polls(days=3)
    read = read_noon_polls(write_archive(tmp_path / "polls.tar.xz", rows))
    forbidden = [name for name in FUTURE if name != WAIT]
    without = [name for name in COLUMNS if name not in forbidden]
    rng = random.Random(7)
    for poll in rows:
        for name in forbidden:
            values = [row[name] for row in poll]
            rng.shuffle(values)
            for row, value in zip(poll, values, strict=True):
                row[name] = value
    shuffled = read_noon_polls(write_archive(tmp_path / "shuffled.tar.xz", rows))
    removed = read_noon_polls(write_archive(tmp_path / "removed.tar.xz", rows, without))
    for other in (shuffled, removed):
        for name in NoonPolls.__slots__:
            np.testing.assert_array_equal(getattr(other, name), getattr(read, name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q_jobs_above": "many"}, r"05-01.csv:2: q_jobs_above is 'many'; fetch the archive again"),
        ({POLL: "noon"}, r"05-01.csv:2: poll_time is 'noon'"),
        ({WAIT: 0}, r"poll_wait_sec 0: the job was not pending; leave it out"),
        ({SUBMIT: "2021-05-01 12:00:01"}, "the job was not pending"),
    ],
)
def test_wrong_values_are_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    rows = made_polls(days=1, jobs=1)
    rows[0][0] |= change
    with pytest.raises(InputError, match=message):
        read_noon_polls(write_archive(tmp_path / "polls.tar.xz", rows))


def test_what_is_no_archive_of_polls(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_noon_polls(tmp_path / "none")
    with pytest.raises(InputError, match="is a folder; name the archive"):
        read_noon_polls(tmp_path)
    (tmp_path / "text").write_text("polls")
    with pytest.raises(InputError, match="is not a whole archive of Graham's polls"):
        read_noon_polls(tmp_path / "text")
    whole = write_archive(tmp_path / "polls.tar.xz", made_polls(days=2)).read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="is not a whole archive of Graham's polls"):
        read_noon_polls(tmp_path / "half")
    with pytest.raises(InputError, match=r"there is no poll \(\*.csv\) with a job in it"):
        read_noon_polls(write_archive(tmp_path / "empty", [[], []]))
    columns = [name for name in COLUMNS if name != "r_mem_above"]
    with pytest.raises(InputError, match="there is no column r_mem_above"):
        read_noon_polls(write_archive(tmp_path / "other", made_polls(days=1), columns))


@pytest.fixture(scope="module")
def whole(trace: Callable[[str], Path]) -> pd.DataFrame:
    """Every column of the real polls, the future's too."""
    with tarfile.open(trace(ARCHIVE)) as archive:
        members = [member for member in archive.getmembers() if member.name.endswith(".csv")]
        files = [archive.extractfile(member) for member in members]
        frames = [pd.read_csv(io.BytesIO(file.read()), index_col=0) for file in files if file]
    frame = pd.concat(frames, ignore_index=True)
    for name in ("poll_time", "submit_time", "start_time", "end_time", "eligible_time"):
        frame[name] = pd.to_datetime(frame[name])
    return frame


@pytest.mark.traces
@pytest.mark.slow
def test_the_real_polls(whole: pd.DataFrame, trace: Callable[[str], Path]) -> None:
    polls = read_noon_polls(trace(ARCHIVE))
    assert (len(polls), len(polls.polls)) == (133_025, 61)
    # A job is in one poll only, so that none is both learned from and asked about.
    assert whole["job_unique_id"].is_unique
    np.testing.assert_array_equal(
        np.sort((whole["start_time"] - whole["poll_time"]).dt.total_seconds()),
        np.sort(polls.wait_s),
    )
    assert (whole["eligible_time"] > whole["poll_time"]).mean() == pytest.approx(0.0428, abs=1e-4)
    named = {*KNOWN, *FUTURE, *NOT_USED, POLL, SUBMIT, ACCOUNT, SLURM_PARTITION, TRES}
    assert named == set(whole.columns)
    lists = [set(KNOWN), set(FUTURE), set(NOT_USED)]
    assert sum(map(len, lists)) == len(set.union(*lists))
    assert set(PUBLISHED_FUTURE) <= set(FUTURE)


@pytest.mark.traces
@pytest.mark.slow
def test_what_the_augmented_columns_count(whole: pd.DataFrame) -> None:
    """Where a column counts exactly one job, and that job is in the polls itself, compare the two.

    Requested hours are known at noon, of running jobs those that are left. Run hours of queued jobs
    are those that the jobs had in the end.
    """
    left, requested, run = [], [], []
    for poll, asked in whole.groupby("poll_time"):
        begun = whole[(whole["start_time"] <= poll) & (whole["end_time"] > poll)]
        waiting = whole[(whole["submit_time"] <= poll) & (whole["start_time"] > poll)]
        for jobs, column in ((begun, "r"), (waiting, "q")):
            single = asked[asked[f"{column}_p_a_jobs_above"] == 1]
            for _, row in single.iterrows():
                place = (jobs["partition_id_x"] == row["partition_id_y"]) & (
                    jobs["account_id"] == row["account_id"]
                )
                others = jobs[place & (jobs["job_unique_id"] != row["job_unique_id"])]
                if len(others) != 1:
                    continue
                other = others.iloc[0]
                if other["req_cpus"] != row[f"{column}_p_a_cores_above"]:
                    continue
                hours = row[f"{column}_p_a_core_hours_above"]
                limit_s = other["time_limit_sec"]
                if column == "r":
                    age_s = (poll - other["start_time"]).total_seconds()
                    left.append((hours, other["req_cpus"] * (limit_s - age_s) / 3_600))
                else:
                    requested.append((hours, other["req_cpus"] * limit_s / 3_600))
                    real = other["req_cpus"] * other["run_time_sec"] / 3_600
                    run.append((row["q_p_a_core_run_hours"], real))

    def same(pairs: list[tuple[float, float]]) -> float:
        assert len(pairs) > 15
        return sum(abs(a - b) <= 0.02 * max(b, 0.5) for a, b in pairs) / len(pairs)

    assert same(left) == 1
    assert same(requested) > 0.95
    assert same(run) > 0.9
