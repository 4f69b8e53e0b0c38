"""The specification of the engine in plain Python, for the tests that hold the two together.

No command needs it; it is written to be read, and shares no decision with the core.

Public names: `flat.simulate`, `nodes.simulate`, `bgp.simulate`, `forward_run`.
"""
