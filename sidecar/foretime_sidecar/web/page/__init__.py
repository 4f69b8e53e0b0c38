"""The page at /, from its templates.

Asks what the API asks, and nothing else.

Public names: `add_page`.
"""
