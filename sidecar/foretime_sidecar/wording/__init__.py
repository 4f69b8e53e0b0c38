"""Durations, numbers and waits as people read them.

Pure: from values to words, and back.

Public names: `format_duration`, `parse_duration`, `counted`, `headline`.
"""
