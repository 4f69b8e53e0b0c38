"""The daemon asked by our own commands, and what it said on a terminal.

Knows the daemon by its address alone.

Public names: `ask`, `DaemonError`, `wait_report`, `updates`.
"""
