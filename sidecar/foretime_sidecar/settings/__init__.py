"""Every setting with its type, default and meaning, and the file they are read from.

Knows nobody who goes by them.

Public names: `Settings`, `parse_settings`, `to_toml`, `parse_listen`.
"""
