"""The note that the hook leaves with a job, as the sidecar reads it."""

from __future__ import annotations

import pytest
from foretime_sidecar.clients.slurm.job_note import JobNote, read_note

from tests.support.hooks.time_changes import HOLDINGS


@pytest.mark.parametrize(
    ("comment", "note"),
    [
        ("foretime:treq=60,tmin=30", JobNote(3600, 1800)),
        ("foretime:treq=60,tmin=30,generation=7", JobNote(3600, 1800, generation=7)),
        ("x foretime:treq=60,tmin=30,generation=7,own=4 y", JobNote(3600, 1800, None, 240, 7)),
        (
            "foretime:treq=60,tmin=30,generation=7,learned=1",
            JobNote(3600, 1800, generation=7, learned=True),
        ),
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
def test_a_note_is_read_as_the_hook_wrote_it(comment: str, note: JobNote | None) -> None:
    assert read_note(comment) == note


def test_whose_time_min_a_job_has() -> None:
    """As the hook tells it: tests/plugin/test_time_changes.py."""
    for holding in HOLDINGS.values():
        note = read_note(holding.note)
        minutes = holding.time_min
        told = note is not None and note.is_ours(None if minutes is None else minutes * 60)
        assert told == holding.is_ours, holding
