"""The daemon asked by our own commands, and what it said on a terminal.

Knows the daemon by its address alone.

Public names: `ForetimeClient`, `SiteDaemon`, `ask_forecast`, `ask_advice`, `DaemonError`,
`wait_report`, `updates`.
"""
