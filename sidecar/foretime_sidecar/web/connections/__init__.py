"""Connections: whose they are, how many, how slow, what is refused before it is read.

Knows no answers.

Public names: `Listener`, `Places`, `FairTurns`, `RequestGuard`.
"""
