"""How large a machine may be."""

MAX_PROCESSORS = 100_000_000
"""No job and no machine in a log may be larger than this."""
