"""The queue put into another order, or jobs started at once, where a site asks for it, and why.

Knows no forecast and no web server.

Public names: `QueueOrdering`, `StartNow`, `SwitchedOrder`.
"""
