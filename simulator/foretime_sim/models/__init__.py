"""Workloads made up: published models, and one read off a log.

Knows no policy.

Public names: `generate`, `LogModel`, `describe`, `with_estimates`, `Weibull`.
"""
