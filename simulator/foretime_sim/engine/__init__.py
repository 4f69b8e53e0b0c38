"""Scheduling: a whole log, step by step, and forward runs from one moment on.

Knows no mock and no forecast; what it does is in `reference` in plain Python.

Public names: `simulate`, `Schedule`, `Engine`, `Snapshot`, `forward_runs`,
`simulate_with_estimator`.
"""
