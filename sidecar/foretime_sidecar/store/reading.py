"""A store's file read without its daemon, and beside it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def read_only(path: Path | str, timeout_s: float = 10) -> Iterator[sqlite3.Connection]:
    """Open a store for reading alone; errors of SQLite's are for the caller to explain."""
    address = f"{Path(path).absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, timeout=timeout_s, uri=True)) as connection:
        yield connection
