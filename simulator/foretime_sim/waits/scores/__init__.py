"""Forecasts asked for along a log, and how good they were.

Makes no forecast itself.

Public names: `ask_forecasters`, `SimulatedWaits`, `LoggedWaits`, `coverage_slices`.
"""
