"""When waiting jobs will start: forecasts, their calibration, and how well they have done."""
