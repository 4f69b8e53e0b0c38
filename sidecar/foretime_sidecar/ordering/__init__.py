"""The queue put into another order, where a site asks for it, and why.

Knows no forecast and no web server.

Public names: `QueueOrdering`, `StartNow`, `SwitchedOrder`.
"""
