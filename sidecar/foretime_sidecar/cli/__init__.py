"""The `foretime` command: one sub-command a module; errors are one line and an exit code."""

from __future__ import annotations
