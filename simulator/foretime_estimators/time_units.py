"""How many seconds the units of time have."""

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S


LONGEST_S = 2**52
"""Bound of every time: beyond it seconds are not exact in the double precision of scores."""
