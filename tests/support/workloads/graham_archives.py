"""Small archives of noon polls, made like Graham's."""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from foretime_studies.graham2021.columns import FUTURE, KNOWN, NOT_USED, WAIT

NOON = datetime(2021, 5, 1, 12, tzinfo=UTC)
_ASKED = ("poll_time", "submit_time", "account_id", "partition_id_y", "req_tres")
COLUMNS = [*_ASKED, *KNOWN, *FUTURE, *NOT_USED]
Row = dict[str, object]


def made_polls(days: int = 20, jobs: int = 40, seed: int = 1) -> list[list[Row]]:
    """Make polls whose waits grow with the queue ahead, with noise; a few last for days."""
    rng = np.random.default_rng(seed)
    polls = []
    for day in range(days):
        poll = NOON + timedelta(days=day)
        rows: list[Row] = []
        for _ in range(jobs):
            ahead = float(rng.integers(0, 200))
            submit = poll - timedelta(seconds=int(rng.integers(0, 43_200)))
            wait = int(600 * (1 + ahead) * np.exp(rng.normal(0, 0.3)))
            row: Row = dict.fromkeys(COLUMNS, 1)
            row |= {name: float(rng.integers(1, 9)) for name in (*KNOWN, *FUTURE)}
            row |= {
                "poll_time": f"{poll:%Y-%m-%d %H:%M:%S}",
                "submit_time": f"{submit:%Y-%m-%d %H:%M:%S}",
                "account_id": int(rng.integers(1, 5)),
                "partition_id_y": int(rng.integers(1, 4)),
                "req_tres": "billing=1,cpu=4,gres/gpu=2,mem=1024M,node=3",
                "q_jobs_above": ahead,
                WAIT: wait,
            }
            rows.append(row)
        polls.append(rows)
    return polls


def write_archive(
    path: Path, polls: Iterable[Sequence[Mapping[str, object]]], columns: Sequence[str] = COLUMNS
) -> Path:
    """Write polls as the archive has them: a CSV file for each day."""
    with tarfile.open(path, "w:xz") as archive:
        for day, rows in enumerate(polls):
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(["", *columns])
            writer.writerows(
                [number, *(row[name] for name in columns)] for number, row in enumerate(rows)
            )
            data = text.getvalue().encode()
            member = tarfile.TarInfo(f"graham/jobs_{NOON + timedelta(days=day):%Y-%m-%d}.csv")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path
