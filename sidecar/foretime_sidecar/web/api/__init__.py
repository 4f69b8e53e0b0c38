"""What the API answers, and to whom how exactly.

Knows no socket.

Public names: `add_forecasts`, `add_administration`, `ForecastDesk`.
"""
