"""Forecasts of waits on real logs."""
