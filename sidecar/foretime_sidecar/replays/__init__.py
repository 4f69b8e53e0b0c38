"""A log replayed through the real hook, daemon and engine; reports of what came of it.

Knows no command line.

Public names: `Replay`, `ReplaySchedule`, `render`, `Demonstration`.
"""
