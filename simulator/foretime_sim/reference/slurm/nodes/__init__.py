"""Which nodes a job would get, now or later: what is in use, node choice, reservations.

Whose turn it is, and whether a limit allows it, is not known here.

Public names: `NodeUse`, `NodeChoice`, `NodeSpace`, `Reservations`.
"""
