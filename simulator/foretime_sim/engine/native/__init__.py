"""The native core as Python calls it: columns in, schedules out.

Checks what it hands over; decides nothing.

Public names: `core_engine`, `core_schedule`, `core_request`, `checked_column`.
"""
