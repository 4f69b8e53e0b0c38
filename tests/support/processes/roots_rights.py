"""What happens where one may not write, also in tests that root runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65_534


@contextmanager
def without_roots_rights(*files: Path) -> Iterator[None]:
    """Be the user whom files belong to: root's rights would pass over their modes."""
    if os.geteuid() != 0:
        yield
        return
    for file in files:
        os.chown(file, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
