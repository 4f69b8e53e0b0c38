"""The note that the hook leaves with a job, as the sidecar reads it."""

from __future__ import annotations

import pytest
from foretime_sidecar.job_note import JobNote, read_note


@pytest.mark.parametrize(
    ("comment", "note"),
    [
        ("foretime:treq=60,tmin=30", JobNote(3600, 1800)),
        ("foretime:treq=60,tmin=30,generation=7", JobNote(3600, 1800, generation=7)),
        ("x foretime:treq=60,tmin=30,generation=7,own=4 y", JobNote(3600, 1800, None, 240, 7)),
        ("foretime:treq=60,tsched=30,generation=7,new=1", JobNote(3600, None, 1800, None, 7)),
        ("foretime:treq=9,tmin=3 foretime:treq=8,tmin=2", JobNote(540, 180)),
        ("", None),
        ("xforetime:treq=60,tmin=30", None),
        ("foretime:treq=60,tmin=30x", None),
        ("foretime:treq=60,tmin=30,generation", None),
        (f"foretime:treq=60,tmin=30,generation={'9' * 5_000}", None),
        ("foretime:treq=60", None),
        ("foretime:treq=,tmin=30", None),
    ],
)
def test_read_note(comment: str, note: JobNote | None) -> None:
    assert read_note(comment) == note
