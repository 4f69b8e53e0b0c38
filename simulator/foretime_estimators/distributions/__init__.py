"""Runtimes as distributions, from which forward runs draw.

Knows neither queues nor schedulers.

Public names: `RuntimeDistribution`, `RuntimeHistories`, `Lifetimes`, `fit_uniform_log`.
"""
