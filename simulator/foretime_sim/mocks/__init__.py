"""Schedulers with a virtual clock, which call the real hooks.

Knows hooks and the engine, and no daemon.

Public names: `Mechanism`, `mechanism_policy`, `plugin_file`, `MockScheduler`, `EstimatorHook`.
"""
