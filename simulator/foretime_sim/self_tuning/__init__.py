"""A scheduler that asks forward runs what to do next, and jobs that choose their size.

Knows no real scheduler.

Public names: `ForwardSwitching`, `simulate_switching`, `MalleableJobs`.
"""
