"""Each promise of docs/threat_model.md names a test that there is."""

from __future__ import annotations

import re
from pathlib import Path

_DEFINED = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


def test_each_named_test_is_there(repository: Path) -> None:
    page = (repository / "docs/threat_model.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    defined = {
        name
        for path in (repository / "tests").rglob("test_*.py")
        for name in _DEFINED.findall(path.read_text(encoding="utf-8"))
    }
    assert len(named) > 40
    assert named <= defined, "the page names tests that are not there"


def test_no_table_promises_anything_without_a_test(repository: Path) -> None:
    page = (repository / "docs/threat_model.md").read_text(encoding="utf-8")
    tables = [table for table in page.split("\n\n") if "shown by |" in table]
    assert tables
    for table in tables:
        for row in table.splitlines()[2:]:
            if row.startswith("|"):
                assert "`test_" in row.split("|")[-2], row
