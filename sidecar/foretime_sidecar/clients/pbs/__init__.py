"""A PBS asked by its commands and its logs.

Parses and runs; decides nothing.

Public names: `PbsCommands`, `PbsServer`, `AccountingTail`.
"""
