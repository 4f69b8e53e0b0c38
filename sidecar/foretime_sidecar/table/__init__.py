"""The file of the hook: what it holds, how it is written and checked (plugin/TABLE.md).

Knows no scheduler and no store.

Public names: `Table`, `TableRow`, `Mode`, `read_table`, `write_table`.
"""
