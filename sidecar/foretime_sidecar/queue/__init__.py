"""A real queue at one look: as the beginning of forward runs, what happened to it, what if.

Knows nothing of forecasts.

Public names: `QueueSnapshot`, `snapshot_of`, `QueueMoment`, `Look`, `NewJob`, `PastEvents`,
`Event`.
"""
