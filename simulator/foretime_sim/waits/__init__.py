"""Forecasts of waits: what is known at a moment, who forecasts, and how sure they are.

Knows no scheduler but the engine; the daemon brings it a real queue.

Public names: `Moment`, `WaitForecaster`, `WaitForecasts`, `LEVELS`.
"""
