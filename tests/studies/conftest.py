"""Logs for the tests of studies."""

from __future__ import annotations

from tests.sim.waits.conftest import busy, kth

__all__ = ["busy", "kth"]
