"""Waits of the queue as it stands, forecast at each look, scored, and put on a board.

Knows no web server.

Public names: `WaitForecasting`, `JobParameters`, `NotedBounds`, `ServedForecasts`.
"""
